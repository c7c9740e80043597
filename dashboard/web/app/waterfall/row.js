// One row of the page: its elements, its texts and the position of its bar.
/** @import { Group, Idle } from "../../types/trace" */
/** @import { Axis, Placed, Slot } from "../../types/waterfall" */
/** @import { Model } from "./model.js" */
import { duration } from "../format/quantity.js";
import { clock, date, offset } from "../format/time.js";
import { visible } from "../format/text.js";
import { ERROR, INFERRED_END, INFERRED_START, OPEN, TENTATIVE, TRUNCATED, UNKNOWN, UNKNOWN_LENGTH } from "../trace/columns.js";
import { head } from "../trace/rows.js";
import { toX } from "./axis.js";
import { make, setClass, setHidden, setText } from "./dom.js";

/** Height of a row, pixels. */
export const ROW_PX = 22;
const INDENT_PX = 14;
const INDENT_MAX = 12;
const EDGE_PX = 8;
/** Average width of a character of a note. */
const NOTE_CHAR_PX = 6.3;

/** The elements of a new row. @param {number} n a number of its own @returns {Slot} */
export function makeSlot(n) {
  const row = make("div", "", "row");
  row.id = `wf-row-${n}`;
  const name = make("span", "wf-name", "rowheader");
  const twist = make("span", "wf-twist");
  twist.setAttribute("aria-hidden", "true");
  const text = make("span", "wf-text");
  name.append(twist, text);
  const track = make("span", "wf-track", "gridcell");
  const [wait, bar, note] = ["wf-wait", "wf-bar", "wf-note"].map((part) => make("span", part));
  track.append(wait, bar, note);
  const mix = make("span", "wf-mix");
  mix.setAttribute("aria-hidden", "true");
  const dur = make("span", "wf-dur", "gridcell");
  row.append(name, track, mix, dur);
  return { at: -1, version: -1, kind: undefined, row, name, twist, text, track, wait, bar, note, mix, mixed: undefined, dur };
}

/**
 * Shows row `at` of the shown rows in a slot: always its bar, and with `all` also its texts.
 * @param {Slot} slot @param {Model} model @param {number} at @param {Axis} axis @param {boolean} all
 */
export function fill(slot, model, at, axis, all) {
  const i = model.rows[at];
  slot.at = at;
  slot.version = model.version;
  if (all) {
    setHidden(slot.row, false);
    slot.row.style.transform = `translateY(${at * ROW_PX}px)`;
    slot.row.setAttribute("aria-rowindex", String(at + 1));
    if (i < 0) fillIdle(slot, model.idle[-1 - i]);
    else fillSpan(slot, model, i);
  }
  if (i < 0) placeIdle(slot, model, model.idle[-1 - i], axis);
  else placeSpan(slot, model, i, axis);
}

/** @param {Slot} slot @param {Idle} idle */
function fillIdle(slot, [from, to, depth]) {
  slot.row.className = "wf-row wf-idle";
  slot.row.removeAttribute("aria-expanded");
  slot.row.setAttribute("aria-selected", "false");
  slot.row.setAttribute("aria-level", String(depth + 1));
  slot.name.style.paddingLeft = `${EDGE_PX + depth * INDENT_PX}px`;
  slot.twist.textContent = "";
  slot.text.textContent = "your turn";
  slot.dur.textContent = duration(to - from);
  setMix(slot, undefined);
  setHidden(slot.wait, true);
}

/** @param {Slot} slot @param {Model} model @param {Idle} idle @param {Axis} axis */
function placeIdle(slot, model, [from, to], axis) {
  const x0 = toX(axis, from);
  const x1 = toX(axis, to);
  const cut = model.cuts.some(([a, b]) => a === from && b === to);
  setClass(slot.bar, cut ? "wf-bar wf-bar-cut" : "wf-bar wf-bar-idle");
  place(slot.bar, x0, x1, axis.width);
  placeNote(slot.note, cut ? `// ${duration(to - from)} idle (skipped)` : "", x0, x1, axis.width);
}

