// Makes hostile text visible: characters that reorder text, hide text or take no room are spelled out. `collector/src/text.rs` has
// the same rule for terminals; both are tested with tests/corpus/hidden.json.

// C1 controls, soft hyphen, fillers, marks of direction, joiners, variation selectors, tags and other characters that are ignored.
const HIDDEN = /[\u0080-\u009F\u00AD\u034F\u061C\u115F\u1160\u17B4\u17B5\u180B-\u180F\u200B-\u200F\u2028-\u202E\u2060-\u206F\u3164\uFE00-\uFE0F\uFEFF\uFFA0\uFFF0-\uFFFB\u{1BCA0}-\u{1BCA3}\u{1D173}-\u{1D17A}\u{E0000}-\u{E0FFF}]/u;
// U+FE0E and U+FE0F select how the symbol before them is shown, and belong to that symbol.
const SPELL = new RegExp(HIDDEN, "gu");
const SYMBOL = /[\u00A9\u00AE\u203C\u2049\u2122\u2139\u2190-\u2BFF\u3030\u303D\u3297\u3299\u{1F000}-\u{1FAFF}]$/u;
const CONTROL = /[\u0000-\u0008\u000B-\u001F\u007F]/g;
const LONE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g;
const ANY = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u00AD\u034F\u061C\u115F\u1160\u17B4\u17B5\u180B-\u180F\u200B-\u200F\u2028-\u202E\u2060-\u206F\u3164\uFE00-\uFE0F\uFEFF\uFFA0\uFFF0-\uFFFB\uD800-\uDFFF]/;

/** Text for the page. Hidden characters become `[U+202E]`, control characters their pictures. Line ends and tabs stay.
 * @param {unknown} text */
export function visible(text) {
  if (text == null) return "";
  const string = String(text);
  // This runs for every row of a scroll, and most text has no such character.
  if (!ANY.test(string)) return string;
  return string
    .replace(/\r\n/g, "\n")
    .replace(CONTROL, (c) => (c === "\x7F" ? "\u2421" : String.fromCharCode(0x2400 + c.charCodeAt(0))))
    .replace(SPELL, spelled)
    .replace(LONE, "\uFFFD");
}

/** A terminal's output without control characters, which would move a cursor that a page does not have. @param {string} text */
export function printed(text) {
  return visible(text.replace(CONTROL, "").replace(/[\u0080-\u009F]/g, ""));
}

/** @param {string} c */
function spelled(c, at = 0, whole = "") {
  // After a symbol one selector stays.
  if ((c === "\uFE0E" || c === "\uFE0F") && (SYMBOL.test(whole.slice(Math.max(0, at - 2), at)) || whole[at + 1] === "\u20E3")) return c;
  return `[U+${(c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}]`;
}

/** The address if it may become a link, else null. @param {string} text */
export function safeLink(text) {
  try {
    const url = new URL(text);
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : null;
  } catch {
    return null;
  }
}
