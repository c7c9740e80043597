// Which rows the conversation of a session has, and which are open at first. Knows no DOM and no network.
/** @import { Form, StepItem } from "../../types/conversation" */
/** @import { Group, Idle, Trace } from "../../types/trace" */
import { empty, ERROR } from "../trace/columns.js";
import { kindIndex, visibleRows } from "../trace/rows.js";

/** Edits of up to this many lines are open at first. */
const SMALL_EDIT = 8;
const NOWHERE = 0xffff_ffff;

/** @type {Record<string, Form>} */
const FORMS = { turn: "prompt", thinking: "thought", response: "answer", edits: "edit", subagent: "agent", compaction: "note", tab: "note", session: "note" };

/** Number of lines that an edit changes: as counted, or else from its text. @param {NonNullable<StepItem["edit"]>} edit */
function linesOf({ added, removed, hunks, left, summary }) {
  const seen = hunks.reduce((sum, hunk) => sum + hunk.lines.filter((line) => line.op !== " ").length, left);
  return summary ? Infinity : Math.max(added + removed, seen);
}

export class Script {
  constructor() {
    /** @type {Trace} */
    this.trace = empty();
    this.now = 0;
    /** @type {Uint8Array | null} */
    this.hit = null;
    /** Shown rows: an index into the trace, or `-1 - k` for `idle[k]`. @type {number[]} */
    this.rows = [];
    /** @type {Idle[]} */
    this.idle = [];
    /** @type {Map<number, Group>} */
    this.groups = new Map();
    this.position = new Uint32Array(0);
    /** The turn of each row, or the row that replaces one. */
    this.top = new Int32Array(0);
    /** How far each row is indented. */
    this.level = new Uint8Array(0);
    /** Rows that the user opened or closed, by row key. @type {Map<number, boolean>} */
    this.chosen = new Map();
    /** Row keys of groups that are unfolded. @type {Set<number>} */
    this.unfolded = new Set();
    /** `0` opens everything, `1` shows only prompts. @type {"all" | "prompts" | null} */
    this.mode = null;
    this.version = 0;
  }

  /** @param {Trace} trace @param {number} now @param {Uint8Array | null} hit matches of the filter */
  show(trace, now, hit) {
    const before = this.trace;
    this.trace = trace;
    this.now = now;
    this.hit = hit;
    if (trace !== before) this.survey();
    this.layout();
  }

  /** Finds the turn and the level of every row. */
  survey() {
    const { trace } = this;
    const session = kindIndex(trace, "session");
    this.top = new Int32Array(trace.n);
    this.level = new Uint8Array(trace.n);
    for (let i = 0; i < trace.n; i += 1) {
      const up = trace.parent[i];
      const first = up < 0 || trace.kind[up] === session;
      this.top[i] = first ? i : this.top[up];
      // Direct children of a turn are not indented. A call that only delegates has no row of its own.
      this.level[i] = first || up === this.top[i] ? 0 : Math.min(12, this.level[up] + (this.delegates(up) ? 0 : 1));
    }
  }

  /** Whether a row's call does nothing but start the subagent below it. @param {number} i */
  delegates(i) {
    const { trace } = this;
    const agent = kindIndex(trace, "subagent");
    const below = i + 1;
    return trace.last[i] > below && trace.kind[below] === agent && trace.parent[below] === i && trace.last[below] === trace.last[i]
      && this.form(i) === "call" && (trace.status[i] !== ERROR || trace.status[below] === ERROR);
  }

  layout() {
    const { trace } = this;
    const session = kindIndex(trace, "session");
    const folds = { has: (/** @type {number} */ key) => !this.isOpen(trace.index.get(key) ?? 0) };
    // Rows with a text of their own are never grouped.
    const speaks = (/** @type {number | undefined} */ i) => i !== undefined && ["edit", "thought", "answer"].includes(this.form(i));
    const groups = { has: (/** @type {number} */ key) => this.unfolded.has(key) || speaks(trace.index.get(key)) };
    const shown = visibleRows(trace, /** @type {Set<number>} */ (folds), this.hit, this.now, this.mode === "all" ? null : /** @type {Set<number>} */ (groups));
    for (const first of shown.groups.keys()) if (speaks(first)) shown.groups.delete(first);
    this.rows = shown.rows.filter((i) => i < 0 || (trace.kind[i] !== session && !this.delegates(i)));
    this.idle = shown.idle;
    this.groups = shown.groups;
    this.position = new Uint32Array(trace.n).fill(NOWHERE);
    for (let at = 0; at < this.rows.length; at += 1) if (this.rows[at] >= 0) this.position[this.rows[at]] = at;
    this.version += 1;
  }