/** @param {Slot} slot @param {Model} model @param {number} i */
function fillSpan(slot, model, i) {
  const { trace } = model;
  const group = model.groups.get(i);
  const together = group && !group.open ? group : null;
  const parent = model.isParent(i);
  const expanded = model.isExpanded(i);
  const depth = trace.depth[i];
  const label = trace.strs[trace.label[i]];
  setClass(slot.row, rowClass(model, i, together !== null));
  slot.row.setAttribute("aria-level", String(depth + 1));
  slot.row.setAttribute("aria-selected", String(i === model.selected));
  if (parent) slot.row.setAttribute("aria-expanded", String(expanded));
  else slot.row.removeAttribute("aria-expanded");
  slot.name.style.paddingLeft = `${EDGE_PX + Math.min(depth, INDENT_MAX) * INDENT_PX}px`;
  setText(slot.twist, parent ? (expanded ? "▾" : "▸") : "");
  setText(slot.text, together ? `${together.count} × ${visible(head(label))}` : visible(label));
  setText(slot.dur, length(model, i, together));
  setMix(slot, model.mixes.get(trace.row[i]));
}

/** @param {Model} model @param {number} i @param {boolean} together */
function rowClass({ trace, selected, hit, marked }, i, together) {
  const kind = trace.kinds[trace.kind[i]];
  return `wf-row k-${kind}${trace.status[i] === ERROR ? " wf-failed" : ""}${i === selected ? " wf-selected" : ""}`
    + `${hit?.[i] ? " wf-hit" : ""}${together ? " wf-group" : ""}${marked?.[i] ? " wf-marked" : ""}`;
}

/**
 * The duration of a row as text. For a folded group, the sum of its members.
 * @param {Model} model @param {number} i @param {Group | null} group
 */
function length({ trace, now }, i, group) {
  if (!group && trace.flags[i] & UNKNOWN_LENGTH) return "?";
  if (!group) return trace.dur[i] < 0 ? `${duration(now - trace.start[i])} …` : duration(trace.dur[i]);
  let sum = 0;
  for (let k = i; k < group.last; k += 1) if (!(trace.flags[k] & UNKNOWN_LENGTH)) sum += Math.max(0, trace.dur[k]);
  return `Σ ${duration(sum)}`;
}

/** Shows what a turn's time was used for. Empty for every other row. @param {Slot} slot @param {string | undefined} background */
function setMix(slot, background) {
  if (slot.mixed !== background) slot.mix.style.background = (slot.mixed = background) ?? "";
}

/** @param {Slot} slot @param {Model} model @param {number} i @param {Axis} axis */
function placeSpan(slot, model, i, axis) {
  const { trace } = model;
  const start = trace.start[i];
  const group = model.groups.get(i);
  const x0 = toX(axis, start);
  const x1 = toX(axis, model.endOfRow(i));
  const point = trace.dur[i] === 0 && !(group && !group.open);
  setClass(slot.bar, point ? "wf-bar wf-point" : barClass(trace.flags[i], trace.status[i]));
  if (point) place(slot.bar, x0 - 3, x0 + 3, axis.width);
  else place(slot.bar, x0, x1, axis.width);
  const wait = trace.wait[i];
  setHidden(slot.wait, !(wait > 0));
  if (wait > 0) place(slot.wait, toX(axis, start - wait), x0, axis.width);
  const away = beyond(axis, start - trace.wait[i], model.endOfRow(i));
  placeNote(slot.note, away || words(model, i), x0, x1, axis.width);
  slot.note.classList.toggle("wf-note-away", away !== "");
}

/** On which side of the axis a row lies; empty if it is on the axis. @param {Axis} axis @param {number} start @param {number} end */
export function beyond({ from, to }, start, end) {
  if (end < from) return `◂ ${duration(from - end)} earlier`;
  return start > to ? `${duration(start - to)} later ▸` : "";
}

