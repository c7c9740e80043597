// Rows of the live page, newest first, each once.

/** Rows that are kept, also while it is paused. */
export const KEPT_MAX = 1_000;

export function upsert(old, items) {
  const rows = new Map(old.map((row) => [row.row, row]));
  for (const item of items) rows.set(item.row, item);
  return [...rows.values()].sort((a, b) => b.start_us - a.start_us || b.row - a.row).slice(0, KEPT_MAX);
}
