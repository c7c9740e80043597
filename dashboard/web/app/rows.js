// Which rows are shown: the tree with its folds, the idle gaps between turns, or the matches with their ancestors.

/** Idle time between turns shorter than this has no row. */
const IDLE_MIN_US = 2e6;

/** Index of a kind by name, -1 when the trace has none. */
export function kindIndex(trace, name) {
  return trace.kinds.indexOf(name);
}

/** End of a row: an open one lasts until `now`. */
export function endOf(trace, i, now) {
  return trace.dur[i] < 0 ? Math.max(now, trace.start[i]) : trace.start[i] + trace.dur[i];
}

/** Turns, or whatever else stands where turns stand: the busy intervals of a session. */
export function busy(trace, now) {
  const session = kindIndex(trace, "session");
  const out = [];
  for (let i = 0; i < trace.n; i += 1) {
    const up = trace.parent[i];
    const top = up < 0 || trace.kind[up] === session;
    if (top && trace.kind[i] !== session) out.push([trace.start[i], endOf(trace, i, now)]);
  }
  return out;
}

/**
 * Rows to show, in order: `{rows, idle}`. A row is an index into the trace, or `-1 - k` for `idle[k]` = `[from, to, depth]`.
 * `folded` holds row keys; with `hit`, only matches and their ancestors are shown and folds do not count.
 */
export function visibleRows(trace, folded, hit, now) {
  return hit ? { rows: matching(trace, hit), idle: [] } : unfolded(trace, folded, now);
}

function matching(trace, hit) {
  const keep = new Uint8Array(trace.n);
  for (let i = trace.n - 1; i >= 0; i -= 1) {
    if (hit[i]) keep[i] = 1;
    if (keep[i] && trace.parent[i] >= 0) keep[trace.parent[i]] = 1;
  }
  const rows = [];
  for (let i = 0; i < trace.n; i += 1) if (keep[i]) rows.push(i);
  return rows;
}

function unfolded(trace, folded, now) {
  const turn = kindIndex(trace, "turn");
  const rows = [];
  const idle = [];
  let end = null;
  let depth = 0;
  for (let i = 0; i < trace.n; ) {
    if (trace.kind[i] === turn) {
      if (end !== null && trace.depth[i] === depth && trace.start[i] - end >= IDLE_MIN_US) {
        rows.push(-idle.push([end, trace.start[i], depth]));
      }
      end = Math.max(endOf(trace, i, now), trace.depth[i] === depth && end !== null ? end : 0);
      depth = trace.depth[i];
    }
    rows.push(i);
    i = folded.has(trace.row[i]) ? trace.last[i] : i + 1;
  }
  return { rows, idle };
}
