// The list of keys.
/** @import { RefObject } from "preact" */
import { closeBeside } from "./dialog.js";
import { onTick } from "./fields.js";
import { html, useState } from "./html.js";
import { enabled, setEnabled } from "./keys.js";

const HELP = [
  ["j k ↓ ↑", "next, previous row"], ["→ ←", "unfold, fold or go to the parent"], ["Enter", "fold or unfold; open what is chosen"],
  ["[ ]", "previous, next turn"], ["e E", "next, previous error"], ["n N", "next, previous match"], ["/", "filter or search"],
  ["1 0", "turns only, everything; on Now 1–9 open an agent"], ["m", "on Now: mute the alarm of the chosen card"], ["a", "auto-zoom to the rows, on or locked"], ["f", "fit the whole session"], ["+ −", "zoom; also Ctrl and the wheel, or a drag on the ruler"], ["Shift and the wheel", "pan"], ["double click", "on a bar: fit it; on a name: fold"],
  ["s", "focus a subagent; again or Esc: back"], ["c", "critical path of the turn; in a conversation: copy the turn as Markdown"], ["F", "follow what runs"], ["*", "star, on a session or in the list"], ["= − c", "on a value: only rows with it, without it; copy it"], ["v w m l d i", "views of a session: conversation, waterfall, flame, log, edits, insights"],
  ["y", "copy the address of this view"], ["b", "blur text, for a shared screen"], ["Ctrl K", "go to a page, session or command"],
  ["t < >", "period: the next one, earlier, later"], ["g then o n s e l t i f v h p", "overview, now, sessions, errors, latency, time, files, search, live, health, privacy"],
  ["Esc", "clear the filter; back to the whole session, then to the conversation"], ["?", "this list"],
];

/** @param {{ dialog: RefObject<HTMLDialogElement> }} props */
export function Help({ dialog }) {
  const [on, turn] = useState(enabled);
  /** @param {boolean} ticked */
  const choose = (ticked) => {
    setEnabled(ticked);
    turn(ticked);
  };
  return html`<dialog ref=${dialog} aria-labelledby="help-title" onClick=${closeBeside(dialog)}>
      <form method="dialog"><header><h2 id="help-title">Keys</h2><button>close</button></header></form>
      <dl>${HELP.map(([key, what]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>
      <label><input type="checkbox" checked=${on} onChange=${onTick(choose)} /> keys are on (off inside fields)</label>
    </dialog>`;
}
