// The heatmap of durations: counts by time and power of two.
/** @import { Heatmap } from "../../types/answers" */

/**
 * The grid of an answer of `GET latency/heatmap`. Rows are buckets (log2 of microseconds), shortest first. Pure.
 * @param {Pick<Heatmap, "buckets" | "counts"> & { columns?: number }} answer
 */
export function grid(answer) {
  const buckets = answer.buckets;
  let columns = 0;
  let most = 0;
  /** @type {Map<number, number>} */
  const cells = new Map();
  for (const [column, row, n] of answer.counts) {
    columns = Math.max(columns, column + 1);
    most = Math.max(most, n);
    cells.set(column * 256 + row, n);
  }
  if (answer.columns) columns = answer.columns;
  /** @param {number} column @param {number} row */
  const at = (column, row) => cells.get(column * 256 + row) ?? 0;
  return { columns, rows: buckets.length, most, buckets, at };
}

/** The strength of a count's colour: logarithmic, so that a single call is visible. @param {number} n @param {number} most */
export function strength(n, most) {
  return n === 0 ? 0 : 0.15 + 0.85 * (Math.log1p(n) / Math.log1p(Math.max(1, most)));
}

/** The lower and upper edge of a bucket, microseconds. @param {number} bucket @returns {[number, number]} */
export function edges(bucket) {
  return [bucket <= 0 ? 0 : 2 ** bucket, 2 ** (bucket + 1)];
}
