// The rows of the conversation that are in the DOM. Elements of rows that scroll away are used for new rows.
/** @import { Step } from "../../types/conversation" */
/** @import { Heights } from "./heights.js" */
import { setHidden } from "../waterfall/dom.js";
import { makeStep } from "./row.js";

export class Pool {
  /** @param {HTMLElement} sheet the parent of all rows */
  constructor(sheet) {
    this.sheet = sheet;
    /** @type {Step[]} */
    this.steps = [];
  }

  /**
   * Puts exactly the wanted rows into the DOM. `fill` is called for new rows, and for rows of another version.
   * @param {Set<number>} wanted @param {number} version @param {(step: Step, at: number) => unknown} fill
   */
  mount(wanted, version, fill) {
    const free = [];
    for (const step of this.steps) {
      if (step.at < 0 || !wanted.delete(step.at)) free.push(step);
      else if (step.version !== version) fill(step, step.at);
    }
    for (const at of wanted) fill(free.pop() ?? this.add(), at);
    for (const step of free) this.release(step);
  }

  add() {
    const step = makeStep(this.steps.length);
    this.sheet.append(step.row);
    this.steps.push(step);
    return step;
  }

  /** @param {Step} step */
  release(step) {
    if (step.at === -1) return;
    step.at = -1;
    setHidden(step.row, true);
  }

  clear() {
    for (const step of this.steps) this.release(step);
  }

  /** Moves every mounted row to its present place. @param {Heights} heights */
  place(heights) {
    for (const step of this.steps) {
      if (step.at < 0) continue;
      const y = Math.round(heights.top(step.at));
      if (step.y !== y) step.row.style.transform = `translateY(${step.y = y}px)`;
    }
  }

  /** The mounted row of a place. @param {number | undefined} at */
  at(at) {
    return at === undefined ? undefined : this.steps.find((step) => step.at === at);
  }

  /** The place of the row that an event happened on, or -1. @param {Event} event */
  placeOf(event) {
    const row = event.target instanceof Element ? event.target.closest(".cv-row") : null;
    return this.steps.find((step) => step.row === row)?.at ?? -1;
  }
}
