// The part of the time that the waterfall shows. It is fitted to the rows in view until the user moves it.
/** @import { Interval } from "../../types/trace" */
/** @import { Axis } from "../../types/waterfall" */
/** @import { Model } from "./model.js" */
import { kindIndex } from "../trace/rows.js";
import { axis, toTime } from "./axis.js";

/**
 * While rows scroll, the axis is fitted only at every fourth frame, because moving all bars takes most of a frame's
 * time.
 */
const REFIT_FRAMES = 4;
/**
 * How many rows per frame the view is assumed to move at most, when the axis is also fitted to the rows that come next.
 */
const AHEAD_MAX = 9;

/**
 * The time that the rows from `first` to `last` need. The session itself is ignored, and so are parents that reach
 * beyond the view.
 * @param {Model} model @param {number} first @param {number} last @returns {Interval}
 */
export function fit(model, first, last) {
  const { trace, rows } = model;
  const session = kindIndex(trace, "session");
  let from = Infinity;
  let to = -Infinity;
  for (let at = first; at < last; at += 1) {
    const i = rows[at];
    if (i < 0) {
      const [a, b] = model.idle[-1 - i];
      if (at > first) from = Math.min(from, a);
      if (at < last - 1) to = Math.max(to, b);
      continue;
    }
    if (trace.kind[i] === session) continue;
    const end = model.endOfRow(i);
    const open = trace.last[i] > i + 1 && !model.folded.has(trace.row[i]) && !model.hit;
    const leaves = open && model.position[trace.last[i] - 1] >= last;
    from = Math.min(from, trace.start[i] - (leaves ? 0 : trace.wait[i]));
    to = Math.max(to, leaves ? trace.start[i] : end);
  }
  if (!(from < Infinity)) return model.span;
  const pad = Math.max((to - from) * 0.01, 500);
  return [Math.max(0, from - pad), Math.max(to + pad, from + 2_000)];
}

export class TimeWindow {
  constructor() {
    /** The window that the user chose; null while it follows the rows. @type {Interval | null} */
    this.manual = null;
    /** The axis that was drawn last. Null before the first drawing and if it must be drawn again. @type {Axis | null} */
    this.axis = null;
    this.first = 0;
    this.frames = 0;
  }

  /**
   * The window for the rows from `first` to `last`. `scrolling` tells that rows are moving, so the next frame must be
   * drawn, too.
   * @param {Model} model @param {number} first @param {number} last @param {boolean} sameRows whether only the scroll position changed
   */
  range(model, first, last, sameRows) {
    if (this.manual) return { range: this.manual, scrolling: false };
    const by = sameRows ? Math.max(-AHEAD_MAX, Math.min(AHEAD_MAX, first - this.first)) * REFIT_FRAMES : 0;
    this.first = first;
    if (by === 0) this.frames = 0;
    else if (this.frames++ % REFIT_FRAMES && this.axis) {
      return { range: /** @type {Interval} */ ([this.axis.from, this.axis.to]), scrolling: true };
    }
    // Includes the rows that will come into view until the next fit.
    const ahead = [Math.max(0, first + Math.min(0, by)), Math.min(model.rows.length, last + Math.max(0, by))];
    return { range: fit(model, ahead[0], ahead[1]), scrolling: by !== 0 };
  }

  /**
   * Computes the axis for the window. `changed` tells whether it differs from the one before.
   * @param {Interval} range @param {number} width @param {Interval[]} cuts
   */
  place([from, to], width, cuts) {
    const before = this.axis;
    this.axis = axis(from, to, width, cuts);
    return { scale: this.axis, changed: !before || before.from !== from || before.to !== to || before.width !== width };
  }

  /** Fixes the window where it is, or, if it was fixed, lets it follow the rows again. @returns {Interval | null} */
  toggled() {
    return this.manual || !this.axis ? null : [this.axis.from, this.axis.to];
  }

  /**
   * A window that is `factor` times as long. Its centre is the chosen row if that is in view.
   * @param {Model} model @param {number} factor @returns {Interval | null}
   */
  zoomed(model, factor) {
    if (!this.axis) return null;
    const { from, to, width } = this.axis;
    const i = model.selected;
    const chosen = i >= 0 ? (model.trace.start[i] + model.endOf(i)) / 2 : NaN;
    const center = chosen >= from && chosen <= to ? chosen : toTime(this.axis, width / 2);
    return this.within(model.span, center, Math.max(100, (to - from) * factor));
  }

  /**
   * A window that is `factor` times as long. The time `at` keeps its place on the track.
   * @param {Model} model @param {number} at @param {number} factor @returns {Interval | null}
   */
  zoomedAt(model, at, factor) {
    if (!this.axis) return null;
    const { from, to } = this.axis;
    const length = Math.max(100, (to - from) * factor);
    const before = (at - from) * (length / (to - from));
    return this.within(model.span, at - before + length / 2, length);
  }

  /** The window moved by `px` pixels of the track. @param {Model} model @param {number} px @returns {Interval | null} */
  panned(model, px) {
    if (!this.axis) return null;
    const { from, to, width } = this.axis;
    // Converted by the axis at that place, so the window moves faster over a cut.
    const us = px >= 0 ? toTime(this.axis, Math.min(width, px)) - from : from - toTime(this.axis, Math.min(width, -px));
    return this.within(model.span, (from + to) / 2 + us, to - from);
  }

  /** A window that shows one row, with room on both sides. @param {Model} model @param {number} i @returns {Interval} */
  over(model, i) {
    const from = model.trace.start[i] - model.trace.wait[i];
    const to = model.endOfRow(i);
    return this.within(model.span, (from + to) / 2, Math.max(1_000, (to - from) * 1.1));
  }

  /**
   * A window of the given length around a time, moved if necessary so that it lies within the session.
   * @param {Interval} span @param {number} center @param {number} length @returns {Interval}
   */
  within([first, last], center, length) {
    const from = Math.max(first, Math.min(center - length / 2, last - length));
    return [from, Math.min(last, from + length)];
  }
}
