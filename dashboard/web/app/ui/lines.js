// Lines that an edit added and removed.
import { html } from "./html.js";

/** `+12 −3`; a dash where no edit tells. @param {{ of: { edits?: number, added: number | null, removed: number | null } }} props */
export function Lines({ of: { edits = 1, added, removed } }) {
  if (!edits || (added === null && removed === null)) return html`<span class="dim">–</span>`;
  return html`<span class="good">+${added ?? 0}</span> <span class="bad">−${removed ?? 0}</span>`;
}
