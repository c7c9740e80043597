// The stretch of time that the waterfall shows: fitted to the rows in view, or kept where the person put it.
/** @import { Interval } from "../../types/trace" */
/** @import { Axis } from "../../types/waterfall" */
/** @import { Model } from "./model.js" */
import { kindIndex } from "../trace/rows.js";
import { axis, toTime } from "./axis.js";

/** While rows scroll, the axis is refitted at every fourth frame: moving all bars is most of what a frame costs. */
const REFIT_FRAMES = 4;
/** Rows by which the view may move in a frame and still be fitted ahead. */
const AHEAD_MAX = 9;

/** The time that the rows from `first` to `last` need. The session, and parents that leave the view, do not count.
 * @param {Model} model @param {number} first @param {number} last @returns {Interval} */
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
    /** Where the person put the window, or null while it follows the rows. @type {Interval | null} */
    this.manual = null;
    /** The axis that was drawn last. Null before the first draw, and when it must be drawn again. @type {Axis | null} */
    this.axis = null;
    this.first = 0;
    this.frames = 0;
  }

  /**
   * The window for the rows from `first` to `last`. `scrolling` says that rows move past: then the next frame must be drawn too.
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
    // Fitted with the rows that come into view until the next fit.
    const ahead = [Math.max(0, first + Math.min(0, by)), Math.min(model.rows.length, last + Math.max(0, by))];
    return { range: fit(model, ahead[0], ahead[1]), scrolling: by !== 0 };
  }

  /** The axis over the window. `changed` says whether it differs from the one before.
   * @param {Interval} range @param {number} width @param {Interval[]} cuts */
  place([from, to], width, cuts) {
    const before = this.axis;
    this.axis = axis(from, to, width, cuts);
    return { scale: this.axis, changed: !before || before.from !== from || before.to !== to || before.width !== width };
  }

  /** Keeps the window where it is, or lets it follow the rows again. @returns {Interval | null} */
  toggled() {
    return this.manual || !this.axis ? null : [this.axis.from, this.axis.to];
  }

  /** The window made `factor` as long, around the chosen row when that is in view. @param {Model} model @param {number} factor @returns {Interval | null} */
  zoomed(model, factor) {
    if (!this.axis) return null;
    const { from, to, width } = this.axis;
    const i = model.selected;
    const chosen = i >= 0 ? (model.trace.start[i] + model.endOf(i)) / 2 : NaN;
    const center = chosen >= from && chosen <= to ? chosen : toTime(this.axis, width / 2);
    return this.within(model.span, center, Math.max(100, (to - from) * factor));
  }

  /** The window made `factor` as long; the time `at` keeps its place on the track. @param {Model} model @param {number} at
   * @param {number} factor @returns {Interval | null} */
  zoomedAt(model, at, factor) {
    if (!this.axis) return null;
    const { from, to } = this.axis;
    const length = Math.max(100, (to - from) * factor);
    const before = (at - from) * (length / (to - from));
    return this.within(model.span, at - before + length / 2, length);
  }

  /** The window moved by so many pixels of the track. @param {Model} model @param {number} px @returns {Interval | null} */
  panned(model, px) {
    if (!this.axis) return null;
    const { from, to, width } = this.axis;
    // By the time that lies there: over a cut it goes faster.
    const us = px >= 0 ? toTime(this.axis, Math.min(width, px)) - from : from - toTime(this.axis, Math.min(width, -px));
    return this.within(model.span, (from + to) / 2 + us, to - from);
  }

  /** The window over one row, with room on both sides. @param {Model} model @param {number} i @returns {Interval} */
  over(model, i) {
    const from = model.trace.start[i] - model.trace.wait[i];
    const to = model.endOfRow(i);
    return this.within(model.span, (from + to) / 2, Math.max(1_000, (to - from) * 1.1));
  }

  /** A window of a length around a time, moved so that it stays within the session. @param {Interval} span @param {number} center
   * @param {number} length @returns {Interval} */
  within([first, last], center, length) {
    const from = Math.max(first, Math.min(center - length / 2, last - length));
    return [from, Math.min(last, from + length)];
  }
}
