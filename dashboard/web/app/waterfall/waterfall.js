// The waterfall: pooled rows of 22 px over typed columns. Nothing here knows the network; the page hands in a trace.
import { ERROR, INFERRED_END, INFERRED_START, OPEN, TENTATIVE, UNKNOWN } from "../trace/columns.js";
import { axis, gaps, ticks, toX, toTime } from "./axis.js";
import { duration, offset } from "../format/quantity.js";
import { busy, endOf, head, kindIndex, visibleRows } from "../trace/rows.js";
import { visible } from "../format/text.js";

/** Height of a row, pixels. */
export const ROW_PX = 22;
const OVERSCAN = 3;
const FLYING = 4;
const DUR_PX = 76;
const MIX_PX = 62;
const TWIST = { open: "▾", closed: "▸", leaf: "" };

// Writing a style that is already so still costs a style pass: sixty times a second, for every row.
function setClass(element, name) {
  if (element.className !== name) element.className = name;
}

function setHidden(element, hidden) {
  if (element.hidden !== hidden) element.hidden = hidden;
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function make(tag, name, role) {
  const element = document.createElement(tag);
  element.className = name;
  if (role) element.setAttribute("role", role);
  return element;
}

// As many elements of `host` as there are `items`, each filled by `fill(element, item)`; `pool` keeps those of before.
function pooled(host, pool, tag, items, fill) {
  items.forEach((item, i) => {
    const element = pool[i] ??= host.appendChild(make(tag, ""));
    fill(element, item);
    setHidden(element, false);
  });
  for (let i = items.length; i < pool.length; i += 1) setHidden(pool[i], true);
}

/**
 * `host` gets the ruler and the rows. Callbacks: `onSelect(index)`, `onAxis({from, to, follow})`, `onOpen(index)`.
 * State a page may keep: `selected` (index or -1), `folded` (row keys), `follow`, `manual` ([from, to] or null).
 */
export class Waterfall {
  constructor(host, callbacks) {
    this.host = host;
    this.on = callbacks;
    this.trace = null;
    this.rows = [];
    this.idle = [];
    this.cuts = [];
    this.folded = new Set();
    this.hit = null;
    this.notes = new Map();
    this.mixes = new Map();
    this.groups = new Map();
    this.opened = new Set();
    this.marked = null;
    this.selected = -1;
    this.manual = null;
    this.follow = true;
    this.pool = [];
    this.hatches = [];
    this.rulerMarks = [];
    this.frame = 0;
    this.flown = 0;
    this.version = 0;
    this.build();
  }

  build() {
    this.ruler = make("div", "wf-ruler");
    this.rulerNote = make("button", "wf-axis");
    this.rulerNote.type = "button";
    this.rulerNote.title = "Follow the rows in view, or keep the axis (a)";
    this.rulerNote.addEventListener("click", () => this.toggleFollow());
    this.rulerTrack = make("div", "wf-ruler-track");
    this.ruler.append(this.rulerNote, this.rulerTrack);
    this.body = make("div", "wf-body");
    this.hatchLayer = make("div", "wf-hatches");
    this.hatchLayer.setAttribute("aria-hidden", "true");
    this.scroller = make("div", "wf-scroll", "treegrid");
    this.scroller.setAttribute("aria-label", "Spans of the session");
    this.scroller.setAttribute("aria-colcount", "3");
    this.scroller.tabIndex = 0;
    this.sheet = make("div", "wf-sheet", "rowgroup");
    this.scroller.append(this.sheet);
    this.body.append(this.hatchLayer, this.scroller);
    this.host.replaceChildren(this.ruler, this.body);
    this.scroller.addEventListener("scroll", () => this.schedule(), { passive: true });
    this.sheet.addEventListener("click", (event) => this.click(event));
    this.sheet.addEventListener("dblclick", (event) => {
      const row = this.rowAt(event);
      if (row >= 0) this.toggle(row);
    });
    this.resize = new ResizeObserver(() => {
      this.version += 1;
      this.schedule();
    });
    this.resize.observe(this.body);
  }

  destroy() {
    this.resize.disconnect();
    cancelAnimationFrame(this.frame);
  }

  /** Shows a trace. `now` is the time open spans last until, from the session's start. */
  show(trace, now) {
    this.trace = trace;
    this.now = now;
    this.cuts = gaps(busy(trace, now));
    this.span = [trace.n ? Infinity : 0, 1];
    for (let i = 0; i < trace.n; i += 1) {
      this.span[0] = Math.min(this.span[0], trace.start[i]);
      this.span[1] = Math.max(this.span[1], endOf(trace, i, now));
    }
    this.layout();
  }

  /** Recomputes the shown rows after folds, filter or trace changed. */
  layout() {
    if (!this.trace) return;
    const keep = this.anchor();
    const { rows, idle, groups } = visibleRows(this.trace, this.folded, this.hit, this.now, this.opened);
    this.rows = rows;
    this.idle = idle;
    this.groups = groups;
    // -1 is beyond every row: what is not shown.
    this.position = new Uint32Array(this.trace.n).fill(-1);
    for (let at = 0; at < rows.length; at += 1) if (rows[at] >= 0) this.position[rows[at]] = at;
    this.sheet.style.height = `${rows.length * ROW_PX}px`;
    this.scroller.setAttribute("aria-rowcount", String(rows.length));
    this.version += 1;
    this.restore(keep);
    this.schedule();
  }

  /** The place of a row among those shown, undefined for one that is not. */
  at(i) {
    return this.position[i] < this.rows.length ? this.position[i] : undefined;
  }

  // The first row in view keeps its place when rows above it come or go.
  anchor() {
    const at = Math.floor(this.scroller.scrollTop / ROW_PX);
    const row = this.rows[at];
    if (row === undefined || row < 0 || at === 0) return null;
    return { key: this.keys?.[row] ?? this.trace.row[row], rest: this.scroller.scrollTop - at * ROW_PX };
  }

  restore(keep) {
    this.keys = this.trace.row;
    if (!keep) return;
    const at = this.at(this.trace.index.get(keep.key));
    if (at !== undefined) this.scroller.scrollTop = at * ROW_PX + keep.rest;
  }

  schedule() {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  metrics() {
    const width = this.scroller.clientWidth;
    const name = Math.round(Math.max(180, Math.min(420, width * 0.32)));
    const track = Math.max(80, width - name - (width > 640 ? MIX_PX : 0) - DUR_PX - 8);
    return { width, name, track };
  }

  draw() {
    this.frame = 0;
    if (!this.trace) return;
    const top = this.scroller.scrollTop;
    const height = this.scroller.clientHeight;
    const first = Math.max(0, Math.floor(top / ROW_PX));
    const last = Math.min(this.rows.length, Math.ceil((top + height) / ROW_PX));
    const { width, name, track } = this.metrics();
    if (this.nameWidth !== name || this.trackWidth !== track) {
      this.nameWidth = name;
      this.trackWidth = track;
      this.host.classList.toggle("wf-narrow", width <= 640);
      this.host.style.setProperty("--wf-name", `${name}px`);
      this.host.style.setProperty("--wf-track", `${track}px`);
    }
    const [from, to] = this.manual ?? this.follows(first, last);
    const scale = axis(from, to, track, this.cuts);
    const changed = !this.axis || this.axis.from !== from || this.axis.to !== to || this.axis.width !== track || this.drawn !== this.version;
    this.axis = scale;
    if (changed) {
      this.drawRuler(scale);
      this.drawHatches(scale);
      this.on.onAxis?.({ from, to, follow: !this.manual });
    }
    this.drawRows(Math.max(0, first - OVERSCAN), Math.min(this.rows.length, last + OVERSCAN), changed);
    this.drawn = this.version;
  }

  // While rows fly past, the axis is fitted at every fourth frame, with the rows that come until then: to move all bars is most
  // of what a frame costs.
  follows(first, last) {
    const by = this.drawn === this.version ? Math.max(-9, Math.min(9, first - this.first)) * FLYING : 0;
    this.first = first;
    if (by) this.schedule();
    if (by ? this.flown++ % FLYING : (this.flown = 0)) return [this.axis.from, this.axis.to];
    return this.fit(Math.max(0, first + Math.min(0, by)), Math.min(this.rows.length, last + Math.max(0, by)));
  }

  /** The time the rows in view need. The session, and parents that leave the view, do not count. */
  fit(first, last) {
    const { trace, rows } = this;
    const session = kindIndex(trace, "session");
    let from = Infinity;
    let to = -Infinity;
    for (let at = first; at < last; at += 1) {
      const i = rows[at];
      if (i < 0) {
        const [a, b] = this.idle[-1 - i];
        if (at > first) from = Math.min(from, a);
        if (at < last - 1) to = Math.max(to, b);
        continue;
      }
      if (trace.kind[i] === session) continue;
      const end = this.endOfRow(i);
      const open = trace.last[i] > i + 1 && !this.folded.has(trace.row[i]) && !this.hit;
      const leaves = open && this.position[trace.last[i] - 1] >= last;
      from = Math.min(from, trace.start[i] - (leaves ? 0 : trace.wait[i]));
      if (!leaves) to = Math.max(to, end);
      else to = Math.max(to, trace.start[i]);
    }
    if (!(from < Infinity)) return this.span;
    const pad = Math.max((to - from) * 0.01, 500);
    return [Math.max(0, from - pad), Math.max(to + pad, from + 2_000)];
  }

  /** The end of what a row shows: of a folded group that of its last member to end. */
  endOfRow(i) {
    const group = this.groups.get(i);
    if (!group || group.open) return endOf(this.trace, i, this.now);
    let end = 0;
    for (let k = i; k < group.last; k += 1) end = Math.max(end, endOf(this.trace, k, this.now));
    return end;
  }

  drawRuler(scale) {
    const { step, ticks: marks } = ticks(scale);
    const items = marks.map(({ t, x }) => ({ x, text: offset(t, step), cut: false }));
    for (const p of scale.parts) {
      if (!p.cut) continue;
      const x = p.x0 + ((p.t1 - p.t0) * p.scale) / 2;
      const near = items.some((item) => Math.abs(item.x - x) < 70);
      if (!near) items.push({ x, text: `//${duration(p.us)}//`, cut: true });
    }
    pooled(this.rulerTrack, this.rulerMarks, "span", items, (mark, { x, text, cut }) => {
      setClass(mark, cut ? "wf-tick wf-tick-cut" : "wf-tick");
      setText(mark, text);
      mark.style.transform = `translateX(${x}px)`;
    });
    setText(this.rulerNote, this.manual ? "axis is kept (a)" : "axis follows rows (a)");
    if (this.pressed !== !this.manual) this.rulerNote.setAttribute("aria-pressed", String(this.pressed = !this.manual));
  }

  drawHatches(scale) {
    pooled(this.hatchLayer, this.hatches, "div", scale.parts.filter((p) => p.cut), (hatch, p) => {
      setClass(hatch, "wf-hatch");
      hatch.style.transform = `translateX(${p.x0}px)`;
      hatch.style.width = `${(p.t1 - p.t0) * p.scale}px`;
    });
  }

  drawRows(first, last, moved) {
    const wanted = new Set();
    for (let at = first; at < last; at += 1) wanted.add(at);
    // The selected row stays mounted, else aria-activedescendant points nowhere.
    const chosen = this.at(this.selected);
    if (chosen !== undefined) wanted.add(chosen);
    const free = [];
    for (const slot of this.pool) {
      if (slot.at >= 0 && wanted.has(slot.at)) {
        wanted.delete(slot.at);
        if (moved || slot.version !== this.version) this.fill(slot, slot.at, slot.version !== this.version);
      } else {
        free.push(slot);
      }
    }
    for (const at of wanted) {
      // One of the same kind has the right colours already.
      const kind = this.trace.kind[this.rows[at]];
      const like = free.findIndex((slot) => slot.kind === kind);
      const slot = free.splice(like, 1)[0] ?? this.slot();
      slot.kind = kind;
      this.fill(slot, at, true);
    }
    for (const slot of free) {
      if (slot.at !== -1) {
        slot.at = -1;
        setHidden(slot.row, true);
      }
    }
  }

  slot() {
    const part = (name, role) => make("span", name, role);
    const slot = { at: -1, version: -1, row: make("div", "", "row") };
    slot.row.id = `wf-row-${this.pool.length}`;
    slot.name = part("wf-name", "rowheader");
    slot.twist = part("wf-twist");
    slot.twist.setAttribute("aria-hidden", "true");
    slot.text = part("wf-text");
    slot.name.append(slot.twist, slot.text);
    slot.track = part("wf-track", "gridcell");
    slot.wait = part("wf-wait");
    slot.bar = part("wf-bar");
    slot.note = part("wf-note");
    slot.track.append(slot.wait, slot.bar, slot.note);
    slot.mix = part("wf-mix");
    slot.mix.setAttribute("aria-hidden", "true");
    slot.dur = part("wf-dur", "gridcell");
    slot.row.append(slot.name, slot.track, slot.mix, slot.dur);
    this.sheet.append(slot.row);
    this.pool.push(slot);
    return slot;
  }

  fill(slot, at, all) {
    const i = this.rows[at];
    slot.at = at;
    slot.version = this.version;
    if (all) {
      setHidden(slot.row, false);
      slot.row.style.transform = `translateY(${at * ROW_PX}px)`;
      slot.row.setAttribute("aria-rowindex", String(at + 1));
      if (i < 0) this.fillIdle(slot, this.idle[-1 - i]);
      else this.fillSpan(slot, i);
    }
    if (i < 0) this.placeIdle(slot, this.idle[-1 - i]);
    else this.placeSpan(slot, i);
  }

  fillIdle(slot, [from, to, depth]) {
    slot.row.className = "wf-row wf-idle";
    slot.row.removeAttribute("aria-expanded");
    slot.row.setAttribute("aria-selected", "false");
    slot.row.setAttribute("aria-level", String(depth + 1));
    slot.name.style.paddingLeft = `${8 + depth * 14}px`;
    slot.twist.textContent = "";
    slot.text.textContent = "your turn";
    slot.dur.textContent = duration(to - from);
    this.mix(slot, undefined);
    setHidden(slot.wait, true);
  }

  placeIdle(slot, [from, to]) {
    const x0 = toX(this.axis, from);
    const x1 = toX(this.axis, to);
    const cut = this.cuts.some(([a, b]) => a === from && b === to);
    setClass(slot.bar, cut ? "wf-bar wf-bar-cut" : "wf-bar wf-bar-idle");
    this.place(slot.bar, x0, x1);
    this.note(slot, cut ? `// ${duration(to - from)} idle, cut` : "", x0, x1);
  }

  fillSpan(slot, i) {
    const { trace } = this;
    const kind = trace.kinds[trace.kind[i]];
    const failed = trace.status[i] === ERROR;
    const group = this.groups.get(i);
    const parent = group !== undefined || trace.last[i] > i + 1;
    const expanded = group ? group.open : parent && (this.hit !== null || !this.folded.has(trace.row[i]));
    const together = group && !group.open;
    const depth = trace.depth[i];
    const label = trace.strs[trace.label[i]];
    setClass(slot.row, `wf-row k-${kind}${failed ? " wf-failed" : ""}${i === this.selected ? " wf-selected" : ""}${this.hit?.[i] ? " wf-hit" : ""}${together ? " wf-group" : ""}${this.marked?.[i] ? " wf-marked" : ""}`);
    slot.row.setAttribute("aria-level", String(depth + 1));
    slot.row.setAttribute("aria-selected", String(i === this.selected));
    if (parent) slot.row.setAttribute("aria-expanded", String(expanded));
    else slot.row.removeAttribute("aria-expanded");
    slot.name.style.paddingLeft = `${8 + Math.min(depth, 12) * 14}px`;
    setText(slot.twist, parent ? (expanded ? TWIST.open : TWIST.closed) : TWIST.leaf);
    setText(slot.text, together ? `${group.count} × ${visible(head(label))}` : visible(label));
    setText(slot.dur, this.lasting(i, together ? group : null));
    this.mix(slot, this.mixes.get(trace.row[i]));
    if (i === this.selected) this.scroller.setAttribute("aria-activedescendant", slot.row.id);
  }

  /** Duration of a row; of a group the sum. */
  lasting(i, group) {
    const { trace } = this;
    if (!group) return trace.dur[i] < 0 ? `${duration(this.now - trace.start[i])} …` : duration(trace.dur[i]);
    let sum = 0;
    for (let k = i; k < group.last; k += 1) sum += Math.max(0, trace.dur[k]);
    return `Σ ${duration(sum)}`;
  }

  // What a turn's time went into, as shares; empty for everything else.
  mix(slot, background) {
    if (slot.mixed !== background) slot.mix.style.background = (slot.mixed = background) ?? "";
  }

  placeSpan(slot, i) {
    const { trace } = this;
    const start = trace.start[i];
    const group = this.groups.get(i);
    const end = this.endOfRow(i);
    const x0 = toX(this.axis, start);
    const x1 = toX(this.axis, end);
    const flags = trace.flags[i];
    const status = trace.status[i];
    const point = trace.dur[i] === 0 && !(group && !group.open);
    setClass(slot.bar, point
      ? "wf-bar wf-point"
      : `wf-bar${flags & INFERRED_START ? " wf-open-left" : ""}${flags & INFERRED_END || status === OPEN ? " wf-open-right" : ""}${status === OPEN ? " wf-running" : ""}`);
    if (point) this.place(slot.bar, x0 - 3, x0 + 3);
    else this.place(slot.bar, x0, x1);
    const wait = trace.wait[i];
    setHidden(slot.wait, !(wait > 0));
    if (wait > 0) this.place(slot.wait, toX(this.axis, start - wait), x0);
    const words = [];
    if (status === ERROR) words.push("✕ failed");
    if (status === OPEN && trace.kinds[trace.kind[i]] !== "turn" && trace.kinds[trace.kind[i]] !== "session") words.push("running or waiting for approval");
    else if (status === OPEN) words.push("running");
    if (status === UNKNOWN) words.push("no end seen");
    if (flags & TENTATIVE) words.push("link uncertain");
    const extra = this.notes.get(trace.row[i]);
    if (extra) words.push(extra);
    this.note(slot, words.join(" · "), x0, x1);
  }

  // Bars that leave the track are cut at its edges, so that a long one costs no pixels.
  place(bar, x0, x1) {
    const left = Math.max(-2, Math.min(this.trackWidth + 2, x0));
    const right = Math.max(-2, Math.min(this.trackWidth + 2, x1));
    const gone = x1 < -2 || x0 > this.trackWidth + 2;
    // Tenths of a pixel: nobody sees more, and most frames then write nothing.
    const x = Math.round(left * 10) / 10;
    const width = gone ? 0 : Math.round(Math.max(2, right - left) * 10) / 10;
    if (bar.x !== x) bar.style.transform = `translateX(${bar.x = x}px)`;
    if (bar.w !== width) bar.style.width = `${bar.w = width}px`;
  }

  // Beside the bar, where there is room: right, else left, else on it.
  note(slot, text, x0, x1) {
    setText(slot.note, text);
    setHidden(slot.note, !text);
    if (!text) return;
    const width = text.length * 6.3 + 10;
    const right = Math.max(0, Math.min(x1, this.trackWidth));
    const left = Math.max(0, x0);
    let x = left + 6;
    let inside = true;
    if (right + width <= this.trackWidth) [x, inside] = [right + 5, false];
    else if (left - width >= 0) [x, inside] = [left - width, false];
    setClass(slot.note, inside ? "wf-note wf-note-in" : "wf-note");
    x = Math.round(x);
    if (slot.note.x !== x) slot.note.style.transform = `translateX(${slot.note.x = x}px)`;
  }

  rowAt(event) {
    const slot = this.pool.find((one) => one.row === event.target.closest?.(".wf-row"));
    return slot ? this.rows[slot.at] : -1;
  }

  click(event) {
    const i = this.rowAt(event);
    if (i === undefined || i < 0) return;
    if (event.target.classList.contains("wf-twist")) this.toggle(i);
    this.select(i, { scroll: false });
  }

  // What the keys do.

  select(i, { scroll = true, quiet = false } = {}) {
    if (i < 0 || !this.trace || i >= this.trace.n) return;
    this.reveal(i);
    this.selected = i;
    this.version += 1;
    if (scroll) this.scrollTo(i);
    this.schedule();
    if (!quiet) this.on.onSelect?.(i);
  }

  /** Unfolds whatever hides a row; a filter that hides it is lifted by the page. */
  reveal(i) {
    let changed = false;
    for (let up = this.trace.parent[i]; up >= 0; up = this.trace.parent[up]) {
      changed = this.folded.delete(this.trace.row[up]) || changed;
    }
    if (changed) this.layout();
    if (this.hit || this.at(i) !== undefined) return;
    const first = this.groupOf(i);
    if (first < 0) return;
    this.opened.add(this.trace.row[first]);
    this.layout();
  }

  /** The first of the equal siblings that `i` is one of, or -1. */
  groupOf(i) {
    for (const [first, group] of this.groups) if (i >= first && i < group.last) return first;
    return -1;
  }

  scrollTo(i) {
    const at = this.at(i);
    if (at === undefined) return;
    const top = at * ROW_PX;
    const height = this.scroller.clientHeight;
    const margin = Math.min(ROW_PX * 3, height / 4);
    if (top < this.scroller.scrollTop + margin) this.scroller.scrollTop = top - margin;
    else if (top + ROW_PX > this.scroller.scrollTop + height - margin) this.scroller.scrollTop = top + ROW_PX - height + margin;
  }

  move(step) {
    const from = this.at(this.selected) ?? (step > 0 ? -1 : this.rows.length);
    for (let at = from + step; at >= 0 && at < this.rows.length; at += Math.sign(step)) {
      if (this.rows[at] >= 0) return this.select(this.rows[at]);
    }
    return undefined;
  }

  edge(end) {
    const rows = end ? this.rows.slice().reverse() : this.rows;
    const row = rows.find((i) => i >= 0);
    if (row !== undefined) this.select(row);
  }

  /** The next row in tree order (shown or not) for which `test` holds; wraps round. */
  seek(step, test) {
    const { n } = this.trace;
    const from = this.selected < 0 ? (step > 0 ? -1 : 0) : this.selected;
    for (let k = 1; k <= n; k += 1) {
      const i = (((from + step * k) % n) + n) % n;
      if (test(i)) {
        this.select(i);
        return true;
      }
    }
    return false;
  }

  toggle(i, open) {
    const { trace } = this;
    const key = trace.row[i];
    if (this.groups.has(i)) {
      if (open ?? !this.opened.has(key)) this.opened.add(key);
      else this.opened.delete(key);
    } else if (trace.last[i] > i + 1) {
      if (open ?? this.folded.has(key)) this.folded.delete(key);
      else this.folded.add(key);
    } else {
      return;
    }
    this.layout();
  }

  left() {
    const i = this.selected;
    if (i < 0) return;
    const first = this.groupOf(i);
    if (first >= 0 && this.groups.get(first).open) {
      this.toggle(first, false);
      this.select(first);
    } else if (first < 0 && this.trace.last[i] > i + 1 && !this.folded.has(this.trace.row[i])) {
      this.toggle(i, false);
    } else if (this.trace.parent[i] >= 0) {
      this.select(this.trace.parent[i]);
    }
  }

  right() {
    const i = this.selected;
    if (i < 0) return;
    const group = this.groups.get(i);
    if (group ? !group.open : this.folded.has(this.trace.row[i])) this.toggle(i, true);
    else if (group || this.trace.last[i] > i + 1) this.move(1);
  }

  foldTurns() {
    const turn = kindIndex(this.trace, "turn");
    for (let i = 0; i < this.trace.n; i += 1) if (this.trace.kind[i] === turn) this.folded.add(this.trace.row[i]);
    const up = this.selected < 0 ? -1 : this.turnOf(this.selected);
    if (up >= 0 && up !== this.selected) this.select(up, { quiet: false });
    this.layout();
    if (this.selected >= 0) this.scrollTo(this.selected);
  }

  turnOf(i) {
    const turn = kindIndex(this.trace, "turn");
    let found = -1;
    for (let up = i; up >= 0; up = this.trace.parent[up]) if (this.trace.kind[up] === turn) found = up;
    return found;
  }

  unfoldAll() {
    this.folded.clear();
    this.layout();
    // Groups are known once everything above them is open.
    for (const first of this.groups.keys()) this.opened.add(this.trace.row[first]);
    this.layout();
    if (this.selected >= 0) this.scrollTo(this.selected);
  }

  /** Marks rows (the critical path); the bars of all others step back. */
  mark(marked) {
    this.marked = marked;
    this.host.classList.toggle("wf-dimmed", marked !== null);
    this.version += 1;
    this.schedule();
  }

  filter(hit) {
    this.hit = hit;
    this.layout();
    if (this.selected >= 0) this.scrollTo(this.selected);
  }

  setManual(range) {
    this.manual = range;
    this.version += 1;
    this.schedule();
  }

  toggleFollow() {
    this.setManual(this.manual ? null : [this.axis.from, this.axis.to]);
  }

  zoom(factor) {
    const { from, to } = this.axis;
    const i = this.selected;
    const chosen = i >= 0 ? (this.trace.start[i] + endOf(this.trace, i, this.now)) / 2 : NaN;
    const center = chosen >= from && chosen <= to ? chosen : toTime(this.axis, this.axis.width / 2);
    const half = Math.max(50, ((to - from) / 2) * factor);
    this.setManual([Math.max(0, center - half), Math.min(this.span[1], center + half)]);
  }

  fitAll() {
    this.setManual([...this.span]);
  }

  /** Brings the first row that starts at or after `t` into view. */
  jump(t) {
    const { trace } = this;
    const session = kindIndex(trace, "session");
    let best = -1;
    for (const i of this.rows) {
      if (i < 0 || trace.kind[i] === session) continue;
      if (trace.start[i] >= t && (best < 0 || trace.start[i] < trace.start[best])) best = i;
      if (trace.start[i] <= t && endOf(trace, i, this.now) >= t && trace.last[i] === i + 1) best = i;
    }
    if (best >= 0) this.select(best);
  }
}
