// Decodes a session's spans into columns, and merges deltas into them.
/** @import { Columns } from "../../types/answers" */
/** @import { Trace } from "../../types/trace" */

/** Status codes. */
export const OK = 0, ERROR = 1, OPEN = 2, UNKNOWN = 3;
/** Flag bits. */
export const INFERRED_START = 1, INFERRED_END = 2, TRUNCATED = 4, PAYLOAD = 8, TENTATIVE = 16, LATE = 32, UNKNOWN_LENGTH = 64, ASKS_PERSON = 128;

/** Whether a call repeats the failure of its subagent; only a subagent has a link that may be tentative. @param {Trace} trace @param {number} i */
export const repeats = (trace, i) => (trace.flags[i] & TENTATIVE) !== 0 && trace.kinds[trace.kind[i]] !== "subagent";

/** Columns that stay the same when a row moves. */
const COPIED = /** @type {const} */ (["row", "start", "dur", "wait", "label", "kind", "status", "flags"]);

/** A trace from an answer of `GET sessions/{id}/spans`. @param {Columns} answer */
export function decode(answer) {
  const n = answer.n;
  const trace = blank(n);
  trace.rev = answer.rev;
  trace.t0 = answer.t0_us;
  trace.strs = answer.strs;
  trace.kinds = answer.kinds;
  const parentRow = answer.parent?.length ? answer.parent : null;
  let row = 0;
  let start = 0;
  for (let i = 0; i < n; i += 1) {
    row += answer.row[i];
    start += answer.start_us[i];
    trace.row[i] = row;
    trace.start[i] = start;
    trace.dur[i] = answer.dur_us[i];
    trace.label[i] = answer.label[i];
    trace.kind[i] = answer.kind[i];
    trace.status[i] = answer.status[i];
    trace.flags[i] = answer.flags[i];
    trace.parent[i] = parentRow || !answer.up[i] ? -1 : i - answer.up[i];
  }
  for (const [i, us] of answer.wait) trace.wait[i] = us;
  trace.parentRow = parentRow;
  if (!parentRow) shape(trace);
  return trace;
}

/** A trace without spans. */
export const empty = () => blank(0);

/** @param {number} n @returns {Trace} */
function blank(n) {
  return {
    n,
    rev: 0,
    t0: 0,
    strs: [],
    kinds: [],
    row: new Float64Array(n),
    start: new Float64Array(n),
    dur: new Float64Array(n),
    wait: new Float64Array(n),
    label: new Uint32Array(n),
    kind: new Uint8Array(n),
    status: new Uint8Array(n),
    flags: new Uint8Array(n),
    parent: new Int32Array(n),
    depth: new Uint16Array(n),
    last: new Int32Array(n),
    parentRow: null,
    index: new Map(),
  };
}

/** Computes depth, and the index after the last descendant. Pre-order allows one pass for each. @param {Trace} trace */
function shape(trace) {
  const { n, parent, depth, last } = trace;
  for (let i = 0; i < n; i += 1) {
    depth[i] = parent[i] < 0 ? 0 : Math.min(65_535, depth[parent[i]] + 1);
    last[i] = i + 1;
  }
  for (let i = n - 1; i >= 0; i -= 1) {
    if (parent[i] >= 0 && last[parent[i]] < last[i]) last[parent[i]] = last[i];
  }
  trace.index.clear();
  for (let i = 0; i < n; i += 1) trace.index.set(trace.row[i], i);
}

/**
 * `base` with the changed rows of `answer`. Null if a row was removed; then all spans must be fetched again.
 * @param {Trace} base @param {Columns} answer
 */
export function merge(base, answer) {
  if (answer.n === 0 && answer.total === base.n) return Object.assign(base, { rev: answer.rev });
  const parents = answer.parent ?? [];
  const delta = decode({ ...answer, parent: answer.n ? parents : [] });
  let added = 0;
  for (let i = 0; i < delta.n; i += 1) if (!base.index.has(delta.row[i])) added += 1;
  if (base.n + added !== answer.total) return null;
  const all = blank(base.n + added);
  all.rev = answer.rev;
  all.t0 = Math.min(base.t0, delta.t0);
  all.strs = base.strs.slice();
  all.kinds = base.kinds.slice();
  const strOf = interner(all.strs);
  const kindOf = interner(all.kinds);
  const parentRow = new Float64Array(all.n);
  /** @param {number} i @param {Trace} from @param {number} j @param {number} label @param {number} kind */
  const put = (i, from, j, label, kind) => {
    all.row[i] = from.row[j];
    all.start[i] = from.start[j] + from.t0 - all.t0;
    all.dur[i] = from.dur[j];
    all.wait[i] = from.wait[j];
    all.status[i] = from.status[j];
    all.flags[i] = from.flags[j];
    all.label[i] = label;
    all.kind[i] = kind;
  };
  for (let i = 0; i < base.n; i += 1) {
    put(i, base, i, base.label[i], base.kind[i]);
    parentRow[i] = base.parent[i] < 0 ? 0 : base.row[base.parent[i]];
  }
  let next = base.n;
  for (let j = 0; j < delta.n; j += 1) {
    const i = base.index.get(delta.row[j]) ?? next++;
    put(i, delta, j, strOf(delta.strs[delta.label[j]]), kindOf(delta.kinds[delta.kind[j]]));
    parentRow[i] = parents[j];
  }
  return reorder(all, parentRow);
}

/** @param {string[]} list @returns {(value: string) => number} */
function interner(list) {
  const known = new Map(list.map((value, i) => [value, i]));
  return (value) => {
    let i = known.get(value);
    if (i === undefined) {
      i = list.push(value) - 1;
      known.set(value, i);
    }
    return i;
  };
}

/** Sorts rows as the server does: parents before children, siblings by start, then by row.
 * @param {Trace} from @param {Float64Array} parentRow */
function reorder(from, parentRow) {
  const n = from.n;
  const index = new Map();
  for (let i = 0; i < n; i += 1) index.set(from.row[i], i);
  const sorted = Array.from({ length: n }, (_, i) => i);
  sorted.sort((a, b) => from.start[a] - from.start[b] || from.row[a] - from.row[b]);
  /** @type {Map<number, number[]>} */
  const children = new Map();
  for (const i of sorted) {
    const up = index.get(parentRow[i]) ?? -1;
    const key = up === i ? -1 : up;
    const list = children.get(key);
    if (list) list.push(i);
    else children.set(key, [i]);
  }
  /** @type {number[]} */
  const order = [];
  const place = new Int32Array(n).fill(-1);
  /** @param {number[]} stack */
  const visit = (stack) => {
    for (let i = stack.pop(); i !== undefined; i = stack.pop()) {
      if (place[i] >= 0) continue;
      place[i] = order.push(i) - 1;
      const below = children.get(i);
      if (below) for (let k = below.length - 1; k >= 0; k -= 1) stack.push(below[k]);
    }
  };
  visit((children.get(-1) ?? []).slice().reverse());
  // Rows whose parents form a circle go to the top, so that none is lost.
  if (order.length < n) visit(sorted.slice().reverse());
  const out = blank(n);
  Object.assign(out, { rev: from.rev, t0: from.t0, strs: from.strs, kinds: from.kinds });
  for (let i = 0; i < n; i += 1) {
    const j = order[i];
    for (const name of COPIED) out[name][i] = from[name][j];
    const up = index.get(parentRow[j]);
    const at = up === undefined ? -1 : place[up];
    out.parent[i] = at >= 0 && at < i ? at : -1;
  }
  shape(out);
  return out;
}
