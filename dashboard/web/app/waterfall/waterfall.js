// The waterfall on the page: its ruler, its scrolling rows of 22 px, and the frames in which they are drawn.
/** @import { Interval, Trace } from "../../types/trace" */
import { make } from "./dom.js";
import { Model } from "./model.js";
import { gestures } from "./gestures.js";
import { about, ROW_PX } from "./row.js";
import { RowPool } from "./row-pool.js";
import { Ruler } from "./ruler.js";
import { TimeWindow } from "./time-window.js";

/** Rows drawn above and below the view. */
const OVERSCAN = 3;
/** Widths of the columns beside the track. */
const DURATION_PX = 76;
const MIX_PX = 62;
/** Below this width there is no room for a turn's mix of times. */
const NARROW_PX = 640;

/**
 * @typedef {object} Callbacks
 * @property {(i: number) => void} onSelect
 * @property {(axis: { from: number, to: number, follow: boolean }) => void} onAxis
 */

export class Waterfall {
  /** @param {HTMLElement} host gets the ruler and the rows @param {Callbacks} callbacks */
  constructor(host, callbacks) {
    this.host = host;
    this.on = callbacks;
    this.model = new Model();
    this.window = new TimeWindow();
    this.ruler = new Ruler(() => this.toggleFollow());
    this.scroller = make("div", "wf-scroll", "treegrid");
    this.sheet = make("div", "wf-sheet", "rowgroup");
    this.pool = new RowPool(this.sheet);
    this.frame = 0;
    /** Version of the model that was drawn last. */
    this.drawn = -1;
    this.nameWidth = 0;
    this.trackWidth = 0;
    this.resize = new ResizeObserver(() => this.refresh());
    this.build();
  }

  build() {
    this.scroller.setAttribute("aria-label", "Spans of the session");
    this.scroller.setAttribute("aria-colcount", "3");
    this.scroller.tabIndex = 0;
    this.scroller.append(this.sheet);
    const body = make("div", "wf-body");
    body.append(this.ruler.hatchLayer, this.scroller);
    this.host.replaceChildren(this.ruler.element, body);
    this.scroller.addEventListener("scroll", () => this.schedule(), { passive: true });
    this.sheet.addEventListener("click", (event) => this.click(event));
    this.sheet.addEventListener("dblclick", (event) => {
      const i = this.rowAt(event);
      if (i < 0) return;
      if (event.target instanceof Element && event.target.closest(".wf-track")) this.setManual(this.window.over(this.model, i));
      else this.toggle(i);
    });
    this.sheet.addEventListener("pointerover", (event) => this.explain(event));
    gestures(this);
    this.resize.observe(body);
  }

  destroy() {
    this.resize.disconnect();
    cancelAnimationFrame(this.frame);
  }

  /** Shows a trace. Open spans last until `now`, from the session's start. @param {Trace} trace @param {number} now */
  show(trace, now) {
    this.change(() => this.model.show(trace, now));
  }

  /**
   * Changes which rows are shown. The first row in view keeps its place if rows above it appear or disappear. If
   * `action` returns false, it changed nothing.
   * @param {() => unknown} action
   */
  change(action) {
    const keep = this.anchor();
    if (action() === false) return;
    const { rows } = this.model;
    this.sheet.style.height = `${rows.length * ROW_PX}px`;
    this.scroller.setAttribute("aria-rowcount", String(rows.length));
    const at = keep && this.model.at(this.model.trace.index.get(keep.key));
    if (keep && at != null) this.scroller.scrollTop = at * ROW_PX + keep.rest;
    this.schedule();
  }

  /** The first row in view. Null at the top, where new rows may move the others down. */
  anchor() {
    const { rows, trace } = this.model;
    const at = Math.floor(this.scroller.scrollTop / ROW_PX);
    const row = rows[at];
    if (row === undefined || row < 0 || at === 0) return null;
    return { key: trace.row[row], rest: this.scroller.scrollTop - at * ROW_PX };
  }

