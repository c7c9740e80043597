// Splits the text of a search hit into marked and unmarked pieces. Positions are UTF-16 units of the original text.
import { visible } from "./text.js";

/**
 * The pieces in order. Marks may touch, overlap or lie outside the text.
 * @param {string} text @param {number[][]} marks from and to
 */
export function pieces(text, marks) {
  /** @type {{ text: string, marked: boolean }[]} */
  const out = [];
  let at = 0;
  /** @param {number} to @param {boolean} marked */
  const push = (to, marked) => {
    if (to <= at) return;
    out.push({ text: visible(text.slice(at, to)), marked });
    at = to;
  };
  for (const [from, to] of marks.slice().sort((a, b) => a[0] - b[0])) {
    push(Math.min(text.length, Math.max(at, from)), false);
    push(Math.min(text.length, to), true);
  }
  push(text.length, false);
  return out;
}
