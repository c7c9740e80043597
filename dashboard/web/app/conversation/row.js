// One row of the conversation: its line, its body, and its bar in the time column.
/** @import { Step, StepItem } from "../../types/conversation" */
/** @import { Script } from "./script.js" */
import { duration } from "../format/quantity.js";
import { visible } from "../format/text.js";
import { INFERRED_END, INFERRED_START, OPEN, ERROR, UNKNOWN_LENGTH } from "../trace/columns.js";
import { endOf } from "../trace/rows.js";
import { make, setClass, setHidden, setText } from "../waterfall/dom.js";
import { bodyOf } from "./body.js";
import { iconOf, makeIcon } from "./icons.js";
import { length, outcome, title } from "./words.js";

/** Height of a row that is one line. */
export const LINE_PX = 24;
/** Minimum wait that is named beside its bar. */
const WAIT_MIN_US = 1e6;
/** A bar longer than this part (one fourth) of its turn shows its length. */
const NAMED_SHARE = 4;

/** @param {number} n a number of its own @returns {Step} */
export function makeStep(n) {
  const row = make("div", "", "row");
  row.id = `cv-row-${n}`;
  const text = make("div", "cv-left", "rowheader");
  const { svg, path } = makeIcon();
  const headLine = make("div", "cv-head");
  const [label, subject, end, twist] = ["cv-label", "cv-subject blurry", "cv-end", "cv-twist"].map((name) => make("span", name));
  twist.setAttribute("aria-hidden", "true");
  headLine.append(label, subject, end, twist);
  const body = make("div", "cv-below");
  text.append(svg, headLine, body);
  const track = make("div", "cv-track", "gridcell");
  const [wait, bar, note] = ["cv-wait", "cv-bar", "cv-beside"].map((name) => make("span", name));
  const sum = make("div", "cv-about");
  track.append(wait, bar, note, sum);
  row.append(text, track);
  return { at: -1, version: -1, row, text, icon: path, head: headLine, label, subject, end, twist, body, track, wait, bar, note, sum, shown: "" };
}

/** Shows row number `at`. Returns whether its height has to be measured.
 * @param {Step} step @param {Script} script @param {number} at @param {number} selected @param {StepItem} [known] */
export function fill(step, script, at, selected, known) {
  const i = script.rows[at];
  step.at = at;
  step.version = script.version;
  setHidden(step.row, false);
  step.row.setAttribute("aria-rowindex", String(at + 1));
  return i < 0 ? fillIdle(step, script, i) : fillSpan(step, script, i, selected, known);
}

/** @param {Step} step @param {Script} script @param {number} i */
function fillIdle(step, script, i) {
  const [from, to] = script.idle[-1 - i];
  setClass(step.row, "cv-row cv-idle");
  step.row.removeAttribute("aria-expanded");
  step.row.setAttribute("aria-selected", "false");
  step.row.setAttribute("aria-level", "1");
  level(step, 0);
  step.icon.setAttribute("d", iconOf("idle", ""));
  setText(step.label, "");
  setText(step.subject, `your turn: ${duration(to - from)}`);
  step.end.replaceChildren();
  setText(step.twist, "");
  drop(step);
  for (const part of [step.wait, step.bar, step.note]) setHidden(part, true);
  return false;
}

/** @param {Step} step @param {Script} script @param {number} i @param {number} selected @param {StepItem} [known] */
function fillSpan(step, script, i, selected, known) {
  const { trace } = script;
  const form = script.form(i);
  const kind = trace.kinds[trace.kind[i]];
  const group = script.isGroup(i);
  const open = !group && script.isOpen(i, known);
  const failed = trace.status[i] === ERROR;
  setClass(step.row, `cv-row cv-${form} k-${kind}${failed ? " cv-bad" : ""}${i === selected ? " cv-selected" : ""}${script.hit?.[i] ? " cv-hit" : ""}`);
  step.row.setAttribute("aria-level", String(script.level[i] + (form === "prompt" ? 1 : 2)));
  step.row.setAttribute("aria-selected", String(i === selected));
  if (form === "note") step.row.removeAttribute("aria-expanded");
  else step.row.setAttribute("aria-expanded", String(open));
  level(step, script.level[i]);
  step.icon.setAttribute("d", iconOf(form, kind));
  const [label, subject] = title(script, i);
  setText(step.label, label);
  setText(step.subject, form === "answer" && open ? "" : form === "thought" || form === "answer" ? firstLine(known) || subject : subject);
  ends(step, script, i, known);
  setText(step.twist, form === "note" ? "" : open ? "▾" : "▸");
  place(step, script, i);
  return below(step, script, i, open, known);
}

/** The first line of a row's text. @param {StepItem} [known] */
function firstLine(known) {
  const text = known?.texts[0]?.text ?? "";
  return visible(text.slice(0, 400).trimStart().split("\n", 1)[0]);
}

/** @param {Step} step @param {number} by */
function level(step, by) {
  if (step.text.dataset.level !== String(by)) step.text.style.setProperty("--cv-level", step.text.dataset.level = String(by));
}

/**
 * The right end of a line: lines added and removed, result, duration.
 * @param {Step} step @param {Script} script @param {number} i @param {StepItem} [known]
 */
