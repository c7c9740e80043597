// The rows that are in the DOM: those in view and the chosen one. While rows scroll, elements that leave the view are
// reused for rows that enter it.
/** @import { Axis, Slot } from "../../types/waterfall" */
/** @import { Model } from "./model.js" */
import { setHidden } from "./dom.js";
import { fill, makeSlot } from "./row.js";

export class RowPool {
  /** @param {HTMLElement} sheet the parent of all rows */
  constructor(sheet) {
    this.sheet = sheet;
    /** @type {Slot[]} */
    this.slots = [];
  }

  /**
   * Draws the shown rows from `first` to `last`. `moved` tells whether the axis changed, because then every bar moves.
   * @param {Model} model @param {number} first @param {number} last @param {Axis} axis @param {boolean} moved
   */
  draw(model, first, last, axis, moved) {
    const wanted = new Set();
    for (let at = first; at < last; at += 1) wanted.add(at);
    // The chosen row stays in the DOM, because aria-activedescendant points to it.
    const chosen = model.at(model.selected);
    if (chosen !== undefined) wanted.add(chosen);
    const free = [];
    for (const slot of this.slots) {
      if (slot.at >= 0 && wanted.delete(slot.at)) {
        const old = slot.version !== model.version;
        if (moved || old) fill(slot, model, slot.at, axis, old);
      } else {
        free.push(slot);
      }
    }
    for (const at of wanted) {
      const slot = this.take(free, model.trace.kind[model.rows[at]]);
      fill(slot, model, at, axis, true);
    }
    for (const slot of free) {
      if (slot.at === -1) continue;
      slot.at = -1;
      setHidden(slot.row, true);
    }
    return chosen === undefined ? undefined : this.slots.find((slot) => slot.at === chosen);
  }

  /**
   * A free slot. A slot whose last row was of the same kind is preferred, because its colours are already right.
   * @param {Slot[]} free @param {number | undefined} kind
   */
  take(free, kind) {
    const like = free.findIndex((slot) => slot.kind === kind);
    const slot = free.splice(like, 1)[0] ?? this.add();
    slot.kind = kind;
    return slot;
  }

  add() {
    const slot = makeSlot(this.slots.length);
    this.sheet.append(slot.row);
    this.slots.push(slot);
    return slot;
  }

  /** The place of the shown row that an event happened on, or -1. @param {Event} event */
  placeOf(event) {
    const row = event.target instanceof Element ? event.target.closest(".wf-row") : null;
    return this.slots.find((slot) => slot.row === row)?.at ?? -1;
  }
}
