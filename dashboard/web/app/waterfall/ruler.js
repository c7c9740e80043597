// The ruler above the rows, and the hatched stripes for time that was cut out.
/** @import { Axis } from "../../types/waterfall" */
import { duration } from "../format/quantity.js";
import { offset } from "../format/time.js";
import { ticks } from "./axis.js";
import { make, pooled, setClass, setText } from "./dom.js";

/** Average width of a label's character, and the space between two labels. */
const CHAR_PX = 6.6;
const BESIDE_PX = 10;
/** The label of a cut is centred in a box of this width. */
const CUT_PX = 60;

/** @typedef {{ x: number, text: string, cut: boolean }} Mark */

/**
 * The labels of the ruler: every tick whose label does not overlap the one before, and every cut that has room for one.
 * Pure.
 * @param {Axis} axis @returns {Mark[]}
 */
export function marks(axis) {
  const { step, ticks: found } = ticks(axis);
  /** @type {Mark[]} */
  const items = [];
  let end = -Infinity;
  for (const { t, x } of found) {
    if (x < end) continue;
    const text = offset(t, step);
    items.push({ x, text, cut: false });
    end = x + text.length * CHAR_PX + BESIDE_PX;
  }
  for (const p of axis.parts) {
    if (!p.cut) continue;
    const x = p.x0 + ((p.t1 - p.t0) * p.scale) / 2;
    const text = `//${duration(p.us)}//`;
    if (items.every((item) => free({ x, text, cut: true }, item))) items.push({ x, text, cut: true });
  }
  return items;
}

/** @param {Mark} mark @returns {[number, number]} */
function extent({ x, text, cut }) {
  const width = text.length * CHAR_PX + BESIDE_PX;
  return cut ? [x - Math.max(CUT_PX, width) / 2, x + Math.max(CUT_PX, width) / 2] : [x, x + width];
}

/** Whether two labels do not overlap. @param {Mark} one @param {Mark} other */
function free(one, other) {
  const [a0, a1] = extent(one);
  const [b0, b1] = extent(other);
  return a1 <= b0 || b1 <= a0;
}

export class Ruler {
  /** @param {() => void} onToggle the person wants the axis to follow the rows, or to stay */
  constructor(onToggle) {
    this.element = make("div", "wf-ruler");
    this.button = /** @type {HTMLButtonElement} */ (make("button", "wf-axis"));
    this.button.type = "button";
    this.button.title = "Follow the rows in view, or keep the axis (a)";
    this.button.addEventListener("click", onToggle);
    this.track = make("div", "wf-ruler-track");
    this.element.append(this.button, this.track);
    this.hatchLayer = make("div", "wf-hatches");
    this.hatchLayer.setAttribute("aria-hidden", "true");
    /** @type {HTMLElement[]} */
    this.marks = [];
    /** @type {HTMLElement[]} */
    this.hatches = [];
    /** @type {boolean | null} */
    this.pressed = null;
  }

  /** @param {Axis} axis @param {boolean} follows */
  draw(axis, follows) {
    this.drawTicks(axis);
    this.drawHatches(axis);
    setText(this.button, follows ? "auto-zoom on (a)" : "auto-zoom locked (a)");
    if (this.pressed !== follows) this.button.setAttribute("aria-pressed", String(this.pressed = follows));
  }

  /** @param {Axis} axis */
  drawTicks(axis) {
    pooled(this.track, this.marks, "span", marks(axis), (mark, { x, text, cut }) => {
      setClass(mark, cut ? "wf-tick wf-tick-cut" : "wf-tick");
      setText(mark, text);
      mark.style.transform = `translateX(${x}px)`;
    });
  }

  /** @param {Axis} axis */
  drawHatches(axis) {
    pooled(this.hatchLayer, this.hatches, "div", axis.parts.filter((p) => p.cut), (hatch, p) => {
      setClass(hatch, "wf-hatch");
      hatch.style.transform = `translateX(${p.x0}px)`;
      hatch.style.width = `${(p.t1 - p.t0) * p.scale}px`;
    });
  }
}
