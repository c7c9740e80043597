// Saves rows of a page as a file for spreadsheets.

/** A cell. A text that a spreadsheet would run as a formula gets an apostrophe before it. @param {unknown} value */
function cell(value) {
  if (value == null) return "";
  if (typeof value === "number") return String(value);
  const text = String(value).replace(/^[=+\-@\t\r＝＋－＠]/, "'$&");
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Rows as RFC 4180 says, the names of the columns first. @param {string[]} names @param {unknown[][]} rows */
export const csv = (names, rows) => `${[names, ...rows].map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;

/** A time in the form that every spreadsheet reads; UTC, as the Z says. @param {number} us */
export const iso = (us) => new Date(us / 1_000).toISOString();

/** Saves rows as a file. @param {string} name @param {string[]} names @param {unknown[][]} rows */
export function saveCsv(name, names, rows) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csv(names, rows)], { type: "text/csv" }));
  link.download = `hookspan-${name}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
