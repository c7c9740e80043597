// The ruler above the rows, and the hatched cuts that run through them.
/** @import { Axis } from "../../types/waterfall" */
import { duration } from "../format/quantity.js";
import { offset } from "../format/time.js";
import { ticks } from "./axis.js";
import { make, pooled, setClass, setText } from "./dom.js";

/** A cut is labelled in the ruler only this far from a tick, pixels. */
const CUT_LABEL_PX = 70;

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
    const { step, ticks: marks } = ticks(axis);
    const items = marks.map(({ t, x }) => ({ x, text: offset(t, step), cut: false }));
    for (const p of axis.parts) {
      if (!p.cut) continue;
      const x = p.x0 + ((p.t1 - p.t0) * p.scale) / 2;
      const near = items.some((item) => Math.abs(item.x - x) < CUT_LABEL_PX);
      if (!near) items.push({ x, text: `//${duration(p.us)}//`, cut: true });
    }
    pooled(this.track, this.marks, "span", items, (mark, { x, text, cut }) => {
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
