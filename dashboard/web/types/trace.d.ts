// A session's spans as columns: arrays of one length, in pre-order (a parent before its children).

/**
 * Which siblings are equal: a number per row, -1 for rows that are never grouped. Kept together with the strings that
 * it was computed from.
 */
export interface Likeness {
  strs: string[];
  size: number;
  of(i: number): number;
}

export interface Trace {
  /** Number of spans. */
  n: number;
  /** Revision of the store that these columns show. */
  rev: number;
  /** The session's start, microseconds since the epoch. Times below count from here. */
  t0: number;
  strs: string[];
  kinds: string[];
  /** The store's key of a span: the same over reloads and deltas. */
  row: Float64Array;
  start: Float64Array;
  /** Duration; -1 while the span is open. */
  dur: Float64Array;
  /** Derived wait before the start. */
  wait: Float64Array;
  /** Index into `strs`. */
  label: Uint32Array;
  /** Index into `kinds`. */
  kind: Uint8Array;
  status: Uint8Array;
  flags: Uint8Array;
  /** Index of the parent, -1 for a root. */
  parent: Int32Array;
  depth: Uint16Array;
  /** Index after the last descendant. */
  last: Int32Array;
  /** Row keys of the parents. Only in a delta. */
  parentRow: number[] | null;
  /** Index by row key. */
  index: Map<number, number>;
  like?: Likeness;
}

/** Equal siblings that are shown as one row. */
export interface Group {
  /** The index after the last member. */
  last: number;
  count: number;
  /** Whether the members have rows of their own. */
  open: boolean;
}

/** Idle time between turns: from, to, depth. */
export type Idle = [from: number, to: number, depth: number];
export type Interval = [from: number, to: number];

/** Rows in the order of the page. A row is an index into the trace, or `-1 - k` for `idle[k]`. */
export interface ShownRows {
  rows: number[];
  idle: Idle[];
  /** Groups by the index of their first member. */
  groups: Map<number, Group>;
}

/** The conditions of the filter bar. A row must meet all of them. */
export interface Query {
  words: string[];
  kind: string | null;
  status: string | null;
  minUs: number | null;
  maxUs: number | null;
  /** Rows that match one of these do not match. */
  without: Query[];
}

export interface FlameNode {
  name: string;
  kind: string;
  /** Index of the first span of the node, -1 for the session. */
  first: number;
  us: number;
  count: number;
  errors: number;
  children: FlameNode[];
}

export interface FlameBox {
  node: FlameNode;
  depth: number;
  /** Left edge and width, shares of the whole. */
  x: number;
  w: number;
}

export interface CriticalPath {
  /** 1 for rows on the path. */
  marked: Uint8Array;
  /** Rows on the path, each with its time, in the order of time. */
  steps: { i: number; us: number }[];
  /** Time in which nothing below the top row ran. */
  own: number;
}

export interface ToolTotal {
  name: string;
  kind: string;
  n: number;
  errors: number;
  us: number | null;
}
