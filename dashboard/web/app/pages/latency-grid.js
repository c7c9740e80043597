// The heatmap of durations: counts by time and power of two, as a canvas can paint them.

/**
 * The grid of an answer of `GET latency/heatmap`: `{columns, rows, most, at(column, row)}`; rows are buckets (log2 of
 * microseconds), longest first. Pure.
 */
export function grid(answer) {
  const buckets = answer.buckets;
  let columns = 0;
  let most = 0;
  const cells = new Map();
  for (const [column, row, n] of answer.counts) {
    columns = Math.max(columns, column + 1);
    most = Math.max(most, n);
    cells.set(column * 256 + row, n);
  }
  if (answer.columns) columns = answer.columns;
  return { columns, rows: buckets.length, most, buckets, at: (column, row) => cells.get(column * 256 + row) ?? 0 };
}

/** How strong a count is painted: logarithmic, so that one call is seen beside ten thousand. */
export function strength(n, most) {
  return n === 0 ? 0 : 0.15 + 0.85 * (Math.log1p(n) / Math.log1p(Math.max(1, most)));
}

/** The lower and upper edge of a bucket, microseconds. */
export function edges(bucket) {
  return [bucket <= 0 ? 0 : 2 ** bucket, 2 ** (bucket + 1)];
}
