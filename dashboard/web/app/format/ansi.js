// Terminal output as runs of text with classes. SGR bold and the 16 colours are kept. Every other sequence is dropped, even
// one that never ends.
import { printed } from "./text.js";

const ESC = "\u001B";

/**
 * @typedef {{ text: string, bold: boolean, color: number | null }} Run color is 0 to 15
 * @param {string} input
 */
export function runs(input) {
  /** @type {Run[]} */
  const out = [];
  let bold = false;
  /** @type {number | null} */
  let color = null;
  let from = 0;
  /** @param {number} to */
  const emit = (to) => {
    const text = printed(input.slice(from, to));
    if (!text) return;
    const last = out[out.length - 1];
    if (last && last.bold === bold && last.color === color) last.text += text;
    else out.push({ text, bold, color });
  };
  let at = 0;
  while (at < input.length) {
    const c = input[at];
    const csi = c === "\u009B" || (c === ESC && input[at + 1] === "[");
    if (c !== ESC && !isC1Opener(c)) {
      at += 1;
      continue;
    }
    emit(at);
    if (csi) {
      const end = csiEnd(input, at + (c === ESC ? 2 : 1));
      if (input[end - 1] === "m") {
        ({ bold, color } = sgr(input.slice(at + (c === ESC ? 2 : 1), end - 1), bold, color));
      }
      at = end;
    } else if (c !== ESC || "]PX^_".includes(input[at + 1] ?? "-")) {
      at = stringEnd(input, at + (c === ESC ? 2 : 1));
    } else {
      at = escEnd(input, at + 1);
    }
    from = at;
  }
  emit(input.length);
  return out;
}

/** @param {string} c */
function isC1Opener(c) {
  return c === "\u009B" || c === "\u009D" || c === "\u0090" || c === "\u0098" || c === "\u009E" || c === "\u009F";
}

/** Parameters and intermediates, then one final byte. A byte that fits nowhere ends the sequence and stays text.
 * @param {string} input @param {number} at */
function csiEnd(input, at) {
  while (at < input.length && input[at] >= " " && input[at] <= "?") at += 1;
  if (at < input.length && input[at] >= "@" && input[at] <= "~") return at + 1;
  return at;
}

/** OSC, DCS, SOS, PM, APC: up to BEL or ST; without one, up to the end of the line.
 * @param {string} input @param {number} at */
function stringEnd(input, at) {
  for (; at < input.length; at += 1) {
    const c = input[at];
    if (c === "\u0007" || c === "\u009C") return at + 1;
    if (c === ESC) return input[at + 1] === "\\" ? at + 2 : at;
    if (c === "\n") return at;
  }
  return at;
}

/** @param {string} input @param {number} at */
function escEnd(input, at) {
  while (at < input.length && input[at] >= " " && input[at] <= "/") at += 1;
  if (at < input.length && input[at] >= "0" && input[at] <= "~") return at + 1;
  return at;
}

/** @param {string} parameters @param {boolean} bold @param {number | null} color */
function sgr(parameters, bold, color) {
  const codes = parameters === "" ? [0] : parameters.split(/[;:]/).map((p) => (p === "" ? 0 : Number(p)));
  for (let i = 0; i < codes.length; i += 1) {
    const code = codes[i];
    if (code === 0) [bold, color] = [false, null];
    else if (code === 1) bold = true;
    else if (code === 22) bold = false;
    else if (code >= 30 && code <= 37) color = code - 30;
    else if (code >= 90 && code <= 97) color = code - 82;
    else if (code === 39) color = null;
    else if (code === 38 || code === 48) i += codes[i + 1] === 5 ? 2 : 4;
  }
  return { bold, color };
}
