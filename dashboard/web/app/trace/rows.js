// Which rows are shown. Without a filter: the tree with its folds, idle gaps between turns, and equal siblings as one row.
// With a filter: the matches and their ancestors.
/** @import { Group, Idle, Interval, ShownRows, Trace } from "../../types/trace" */
import { OK } from "./columns.js";

/** Idle time between turns shorter than this has no row. */
const IDLE_MIN_US = 2e6;

/** Index of a kind by name, -1 if the trace has none. @param {Trace} trace @param {string} name */
export function kindIndex(trace, name) {
  return trace.kinds.indexOf(name);
}

/** End of a row. An open row lasts until `now`. @param {Trace} trace @param {number} i @param {number} now */
export function endOf(trace, i, now) {
  return trace.dur[i] < 0 ? Math.max(now, trace.start[i]) : trace.start[i] + trace.dur[i];
}

/** Busy intervals of a session: its turns, and spans outside them. @param {Trace} trace @param {number} now */
export function busy(trace, now) {
  const session = kindIndex(trace, "session");
  /** @type {Interval[]} */
  const out = [];
  for (let i = 0; i < trace.n; i += 1) {
    const up = trace.parent[i];
    const top = up < 0 || trace.kind[up] === session;
    if (top && trace.kind[i] !== session) out.push([trace.start[i], endOf(trace, i, now)]);
  }
  return out;
}

/** This many equal calls in a row become one row: "9 × Read". */
const GROUP_MIN = 4;
/** Spans of these kinds are equal if their labels' first word (the tool) is. Other kinds need equal labels. */
const BY_TOOL = new Set(["tools", "edits", "mcp"]);
/** Kinds that are never grouped. */
const ALONE = new Set(["session", "turn", "subagent"]);

/**
 * Rows to show, in order.
 * @param {Trace} trace
 * @param {Set<number>} folded row keys; folds do not count with a filter
 * @param {Uint8Array | null} hit the matches of a filter, or null without one
 * @param {number} now
 * @param {Set<number> | null} open row keys of the first members of groups that are unfolded; null groups nothing
 * @returns {ShownRows}
 */
export function visibleRows(trace, folded, hit, now, open = null) {
  return hit ? { rows: matching(trace, hit), idle: [], groups: new Map() } : unfolded(trace, folded, now, open);
}

/** The tool of a label: its first word, without a comma. @param {string} label */
export function head(label) {
  const end = label.search(/,? /);
  return end < 0 ? label : label.slice(0, end);
}

/** A number per row that equal siblings share; -1 for rows that are never grouped. @param {Trace} trace */
function likeness(trace) {
  if (trace.like?.strs === trace.strs && trace.like.size === trace.strs.length) return trace.like.of;
  /** @type {Map<string, number>} */
  const ids = new Map();
  /** @param {string} text */
  const id = (text) => ids.get(text) ?? (ids.set(text, ids.size), ids.size - 1);
  const heads = trace.strs.map((text) => id(head(text)));
  const wholes = trace.strs.map((text) => id(text));
  const alone = trace.kinds.map((kind) => ALONE.has(kind));
  const byTool = trace.kinds.map((kind) => BY_TOOL.has(kind));
  /** @param {number} i */
  const of = (i) => (alone[trace.kind[i]] ? -1 : (byTool[trace.kind[i]] ? heads : wholes)[trace.label[i]]);
  trace.like = { strs: trace.strs, size: trace.strs.length, of };
  return of;
}

/** The index after the equal siblings that begin with `i`; `i + 1` when `i` stands alone. Only successful calls are grouped.
 * @param {Trace} trace @param {number} i @param {(i: number) => number} like */
function equals(trace, i, like) {
  const same = like(i);
  let next = i + 1;
  if (same < 0 || trace.status[i] !== OK || trace.last[i] !== next) return next;
  while (next < trace.n && trace.parent[next] === trace.parent[i] && trace.last[next] === next + 1
    && trace.kind[next] === trace.kind[i] && trace.status[next] === OK && like(next) === same) next += 1;
  return next;
}

/** @param {Trace} trace @param {Uint8Array} hit */
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

/** @param {Trace} trace @param {Set<number>} folded @param {number} now @param {Set<number> | null} open @returns {ShownRows} */
function unfolded(trace, folded, now, open) {
  const turn = kindIndex(trace, "turn");
  const like = open && likeness(trace);
  const rows = [];
  /** @type {Idle[]} */
  const idle = [];
  /** @type {Map<number, Group>} */
  const groups = new Map();
  /** @type {number | null} */
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
    const after = like ? equals(trace, i, like) : i + 1;
    if (after - i >= GROUP_MIN) {
      const group = { last: after, count: after - i, open: open?.has(trace.row[i]) ?? false };
      groups.set(i, group);
      if (group.open) for (let k = i + 1; k < after; k += 1) rows.push(k);
      i = after;
    } else {
      i = folded.has(trace.row[i]) ? trace.last[i] : i + 1;
    }
  }
  return { rows, idle, groups };
}
