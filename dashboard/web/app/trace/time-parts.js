// What the time of a turn went into.
/** @import { TimeParts } from "../../types/answers" */

/** The parts in the order in which they are drawn, with their labels. */
export const LABELS = {
  thinking: "thinking", responding: "responding", tools: "tools", shell: "shell", mcp: "mcp", edits: "edits", subagent: "subagent",
  wait: "wait (derived)", hooks: "other hooks", other: "unaccounted",
};
/** What each part is. @type {Record<keyof typeof LABELS, string>} */
export const ABOUT = {
  thinking: "thoughts of the model", responding: "answers, from the end of what came before", tools: "tools of no other kind", shell: "shell commands", mcp: "calls of MCP servers",
  edits: "changes of files", subagent: "subagents, while no call of theirs runs", wait: "between the two hooks of a call while it did not run: a person may have been asked", hooks: "what hooks cost", other: "the model's time, and time of which no hook tells",
};
export const PARTS = /** @type {(keyof typeof LABELS)[]} */ (Object.keys(LABELS));

/** The time of one part. @param {TimeParts} parts @param {keyof typeof LABELS} key */
export const partUs = (parts, key) => parts[`${key}_us`];

/** The time of each part over several turns, without parts that are zero.
 * @param {TimeParts[]} all @returns {[keyof typeof LABELS, number][]} */
export function sums(all) {
  /** @type {[keyof typeof LABELS, number][]} */
  const list = PARTS.map((key) => [key, all.reduce((sum, parts) => sum + partUs(parts, key), 0)]);
  return list.filter(([, us]) => us > 0);
}

/** A share of a whole, as text. @param {number} us @param {number} all */
export const share = (us, all) => (us < all / 200 ? "<1%" : `${Math.round((us / all) * 100)}%`);

/** The parts as a background of stripes; undefined when all are zero.
 * @param {TimeParts} parts @param {string} [direction] */
export function mix(parts, direction = "90deg") {
  const sum = PARTS.reduce((all, key) => all + partUs(parts, key), 0);
  if (!(sum > 0)) return undefined;
  let at = 0;
  const stops = [];
  for (const key of PARTS) {
    const us = partUs(parts, key);
    if (!us) continue;
    const to = at + (us / sum) * 100;
    stops.push(`var(--k-${key}) ${at.toFixed(1)}% ${to.toFixed(1)}%`);
    at = to;
  }
  return `linear-gradient(${direction}, ${stops.join(", ")})`;
}
