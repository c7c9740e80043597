// The conversation on the page: a scroller with rows of unequal height. Only rows in view are in the DOM.
/** @import { Turn } from "../../types/answers" */
/** @import { Step } from "../../types/conversation" */
/** @import { Trace } from "../../types/trace" */
/** @import { Texts } from "./texts.js" */
import { make, setHidden } from "../waterfall/dom.js";
import { Heights } from "./heights.js";
import { Measured } from "./measured.js";
import { Pool } from "./pool.js";
import { clearPrompt, fillPrompt } from "./prompt.js";
import { fill, LINE_PX } from "./row.js";
import { Script } from "./script.js";

/** Pixels drawn above and below the view. */
const OVERSCAN_PX = 96;
/** Texts are requested after the view has not moved for this long. */
const REST_MS = 60;
/** Maximum rounds of measuring per frame: if a row is lower than expected, others come into view. */
const ROUNDS = 4;

/**
 * @typedef {object} TalkCallbacks
 * @property {(i: number) => void} onSelect
 * @property {(i: number) => void} onWhole the person asks for all of a row's text
 */

export class Talk {
  /** @param {HTMLElement} host @param {Texts} texts @param {TalkCallbacks} callbacks */
  constructor(host, texts, callbacks) {
    this.script = new Script();
    this.heights = new Heights();
    this.texts = texts;
    this.on = callbacks;
    this.measured = new Measured(this.script, texts);
    /** By row key. @type {Map<number, Turn>} */
    this.turns = new Map();
    this.selected = -1;
    /** Whether the view stays at the end while a session runs. */
    this.following = false;
    /** Whether the chosen row is kept in view while texts arrive. Ends when the user scrolls. */
    this.keeping = false;
    this.frame = 0;
    this.timer = 0;
    this.trackWidth = 0;
    this.sheetWidth = 0;
    /** The position to which this class itself scrolled last. @type {number | undefined} */
    this.moved = undefined;
    this.scroller = make("div", "cv-scroll", "treegrid");
    this.scroller.setAttribute("aria-label", "Conversation");
    this.scroller.setAttribute("aria-colcount", "2");
    this.scroller.tabIndex = 0;
    this.sheet = make("div", "cv-sheet", "rowgroup");
    this.pool = new Pool(this.sheet);
    this.scroller.append(this.sheet);
    host.replaceChildren(this.scroller);
    this.scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.sheet.addEventListener("click", (event) => this.click(event));
    this.sheet.addEventListener("dblclick", (event) => this.click(event, true));
    this.resize = new ResizeObserver(() => this.resized());
    this.resize.observe(this.scroller);
  }

  destroy() {
    this.resize.disconnect();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
  }

  resized() {
    // Text breaks elsewhere now.
    const width = this.sheet.clientWidth;
    if (width !== this.sheetWidth) this.measured.clear();
    this.sheetWidth = width;
    const track = this.pool.steps[0]?.track.clientWidth ?? 0;
    if (track) this.trackWidth = track;
    this.change(() => { this.script.version += 1; });
  }

  /** @param {Trace} trace @param {number} now @param {Uint8Array | null} hit @param {Map<number, Turn>} turns by row key */
  show(trace, now, hit, turns) {
    this.turns = turns;
    this.change(() => this.script.show(trace, now, hit));
    if (this.following) this.toEnd();
  }

  /** Open rows grow. @param {number} now */
  tick(now) {
    this.script.now = now;
    this.script.version += 1;
    this.schedule();
  }

  /** Changes the shown rows. The first row in view keeps its place. @param {() => unknown} action */
  change(action) {
    const keep = this.anchor();
    action();
    this.heights.reset(this.script.rows.length, (at) => this.measured.likely(at));
    this.scroller.setAttribute("aria-rowcount", String(this.script.rows.length));
    this.stretch();
    if (keep) {
      const at = this.script.at(this.script.trace.index.get(keep.key) ?? -1);
      if (at !== undefined) this.scrollTop(this.heights.top(at) + keep.rest);
    }
    this.schedule();
  }

