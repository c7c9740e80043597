// Rows of the live page, newest first, each once.
/** @import { SpanRow } from "../../types/answers" */

/** Maximum number of rows, also while the page is paused. */
export const KEPT_MAX = 1_000;

/** `old`, with `items` changed or added. @template {Pick<SpanRow, "row" | "start_us">} T @param {T[]} old @param {T[]} items */
export function upsert(old, items) {
  const rows = new Map(old.map((row) => [row.row, row]));
  for (const item of items) rows.set(item.row, item);
  return [...rows.values()].sort((a, b) => b.start_us - a.start_us || b.row - a.row).slice(0, KEPT_MAX);
}
