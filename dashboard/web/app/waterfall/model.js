// What the waterfall shows: a trace, its folds, filter, marks and selection. Knows no DOM, no clock and no network.
/** @import { Group, Idle, Interval, Trace } from "../../types/trace" */
import { empty } from "../trace/columns.js";
import { busy, endOf, kindIndex, visibleRows } from "../trace/rows.js";
import { gaps } from "./axis.js";

/** The place of a row that is not shown. It is greater than any place of a shown row. */
const NOWHERE = 0xffff_ffff;

/**
 * From the first start to the last end. A session that waits for its user is still open, but nothing happens in it. So
 * only running calls last until `now`.
 * @param {Trace} trace @param {number} now @returns {Interval}
 */
function extent(trace, now) {
  const session = kindIndex(trace, "session");
  let from = trace.n ? Infinity : 0;
  let to = 1;
  for (let i = 0; i < trace.n; i += 1) {
    from = Math.min(from, trace.start[i]);
    const waits = trace.kind[i] === session && trace.dur[i] < 0;
    to = Math.max(to, waits ? trace.start[i] : endOf(trace, i, now));
  }
  return [from, to];
}

export class Model {
  constructor() {
    /** @type {Trace} */
    this.trace = empty();
    /** Whether a trace was shown yet. */
    this.loaded = false;
    /** Open spans last until this time, microseconds from the session's start. */
    this.now = 0;
    /** Shown rows: an index into the trace, or `-1 - k` for `idle[k]`. @type {number[]} */
    this.rows = [];
    /** @type {Idle[]} */
    this.idle = [];
    /** Groups by the index of their first member. @type {Map<number, Group>} */
    this.groups = new Map();
    /** Place of each span among `rows`. */
    this.position = new Uint32Array(0);
    /** Idle gaps that the axis cuts. @type {Interval[]} */
    this.cuts = [];
    /** From the first start to the last end. @type {Interval} */
    this.span = [0, 1];
    /** Row keys of folded spans. @type {Set<number>} */
    this.folded = new Set();
    /** Row keys of the first members of unfolded groups. @type {Set<number>} */
    this.opened = new Set();
    /** Rows that match the filter; null without a filter. @type {Uint8Array | null} */
    this.hit = null;
    /** Rows of the critical path, or null. @type {Uint8Array | null} */
    this.marked = null;
    /** Text beside a bar, by row key. @type {Map<number, string>} */
    this.notes = new Map();
    /** What a turn's time went into, as a background, by row key. @type {Map<number, string | undefined>} */
    this.mixes = new Map();
    /** Index of the chosen row, -1 for none. */
    this.selected = -1;
    /** Increases with every change. Rows that were drawn for an older version are out of date. */
    this.version = 0;
  }

  /** Marks everything drawn as out of date. */
  touch() {
    this.version += 1;
  }

  /** @param {Trace} trace @param {number} now */
  show(trace, now) {
    this.trace = trace;
    this.loaded = true;
    this.now = now;
    this.cuts = gaps(busy(trace, now));
    this.span = extent(trace, now);
    this.layout();
  }

  /** Recomputes the shown rows after folds, filter or trace changed. */
  layout() {
    const { rows, idle, groups } = visibleRows(this.trace, this.folded, this.hit, this.now, this.opened);
    this.rows = rows;
    this.idle = idle;
    this.groups = groups;
    this.position = new Uint32Array(this.trace.n).fill(NOWHERE);
    for (let at = 0; at < rows.length; at += 1) if (rows[at] >= 0) this.position[rows[at]] = at;
    this.touch();
  }

  /** The place of a span among the shown rows; undefined for one that is not shown. @param {number | undefined} i */
  at(i) {
    return i !== undefined && this.position[i] < this.rows.length ? this.position[i] : undefined;
  }

  /** @param {number} i */
  endOf(i) {
    return endOf(this.trace, i, this.now);
  }

  /** The end of what a row shows. For a folded group, the latest end of its members. @param {number} i */
  endOfRow(i) {
    const group = this.groups.get(i);
    if (!group || group.open) return this.endOf(i);
    let end = 0;
    for (let k = i; k < group.last; k += 1) end = Math.max(end, this.endOf(k));
    return end;
  }

  /** Whether a row has rows below it, shown or folded. @param {number} i */
  isParent(i) {
    return this.groups.has(i) || this.trace.last[i] > i + 1;
  }

  /** Whether the rows below a row are shown. @param {number} i */
  isExpanded(i) {
    const group = this.groups.get(i);
    if (group) return group.open;
    return this.isParent(i) && (this.hit !== null || !this.folded.has(this.trace.row[i]));
  }

  /** The first member of the group that holds `i`, or -1. @param {number} i */
  groupOf(i) {
    for (const [first, group] of this.groups) if (i >= first && i < group.last) return first;
    return -1;
  }

  /** The outermost turn at or above `i`, or -1. @param {number} i */
  turnOf(i) {
    const turn = kindIndex(this.trace, "turn");
    let found = -1;
    for (let up = i; up >= 0; up = this.trace.parent[up]) if (this.trace.kind[up] === turn) found = up;
    return found;
  }

  /** Unfolds whatever hides a row, except a filter. Returns whether the rows changed. @param {number} i */
  reveal(i) {
    let changed = false;
    for (let up = this.trace.parent[i]; up >= 0; up = this.trace.parent[up]) {
      changed = this.folded.delete(this.trace.row[up]) || changed;
    }
    if (changed) this.layout();
    if (this.hit || this.at(i) !== undefined) return changed;
    const first = this.groupOf(i);
    if (first < 0) return changed;
    this.opened.add(this.trace.row[first]);
    this.layout();
    return true;
  }

  /** Folds or unfolds a row. Returns whether there was anything to fold. @param {number} i @param {boolean} [open] */
  toggle(i, open) {
    const key = this.trace.row[i];
    if (this.groups.has(i)) {
      if (open ?? !this.opened.has(key)) this.opened.add(key);
      else this.opened.delete(key);
    } else if (this.trace.last[i] > i + 1) {
      if (open ?? this.folded.has(key)) this.folded.delete(key);
      else this.folded.add(key);
    } else {
      return false;
    }
    this.layout();
    return true;
  }

  /** Folds every turn. */
  foldTurns() {
    const turn = kindIndex(this.trace, "turn");
    for (let i = 0; i < this.trace.n; i += 1) if (this.trace.kind[i] === turn) this.folded.add(this.trace.row[i]);
  }

  /** Unfolds everything. Groups are known only once everything above them is open. */
  unfoldAll() {
    this.folded.clear();
    this.layout();
    for (const first of this.groups.keys()) this.opened.add(this.trace.row[first]);
    this.layout();
  }
}