  stretch() {
    const px = `${Math.ceil(this.heights.total)}px`;
    if (this.sheet.style.height !== px) this.sheet.style.height = px;
  }

  /** The row that keeps its place: the chosen one if it is in view, else the first. @returns {{ key: number, rest: number } | null} */
  anchor() {
    const { script, heights } = this;
    const top = this.scroller.scrollTop;
    if (!script.rows.length || heights.n !== script.rows.length) return null;
    const chosen = this.selected >= 0 ? script.at(this.selected) : undefined;
    const place = chosen === undefined ? -1 : heights.top(chosen);
    let at = place >= top && place < top + this.scroller.clientHeight ? /** @type {number} */ (chosen) : heights.find(top);
    if (at === 0 && top <= 0) return null;
    // The top row may be partly hidden. It may grow upwards, because the user reads what is below it.
    if (at !== chosen && heights.top(at) < top && at + 1 < script.rows.length && heights.top(at + 1) < top + this.scroller.clientHeight) at += 1;
    while (at > 0 && script.rows[at] < 0) at -= 1;
    const i = script.rows[at];
    return i >= 0 ? { key: script.trace.row[i], rest: top - heights.top(at) } : null;
  }

  /** @param {number} px */
  scrollTop(px) {
    const to = Math.max(0, Math.round(px));
    if (Math.abs(this.scroller.scrollTop - to) < 1) return;
    this.moved = to;
    this.scroller.scrollTop = to;
  }

  scrolled() {
    const top = this.scroller.scrollTop;
    // Only scrolling away from the end stops following.
    if (this.moved === undefined || Math.abs(top - this.moved) > 2) {
      this.following = this.following && this.atEnd();
      this.keeping = false;
    }
    this.moved = undefined;
    this.schedule();
  }

  atEnd() {
    return this.scroller.scrollTop + this.scroller.clientHeight >= this.heights.total - LINE_PX;
  }

  toEnd() {
    this.scrollTop(this.heights.total - this.scroller.clientHeight);
    this.schedule();
  }