function ends(step, script, i, known) {
  const group = script.isGroup(i);
  const words = group ? "" : outcome(script, i, known);
  /** @type {[text: string, name: string][]} */
  const parts = [];
  const edit = group ? undefined : known?.edit;
  // If both counts are zero although lines differ, the counts are unknown.
  if (edit && (edit.added || edit.removed || !edit.hunks.length)) parts.push([`+${edit.added}`, "good"], [`−${edit.removed}`, "bad"]);
  if (words) parts.push([words, words.startsWith("✕") ? "bad" : "warn"]);
  parts.push([length(script, i), ""]);
  const key = parts.map(([text]) => text).join("|");
  if (step.end.dataset.key === key) return;
  step.end.dataset.key = key;
  step.end.replaceChildren(...parts.filter(([text]) => text).map(([text, name]) => {
    const part = make("span", name);
    part.textContent = text;
    return part;
  }));
}

/**
 * Builds the body below the line, unless it is there already.
 * @param {Step} step @param {Script} script @param {number} i
 * @param {boolean} open @param {StepItem} [known]
 */
function below(step, script, i, open, known) {
  const form = script.form(i);
  const told = form === "prompt" || (open && form !== "note" && (form !== "agent" || !script.isParent(i)) && (form === "agent" || !script.isParent(i)));
  if (!told) return drop(step);
  const key = `${script.trace.row[i]} ${known ? "here" : "away"} ${script.isWhole(i)} ${script.trace.status[i]}`;
  // Compared as an object: a text that was read again is another object.
  if (step.shown === key && step.body.dataset.of === stamp(known)) return false;
  step.shown = key;
  step.body.dataset.of = stamp(known);
  step.body.replaceChildren(bodyOf(script, i, known));
  return true;
}

/** @param {StepItem} [known] */
const stamp = (known) => (known ? `${known.texts.map((text) => `${text.part} ${text.bytes}`).join()} ${known.edit?.added} ${known.edit?.removed} ${known.message}` : "");

/** @param {Step} step */
function drop(step) {
  if (step.shown === "") return false;
  step.shown = "";
  step.body.replaceChildren();
  return false;
}

/**
 * Places the bar by shares of the turn's own time, so scrolling moves no bar.
 * @param {Step} step @param {Script} script @param {number} i
 */
export function place(step, script, i) {
  const { trace, now } = script;
  const top = script.top[i];
  const from = trace.start[top];
  const whole = Math.max(1, endOf(trace, top, now) - from);
  /** @param {number} t */
  const share = (t) => Math.max(0, Math.min(100, ((t - from) / whole) * 100));
  const group = script.groups.get(i);
  let until = endOf(trace, i, now);
  if (group && !group.open) for (let k = i; k < group.last; k += 1) until = Math.max(until, endOf(trace, k, now));
  const [left, right] = [share(trace.start[i]), share(until)];
  const own = i !== top;
  const point = trace.dur[i] === 0 && !group;
  setHidden(step.bar, !own);
  setClass(step.bar, `cv-bar${point ? " cv-point" : ""}${trace.flags[i] & INFERRED_START ? " wf-open-left" : ""}${trace.flags[i] & INFERRED_END || trace.status[i] === OPEN ? " wf-open-right" : ""}${trace.flags[i] & UNKNOWN_LENGTH ? " wf-unknown" : ""}${group && !group.open ? " cv-many" : ""}`);
  span(step.bar, left, right);
  const wait = trace.wait[i];
  setHidden(step.wait, !(own && wait > 0));
  if (wait > 0) span(step.wait, share(trace.start[i] - wait), left);
  beside(step, own ? told(script, i, right - left, wait) : "", wait > 0 ? share(trace.start[i] - wait) : left, right);
}

/** @param {HTMLElement} element @param {number} left @param {number} right percent */
function span(element, left, right) {
  const key = `${left.toFixed(2)} ${(right - left).toFixed(2)}`;
  if (element.dataset.at === key) return;
  element.dataset.at = key;
  element.style.left = `${left.toFixed(2)}%`;
  element.style.width = `${(right - left).toFixed(2)}%`;
}

/** @param {Script} script @param {number} i @param {number} wide percent @param {number} wait */
function told(script, i, wide, wait) {
  const { trace } = script;
  const words = wait >= WAIT_MIN_US ? [`waited ${duration(wait)} (derived)`] : [];
  if (wide >= NAMED_SHARE && trace.dur[i] !== 0) words.push(length(script, i));
  return words.join(" · ");
}

/** @param {Step} step @param {string} text @param {number} left @param {number} right */
function beside(step, text, left, right) {
  setHidden(step.note, !text);
  if (!text) return;
  setText(step.note, text);
  const key = `${left.toFixed(1)} ${right.toFixed(1)}`;
  if (step.note.dataset.at === key) return;
  step.note.dataset.at = key;
  const before = right > 72;
  step.note.style.left = before ? "auto" : `calc(${right.toFixed(1)}% + 6px)`;
  step.note.style.right = before ? `calc(${(100 - left).toFixed(1)}% + 6px)` : "auto";
}