  schedule() {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  /** Draws every row again. */
  refresh() {
    this.model.touch();
    this.schedule();
  }

  draw() {
    this.frame = 0;
    const { model } = this;
    if (!model.loaded) return;
    const top = this.scroller.scrollTop;
    const first = Math.max(0, Math.floor(top / ROW_PX));
    const last = Math.min(model.rows.length, Math.ceil((top + this.scroller.clientHeight) / ROW_PX));
    this.measure();
    const sameRows = this.drawn === model.version;
    const { range, scrolling } = this.window.range(model, first, last, sameRows);
    if (scrolling) this.schedule();
    const { scale, changed } = this.window.place(range, this.trackWidth, model.cuts);
    const moved = changed || !sameRows;
    if (moved) {
      this.ruler.draw(scale, !this.window.manual);
      this.on.onAxis({ from: scale.from, to: scale.to, follow: !this.window.manual });
    }
    const chosen = this.pool.draw(model, Math.max(0, first - OVERSCAN), Math.min(model.rows.length, last + OVERSCAN), scale, moved);
    if (chosen && !sameRows) this.scroller.setAttribute("aria-activedescendant", chosen.row.id);
    this.drawn = model.version;
  }

  /** Measures the columns. Their widths are written only if they changed. */
  measure() {
    const width = this.scroller.clientWidth;
    const name = Math.round(Math.max(180, Math.min(420, width * 0.32)));
    const track = Math.max(80, width - name - (width > NARROW_PX ? MIX_PX : 0) - DURATION_PX - 8);
    if (this.nameWidth === name && this.trackWidth === track) return;
    this.nameWidth = name;
    this.trackWidth = track;
    this.host.classList.toggle("wf-narrow", width <= NARROW_PX);
    this.host.style.setProperty("--wf-name", `${name}px`);
    this.host.style.setProperty("--wf-track", `${track}px`);
  }

  /** The span that an event happened on; negative if there is none. @param {Event} event */
  rowAt(event) {
    const at = this.pool.placeOf(event);
    return at < 0 ? -1 : this.model.rows[at];
  }

  /**
   * Writes the tooltip of the row under the pointer. Elements are reused for other rows, so it is written only when the
   * pointer is there.
   * @param {Event} event
   */
  explain(event) {
    const row = event.target instanceof Element ? /** @type {HTMLElement | null} */ (event.target.closest(".wf-row")) : null;
    const i = this.rowAt(event);
    if (row) row.title = i < 0 ? "" : about(this.model, i);
  }

  /** @param {Event} event */
  click(event) {
    const i = this.rowAt(event);
    if (i < 0) return;
    if (event.target instanceof Element && event.target.classList.contains("wf-twist")) this.toggle(i);
    // Scrolls to a bar that lies beyond the edge.
    if (event.target instanceof Element && event.target.classList.contains("wf-note-away") && this.window.axis) {
      const { from, to } = this.window.axis;
      this.setManual(this.window.within(this.model.span, (this.model.trace.start[i] + this.model.endOfRow(i)) / 2, to - from));
    }
    this.select(i, { scroll: false });
  }

  /** Chooses a row, and unfolds what hides it. @param {number} i @param {{ scroll?: boolean }} [options] */
  select(i, { scroll = true } = {}) {
    if (i < 0 || i >= this.model.trace.n) return;
    this.change(() => this.model.reveal(i));
    this.model.selected = i;
    this.refresh();
    if (scroll) this.scrollTo(i);
    this.on.onSelect(i);
  }

  /** @param {number} i */
  scrollTo(i) {
    const at = this.model.at(i);
    if (at === undefined) return;
    const top = at * ROW_PX;
    const height = this.scroller.clientHeight;
    const margin = Math.min(ROW_PX * 3, height / 4);
    if (top < this.scroller.scrollTop + margin) this.scroller.scrollTop = top - margin;
    else if (top + ROW_PX > this.scroller.scrollTop + height - margin) this.scroller.scrollTop = top + ROW_PX - height + margin;
  }

  scrollToChosen() {
    if (this.model.selected >= 0) this.scrollTo(this.model.selected);
  }

  /** Folds or unfolds a row. @param {number} i @param {boolean} [open] */
  toggle(i, open) {
    this.change(() => this.model.toggle(i, open));
  }

  foldTurns() {
    const { model } = this;
    model.foldTurns();
    const up = model.selected < 0 ? -1 : model.turnOf(model.selected);
    if (up >= 0 && up !== model.selected) this.select(up);
    this.change(() => model.layout());
    this.scrollToChosen();
  }

  unfoldAll() {
    this.change(() => this.model.unfoldAll());
    this.scrollToChosen();
  }

  /** Shows only matches and their ancestors; with null, everything. @param {Uint8Array | null} hit */
  filter(hit) {
    this.change(() => {
      this.model.hit = hit;
      this.model.layout();
    });
    this.scrollToChosen();
  }

  /** Marks the rows of the critical path. All other bars fade. @param {Uint8Array | null} marked */
  mark(marked) {
    this.model.marked = marked;
    this.host.classList.toggle("wf-dimmed", marked !== null);
    this.refresh();
  }

  /** Makes the axis show `range`; with null, it follows the rows again. @param {Interval | null} range */
  setManual(range) {
    this.window.manual = range;
    this.refresh();
  }

  toggleFollow() {
    this.setManual(this.window.toggled());
  }

  /** @param {number} factor */
  zoom(factor) {
    const range = this.window.zoomed(this.model, factor);
    if (range) this.setManual(range);
  }

  fitAll() {
    const [from, to] = this.model.span;
    this.setManual([from, to]);
  }
}