  /** @param {number} i @returns {Form} */
  form(i) {
    return i < 0 ? "idle" : FORMS[this.trace.kinds[this.trace.kind[i]]] ?? "call";
  }

  /** Whether a row has rows below it. @param {number} i */
  isParent(i) {
    return this.trace.last[i] > i + 1;
  }

  /** Whether a row's text, or the rows below it, are shown. @param {number} i @param {StepItem} [step] what is known of it */
  isOpen(i, step) {
    const { trace } = this;
    const form = this.form(i);
    const choice = this.chosen.get(trace.row[i]);
    if (choice !== undefined) return choice;
    if (this.mode === "prompts" && form === "prompt") return false;
    if (form === "prompt" || form === "answer" || this.mode === "all") return true;
    // Subagents are open to one level. The session, and calls that delegate, are never closed.
    if (form === "agent") return this.agentsAbove(i) === 0;
    if (this.isParent(i)) return true;
    if (trace.status[i] === ERROR) return true;
    return form === "edit" && step?.edit != null && linesOf(step.edit) <= SMALL_EDIT;
  }

  /** @param {number} i */
  agentsAbove(i) {
    const { trace } = this;
    let count = 0;
    for (let up = trace.parent[i]; up >= 0; up = trace.parent[up]) if (this.form(up) === "agent") count += 1;
    return count;
  }

  /** Whether the user asked for the whole text of a row. @param {number} i */
  isWhole(i) {
    return this.chosen.get(this.trace.row[i]) === true || this.mode === "all";
  }

  /** Whether the text of a row is needed. @param {number} i @param {StepItem} [step] */
  needsText(i, step) {
    const form = this.form(i);
    if (i < 0 || form === "note") return false;
    if (form === "prompt" || form === "answer" || form === "edit" || form === "thought") return !this.isGroup(i);
    return form === "agent" ? !this.isParent(i) : !this.isParent(i) && !this.isGroup(i) && this.isOpen(i, step);
  }

  /** Whether a row stands for several equal calls. @param {number} i */
  isGroup(i) {
    const group = this.groups.get(i);
    return group !== undefined && !group.open;
  }

  /** The place of a row, or of the row that represents it; undefined while a filter hides it. @param {number} i */
  at(i) {
    if (i < 0 || i >= this.trace.n) return undefined;
    for (let one = i; one >= 0; one = this.trace.parent[one]) {
      if (this.position[one] !== NOWHERE) return this.position[one];
      // The subagent represents the call that started it.
      if (this.delegates(one) && this.position[one + 1] !== NOWHERE) return this.position[one + 1];
    }
    // The session itself is represented by its first prompt.
    return this.rows.length ? 0 : undefined;
  }

  /** Opens whatever hides a row, except a filter. @param {number} i */
  reveal(i) {
    const { trace } = this;
    let changed = false;
    for (let up = trace.parent[i]; up >= 0; up = trace.parent[up]) {
      if (this.isOpen(up)) continue;
      this.chosen.set(trace.row[up], true);
      changed = true;
    }
    if (changed) this.layout();
    for (const [first, group] of this.groups) {
      if (group.open || i <= first || i >= group.last) continue;
      this.unfolded.add(trace.row[first]);
      this.layout();
      break;
    }
  }

  /** Opens or closes a row. @param {number} i @param {boolean} open */
  toggle(i, open) {
    const { trace } = this;
    if (this.groups.has(i)) {
      if (open) this.unfolded.add(trace.row[i]);
      else this.unfolded.delete(trace.row[i]);
    } else {
      this.chosen.set(trace.row[i], open);
    }
    this.layout();
  }

  /** @param {"all" | "prompts"} mode */
  setMode(mode) {
    this.mode = mode;
    this.chosen.clear();
    this.unfolded.clear();
    this.layout();
  }
}
