// Small labels that several pages show.
/** @import { Children } from "../../types/app" */
import { duration } from "../format/quantity.js";
import { visible } from "../format/text.js";
import { ABOUT, LABELS, share } from "../trace/time-parts.js";
import { html } from "./html.js";

/** @type {Record<string, [icon: string, word: string]>} */
const STATES = {
  running: ["●", "running"],
  tool_open: ["◐", "tool running"],
  your_turn: ["▲", "your turn"],
  done: ["✓", "done"],
  errored: ["✕", "errored"],
  stale: ["–", "stale"],
};

/** A state as icon and word. @param {{ state: string }} props */
export function State({ state }) {
  const [icon, word] = STATES[state] ?? ["?", "other"];
  return html`<span class=${`state state-${STATES[state] ? state : "other"}`}><span aria-hidden="true">${icon}</span> ${word}</span>`;
}

/**
 * Where time went, as a list of parts with their shares of `total`.
 * @param {{ parts: [keyof typeof LABELS, number][], total: number, children?: Children }} props
 */
export function Legend({ parts, total, children }) {
  return html`<ul class="legend">${parts.map(([key, us]) => html`<li title=${`${share(us, total)} · ${ABOUT[key]}`}><i class=${`dot k-${key}`}></i>${LABELS[key]} <span class="num">${duration(us)}</span> <span class="dim num">${share(us, total)}</span></li>`)}${children}</ul>`;
}

/** `api / turn 7`. @param {{ project: string, turn?: number | null }} props */
export function Place({ project, turn }) {
  return `${visible(project)}${turn ? ` / turn ${turn}` : ""}`;
}
