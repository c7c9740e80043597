// The texts of rows, requested as rows come into view: a few at a time, latest view first, and a bounded number kept.
/** @import { StepItem } from "../../types/conversation" */

/** Maximum rows per request; the API answers no more. */
const ASK_MAX = 48;
/** Rows that are kept. */
const KEEP_MAX = 1_200;
/** Time before a row that could not be read is requested again. */
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
    /** By row key, the least recently used first. @type {Map<number, StepItem>} */
    this.known = new Map();
    /** When a request for a row failed. @type {Map<number, number>} */
    this.missing = new Map();
    /** Rows that changed since they were requested. @type {Set<number>} */
    this.stale = new Set();
    /** @type {number[]} */
    this.wanted = [];
    this.busy = false;
    this.alive = true;
  }

  stop() {
    this.alive = false;
  }

  /** The texts of a row, if they have arrived. @param {number} row */
  of(row) {
    return this.known.get(row);
  }

  /** Sets the rows in view. Earlier rows that have not arrived are no longer wanted. @param {number[]} rows */
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

  /** Marks changed rows. Their texts are requested again when they are in view. @param {Iterable<number>} rows */
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
    // If not even one row fits, it must not be requested for ever.
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
