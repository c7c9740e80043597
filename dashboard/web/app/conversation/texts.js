// The texts of rows, asked for as rows come into view: a few at a time, the latest view first, and kept in bounds.
/** @import { StepItem } from "../../types/conversation" */

/** Rows in a question: the API answers no more. */
const ASK_MAX = 48;
/** Rows that are kept. */
const KEEP_MAX = 1_200;
/** A row that could not be had is asked for again after this. */
const AGAIN_MS = 4_000;

/**
 * @callback Ask
 * @param {number[]} rows
 * @returns {Promise<{ items: StepItem[], left: number[] }>}
 */

export class Texts {
  /** @param {Ask} ask @param {(rows: number[]) => unknown} arrived is told which rows came @param {() => number} [clock] milliseconds */
  constructor(ask, arrived, clock = () => performance.now()) {
    this.ask = ask;
    this.arrived = arrived;
    this.clock = clock;
    /** By row key, the one used longest ago first. @type {Map<number, StepItem>} */
    this.known = new Map();
    /** When a row was asked for in vain. @type {Map<number, number>} */
    this.missing = new Map();
    /** Rows that changed since they were asked for. @type {Set<number>} */
    this.stale = new Set();
    /** @type {number[]} */
    this.wanted = [];
    this.busy = false;
    this.alive = true;
  }

  stop() {
    this.alive = false;
  }

  /** The texts of a row, when they are here. @param {number} row */
  of(row) {
    return this.known.get(row);
  }

  /** Says what is in view. What was wanted before and is not here yet is no longer wanted. @param {number[]} rows */
  want(rows) {
    const now = this.clock();
    this.wanted = rows.filter((row) => {
      const item = this.known.get(row);
      if (item) {
        this.known.delete(row);
        this.known.set(row, item);
      }
      return (!item || this.stale.has(row)) && !(now - (this.missing.get(row) ?? -Infinity) < AGAIN_MS);
    });
    if (!this.busy && this.wanted.length) this.next();
  }

  /** Rows have changed: their texts are asked for again when they are in view. @param {Iterable<number>} rows */
  outdate(rows) {
    for (const row of rows) if (this.known.has(row)) this.stale.add(row);
  }

  async next() {
    this.busy = true;
    while (this.alive && this.wanted.length) {
      const rows = this.wanted.splice(0, ASK_MAX);
      for (const row of rows) this.stale.delete(row);
      try {
        const { items, left } = await this.ask(rows);
        this.keep(rows, items, left);
      } catch {
        this.lost(rows);
      }
    }
    this.busy = false;
  }

  /** @param {number[]} rows @param {StepItem[]} items @param {number[]} left rows that had no room in the answer */
  keep(rows, items, left) {
    if (!this.alive) return;
    for (const item of items) {
      this.known.delete(item.row);
      this.known.set(item.row, item);
      this.missing.delete(item.row);
    }
    const here = new Set([...items.map((item) => item.row), ...left]);
    this.lost(rows.filter((row) => !here.has(row)));
    // A first row that has no room for itself would be asked for without end.
    if (items.length) this.wanted.unshift(...left);
    for (const row of this.known.keys()) {
      if (this.known.size <= KEEP_MAX) break;
      this.known.delete(row);
      this.stale.delete(row);
    }
    this.arrived(items.map((item) => item.row));
  }

  /** @param {number[]} rows */
  lost(rows) {
    if (this.missing.size > KEEP_MAX) this.missing.clear();
    for (const row of rows) this.missing.set(row, this.clock());
  }
}