  schedule() {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.frame = 0;
    if (!this.script.rows.length || !this.scroller.clientHeight) {
      this.pool.clear();
      return;
    }
    for (let round = 0; round < ROUNDS; round += 1) {
      const keep = this.anchor();
      const unmeasured = this.mount();
      if (!unmeasured.length) break;
      const grew = this.measure(unmeasured);
      if (!grew) break;
      this.stretch();
      if (this.following) this.scrollTop(this.heights.total - this.scroller.clientHeight);
      else if (keep) {
        const at = this.script.at(this.script.trace.index.get(keep.key) ?? -1);
        if (at !== undefined) this.scrollTop(this.heights.top(at) + keep.rest);
      }
      if (this.keeping && !this.following) this.scrollTo(this.selected);
    }
    this.pool.place(this.heights);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.askTexts(), REST_MS);
  }

  /** First and last row to draw. */
  range() {
    const top = this.scroller.scrollTop;
    const first = this.heights.find(Math.max(0, top - OVERSCAN_PX));
    const last = this.heights.find(top + this.scroller.clientHeight + OVERSCAN_PX) + 1;
    return [first, Math.min(this.script.rows.length, last)];
  }

  /** Puts the rows in view into the DOM. Returns those whose height has to be measured. */
  mount() {
    const [first, last] = this.range();
    const wanted = new Set();
    for (let at = first; at < last; at += 1) wanted.add(at);
    const chosen = this.selected >= 0 ? this.script.at(this.selected) : undefined;
    if (chosen !== undefined) wanted.add(chosen);
    /** @type {Step[]} */
    const anew = [];
    this.pool.mount(wanted, this.script.version, (step, at) => this.fill(step, at, anew));
    const shown = this.pool.at(chosen);
    if (shown) this.scroller.setAttribute("aria-activedescendant", shown.row.id);
    return anew;
  }

  /** @param {Step} step @param {number} at @param {Step[]} anew */
  fill(step, at, anew) {
    const { script } = this;
    const i = script.rows[at];
    const known = i < 0 ? undefined : this.texts.of(script.trace.row[i]);
    const tall = fill(step, script, at, this.selectedRow(), known);
    if (script.form(i) === "prompt") {
      setHidden(step.sum, false);
      fillPrompt(step, script, i, { turn: this.turns.get(script.trace.row[i]), of: this.turns.size, width: this.trackWidth });
    } else clearPrompt(step);
    if (tall || step.shown !== "" || script.form(i) === "prompt" || this.heights.of[at] !== LINE_PX) anew.push(step);
  }

  /** The chosen span, or the row that represents it. */
  selectedRow() {
    const at = this.selected < 0 ? undefined : this.script.at(this.selected);
    return at === undefined ? -1 : this.script.rows[at];
  }

  /** Measures rows. Returns whether a height differed from the estimate. @param {Step[]} steps */
  measure(steps) {
    if (!this.trackWidth && this.pool.steps[0]) this.trackWidth = this.pool.steps[0].track.clientWidth;
    let grew = false;
    for (const step of steps) {
      const px = step.row.offsetHeight;
      if (!px) continue;
      this.measured.set(step.at, px);
      grew = this.heights.set(step.at, px) !== 0 || grew;
    }
    return grew;
  }

  /** Asks for the texts of the rows in view. */
  askTexts() {
    const { script } = this;
    const [first, last] = this.range();
    const rows = [];
    // The chosen row stays in the DOM wherever the view is.
    const places = new Set([script.at(this.selected) ?? first]);
    for (let at = first; at < last; at += 1) places.add(at);
    for (const at of places) {
      const i = script.rows[at];
      if (i >= 0 && script.needsText(i, this.texts.of(script.trace.row[i]))) rows.push(script.trace.row[i]);
    }
    this.texts.want(rows);
  }

  /** Texts of rows have come. */
  arrived() {
    this.change(() => { this.script.version += 1; });
  }

  /** The shown row that an event happened on. @param {Event} event */
  rowOf(event) {
    const at = this.pool.placeOf(event);
    return at < 0 ? -1 : this.script.rows[at];
  }

  /** @param {Event} event @param {boolean} [twice] */
  click(event, twice = false) {
    const i = this.rowOf(event);
    if (i < 0 || !(event.target instanceof Element) || event.target.closest("a")) return;
    if (event.target.closest(".cv-more")) {
      this.on.onWhole(i);
      return;
    }
    if (event.target.classList.contains("cv-twist") || (twice && event.target.closest(".cv-head"))) this.toggle(i);
    if (!twice) this.on.onSelect(i);
  }

  /** @param {number} i @param {boolean} [open] */
  toggle(i, open) {
    const { script } = this;
    const now = script.isGroup(i) ? false : script.groups.has(i) ? true : script.isOpen(i, this.texts.of(script.trace.row[i]));
    this.change(() => script.toggle(i, open ?? !now));
  }

  /** Shows a chosen row. @param {number} i @param {{ scroll?: boolean }} [options] */
  choose(i, { scroll = true } = {}) {
    this.selected = i;
    this.script.version += 1;
    if (i >= 0 && this.script.position.length > i) this.change(() => this.script.reveal(i));
    this.keeping = scroll;
    if (scroll && i >= 0) this.scrollTo(i);
    this.schedule();
  }

  /** @param {number} i */
  scrollTo(i) {
    const at = this.script.at(i);
    if (at === undefined) return;
    const top = this.heights.top(at);
    const height = this.scroller.clientHeight;
    const px = Math.min(this.heights.of[at], height * 0.6);
    const margin = LINE_PX * 2;
    const above = this.script.form(this.script.rows[at]) === "prompt" ? 0 : margin;
    if (top < this.scroller.scrollTop + above) this.scrollTop(top - above);
    else if (top + px > this.scroller.scrollTop + height - margin) this.scrollTop(top + px - height + margin);
  }

  /** Puts a row at the top of the view. @param {number} i */
  toTop(i) {
    const at = this.script.at(i);
    this.keeping = false;
    if (at !== undefined) this.scrollTop(this.heights.top(at));
    this.schedule();
  }
}
