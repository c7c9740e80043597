// A found text in pieces, some of them marked. Positions are UTF-16 units of the text as it came.
import { visible } from "./text.js";

/** `{text, marked}` in order. Marks may touch, overlap or lie outside: none of that breaks the text. */
export function pieces(text, marks) {
  const out = [];
  let at = 0;
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
