// Makes hostile text visible: characters that reorder or hide text are spelled out.

const HIDDEN = /[\u202A-\u202E\u2066-\u2069\u200E\u200F\u061C\u200B-\u200D\u2060\uFEFF]/g;
const CONTROL = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/g;
const LONE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g;
const ANY = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069\u200B-\u200F\u061C\u2060\uFEFF\uD800-\uDFFF]/;

/** Text for the page. Direction marks become `[U+202E]`; other control characters are dropped, except line end and tab.
 * @param {unknown} text */
export function visible(text) {
  if (text == null) return "";
  const string = String(text);
  // This runs for every row of a scroll, and most text has no such character.
  if (!ANY.test(string)) return string;
  return string
    .replace(CONTROL, "")
    .replace(HIDDEN, (c) => `[U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}]`)
    .replace(LONE, "\uFFFD");
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