/** The tooltip of a row: a few lines that describe it. @param {Model} model @param {number} i */
export function about(model, i) {
  const { trace } = model;
  const group = model.groups.get(i);
  const together = group && !group.open ? group : null;
  const begin = trace.start[i] + trace.t0;
  const end = trace.dur[i] < 0 ? "now" : clock(model.endOfRow(i) + trace.t0);
  const state = words({ trace, notes: model.notes }, i);
  return [
    together ? `${together.count} × ${visible(head(trace.strs[trace.label[i]]))}` : visible(trace.strs[trace.label[i]]),
    [length(model, i, together), trace.wait[i] > 0 ? `wait ${duration(trace.wait[i])} (derived)` : "", state].filter(Boolean).join(" · "),
    `${date(begin).slice(0, 10)} ${clock(begin)} – ${end} · ${offset(trace.start[i], 1e5)}`,
    "double-click the bar: fit it; the name: fold",
  ].join("\n");
}

/** An inferred start or end is drawn without an edge, and so is the end of a running span. @param {number} flags @param {number} status */
function barClass(flags, status) {
  const running = status === OPEN;
  return `wf-bar${flags & INFERRED_START ? " wf-open-left" : ""}${flags & INFERRED_END || running ? " wf-open-right" : ""}${running ? " wf-running" : ""}${flags & UNKNOWN_LENGTH ? " wf-unknown" : ""}`;
}

/** The text beside a bar. @param {Pick<Model, "trace" | "notes">} model @param {number} i */
function words({ trace, notes }, i) {
  const status = trace.status[i];
  const kind = trace.kinds[trace.kind[i]];
  const all = [];
  if (status === ERROR) all.push("✕ failed");
  if (status === OPEN) all.push(kind === "turn" || kind === "session" ? "running" : "running or waiting for approval");
  if (status === UNKNOWN) all.push("no end seen");
  if (trace.flags[i] & TENTATIVE) all.push(kind === "subagent" ? "link uncertain" : "its subagent failed");
  if (kind === "turn" && trace.flags[i] & TRUNCATED) all.push("hooks left out, figures too low");
  const extra = notes.get(trace.row[i]);
  if (extra) all.push(extra);
  return all.join(" · ");
}

/**
 * Places a bar. A bar that is longer than the track is cut at the track's edges, because the browser would paint the
 * invisible part, too.
 * @param {Placed} bar @param {number} x0 @param {number} x1 @param {number} track width of the track
 */
function place(bar, x0, x1, track) {
  const left = Math.max(-2, Math.min(track + 2, x0));
  const right = Math.max(-2, Math.min(track + 2, x1));
  const gone = x1 < -2 || x0 > track + 2;
  // Rounded to tenths of a pixel. The difference is invisible, and in most frames nothing has to be written.
  const x = Math.round(left * 10) / 10;
  const width = gone ? 0 : Math.round(Math.max(2, right - left) * 10) / 10;
  if (bar.x !== x) bar.style.transform = `translateX(${bar.x = x}px)`;
  if (bar.w !== width) bar.style.width = `${bar.w = width}px`;
}

/**
 * Places a note to the right of its bar if there is room, else to the left of it, else on it. If it fits nowhere, its
 * last parts are left out, and if necessary all of them. A note never covers the end of a bar.
 * @param {Placed} note @param {string} text parts are joined by ` · ` @param {number} x0 @param {number} x1 @param {number} track
 */
function placeNote(note, text, x0, x1, track) {
  const right = Math.max(0, Math.min(x1, track));
  const left = Math.max(0, Math.min(x0, track));
  const room = Math.max(track - right, left, right - left - 6);
  const shown = fitting(text, room);
  setText(note, shown);
  setHidden(note, !shown);
  if (!shown) return;
  const width = widthOf(shown);
  const inside = right + width > track && left < width;
  setClass(note, inside ? "wf-note wf-note-in" : "wf-note");
  const x = Math.round(inside ? left + 6 : right + width <= track ? right + 5 : left - width);
  if (note.x !== x) note.style.transform = `translateX(${note.x = x}px)`;
}

/** @param {string} text */
const widthOf = (text) => text.length * NOTE_CHAR_PX + 10;

/** As many parts of a note as fit into `room`. @param {string} text @param {number} room */
export function fitting(text, room) {
  let shown = text;
  while (shown && widthOf(shown) > room) shown = shown.slice(0, Math.max(0, shown.lastIndexOf(" · ")));
  return shown;
}
