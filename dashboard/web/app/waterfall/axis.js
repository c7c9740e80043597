// Time to pixels: linear, but idle gaps are cut to a fixed width. Times are microseconds from the session's start.
/** @import { Interval } from "../../types/trace" */
/** @import { Axis, AxisPart } from "../../types/waterfall" */

/** Gaps longer than this are cut. */
export const CUT_MIN_US = 60e6;
const CUT_PX = 24;

/** Gaps between busy intervals, sorted or not. @param {Interval[]} intervals @param {number} [min] */
export function gaps(intervals, min = CUT_MIN_US) {
  const sorted = intervals.slice().sort((a, b) => a[0] - b[0]);
  /** @type {Interval[]} */
  const out = [];
  /** @type {number | null} */
  let end = null;
  for (const [from, to] of sorted) {
    if (end !== null && from - end > min) out.push([end, from]);
    end = end === null ? to : Math.max(end, to);
  }
  return out;
}

/** An axis over `[from, to]` in `width` pixels, with the cuts that lie inside.
 * @param {number} from @param {number} to @param {number} width @param {Interval[]} [cuts] @returns {Axis} */
export function axis(from, to, width, cuts = []) {
  if (!(to > from)) to = from + 1_000;
  const inside = [];
  for (const [a, b] of cuts) {
    const lo = Math.max(a, from);
    const hi = Math.min(b, to);
    // A window inside a gap shows the gap uncut.
    if (hi > lo && !(lo === from && hi === to)) inside.push([lo, hi, b - a]);
  }
  const cutPx = inside.length ? Math.min(CUT_PX, width / 5 / inside.length) : 0;
  const cutUs = inside.reduce((sum, [a, b]) => sum + b - a, 0);
  const scale = (width - cutPx * inside.length) / Math.max(1, to - from - cutUs);
  /** @type {AxisPart[]} */
  const parts = [];
  let t = from;
  let x = 0;
  for (const [a, b, whole] of inside) {
    if (a > t) {
      parts.push({ t0: t, t1: a, x0: x, scale, cut: false });
      x += (a - t) * scale;
    }
    parts.push({ t0: a, t1: b, x0: x, scale: cutPx / (b - a), cut: true, us: whole });
    x += cutPx;
    t = b;
  }
  if (to > t || !parts.length) parts.push({ t0: t, t1: to, x0: x, scale, cut: false });
  return { from, to, width, scale, parts };
}

/** The part of the axis that contains a time or a pixel. @param {Axis} axis @param {"t0" | "x0"} key @param {number} value */
function part(axis, key, value) {
  const { parts } = axis;
  let lo = 0;
  let hi = parts.length - 1;
  while (lo < hi) {
    const mid = (lo + hi + 1) >> 1;
    if (parts[mid][key] <= value) lo = mid;
    else hi = mid - 1;
  }
  return parts[lo];
}

/** The pixel of a time, also beyond the edges. @param {Axis} axis @param {number} t */
export function toX(axis, t) {
  const p = part(axis, "t0", t);
  return p.x0 + (t - p.t0) * p.scale;
}

/** The time of a pixel. @param {Axis} axis @param {number} x */
export function toTime(axis, x) {
  const p = part(axis, "x0", x);
  return p.scale > 0 ? p.t0 + (x - p.x0) / p.scale : p.t0;
}

const STEPS_US = [
  1, 2, 5, 10, 20, 50, 100, 200, 500,
  1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5,
  ...[1, 2, 5, 10, 15, 30].map((s) => s * 1e6),
  ...[1, 2, 5, 10, 15, 30].map((m) => m * 60e6),
  ...[1, 2, 5, 10, 15, 30].map((h) => h * 3_600e6),
  ...[2, 5, 10, 20, 50, 100].map((d) => d * 86_400e6),
];

/** Ticks at round offsets, at least `minPx` apart and never inside a cut; and their step. @param {Axis} axis @param {number} [minPx] */
export function ticks(axis, minPx = 90) {
  const step = STEPS_US.find((us) => us * axis.scale >= minPx) ?? STEPS_US[STEPS_US.length - 1];
  const out = [];
  let last = -Infinity;
  for (const p of axis.parts) {
    if (p.cut) continue;
    const first = Math.ceil(p.t0 / step) * step;
    for (let t = first; t <= p.t1 && out.length < 200; t += step) {
      const x = p.x0 + (t - p.t0) * p.scale;
      if (x - last >= minPx * 0.9 && x <= axis.width - 40) {
        out.push({ t, x });
        last = x;
      }
    }
    // A part without a round offset gets a tick at its start.
    if (first > p.t1 && p.x0 - last >= minPx && (p.t1 - p.t0) * p.scale > 12 && p.x0 <= axis.width - 60) {
      const t = Math.round(p.t0 / 1e6) * 1e6;
      if (t >= p.t0 && t <= p.t1) {
        out.push({ t, x: p.x0 + (t - p.t0) * p.scale });
        last = p.x0;
      }
    }
  }
  return { step, ticks: out };
}
