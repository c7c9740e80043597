// What the waterfall's keys do: choosing another row, folding, zooming and jumping to a time.
/** @import { KeyMap } from "../../types/app" */
/** @import { Model } from "./model.js" */
/** @import { Waterfall } from "./waterfall.js" */
import { kindIndex } from "../trace/rows.js";

const PAGE_ROWS = 20;

/** Chooses the next span row in the direction of `step`. @param {Waterfall} waterfall @param {number} step */
function move(waterfall, step) {
  const { model } = waterfall;
  const from = model.at(model.selected) ?? (step > 0 ? -1 : model.rows.length);
  for (let at = from + step; at >= 0 && at < model.rows.length; at += Math.sign(step)) {
    if (model.rows[at] >= 0) {
      waterfall.select(model.rows[at]);
      return;
    }
  }
}

/** Chooses the first or the last row. @param {Waterfall} waterfall @param {boolean} end */
function edge(waterfall, end) {
  const { rows } = waterfall.model;
  const row = end ? rows.findLast((i) => i >= 0) : rows.find((i) => i >= 0);
  if (row !== undefined) waterfall.select(row);
}

/** Chooses the next span in tree order, shown or not, for which `test` holds. Wraps round. Returns whether there is one.
 * @param {Waterfall} waterfall @param {number} step @param {(i: number) => boolean} test */
export function seek(waterfall, step, test) {
  const { selected, trace: { n } } = waterfall.model;
  const from = selected < 0 ? (step > 0 ? -1 : 0) : selected;
  for (let k = 1; k <= n; k += 1) {
    const i = (((from + step * k) % n) + n) % n;
    if (test(i)) {
      waterfall.select(i);
      return true;
    }
  }
  return false;
}

/** Chooses the next turn. @param {Waterfall} waterfall @param {number} step */
function seekTurn(waterfall, step) {
  const { trace } = waterfall.model;
  const turn = kindIndex(trace, "turn");
  seek(waterfall, step, (i) => trace.kind[i] === turn);
}

/** Folds the chosen row, or goes to its parent. @param {Waterfall} waterfall */
function left(waterfall) {
  const { model } = waterfall;
  const i = model.selected;
  if (i < 0) return;
  const first = model.groupOf(i);
  if (model.groups.get(first)?.open) {
    waterfall.toggle(first, false);
    waterfall.select(first);
  } else if (first < 0 && model.trace.last[i] > i + 1 && !model.folded.has(model.trace.row[i])) {
    waterfall.toggle(i, false);
  } else if (model.trace.parent[i] >= 0) {
    waterfall.select(model.trace.parent[i]);
  }
}

/** Unfolds the chosen row, or goes to the first row below it. @param {Waterfall} waterfall */
function right(waterfall) {
  const { model } = waterfall;
  const i = model.selected;
  if (i < 0) return;
  const group = model.groups.get(i);
  if (group ? !group.open : model.folded.has(model.trace.row[i])) waterfall.toggle(i, true);
  else if (model.isParent(i)) move(waterfall, 1);
}

/**
 * Finds the row to show for a time, or for a period. In this order: the first shown row that begins in the period and
 * has no rows below it; the last row that began before and still ran; the innermost row that contains the beginning. -1
 * if there is none. A folded turn represents its calls. Pure.
 * @param {Model} model @param {number} from @param {number} [to] @returns {number}
 */
export function rowAt(model, from, to = from) {
  const { trace } = model;
  const session = kindIndex(trace, "session");
  let [begins, runs, holds, next] = [-1, -1, -1, -1];
  /** @param {number} i @param {number} best */
  const earlier = (i, best) => best < 0 || trace.start[i] < trace.start[best];
  for (const i of model.rows) {
    if (i < 0 || trace.kind[i] === session) continue;
    const start = trace.start[i];
    if (start > to) {
      if (earlier(i, next)) next = i;
    } else if (model.endOfRow(i) >= from) {
      if (model.isExpanded(i)) holds = start <= from || holds < 0 ? i : holds;
      else if (start >= from && to > from) begins = earlier(i, begins) ? i : begins;
      else if (runs < 0 || !earlier(i, runs)) runs = i;
    }
  }
  const found = [begins, runs, holds].find((i) => i >= 0);
  // If no bar is at the time that was clicked, the next bar is chosen. A period without bars changes nothing.
  return found ?? (to > from ? -1 : next);
}

/** Chooses the row for a time or a period. @param {Waterfall} waterfall @param {number} from @param {number} [to] */
export function jump(waterfall, from, to = from) {
  const row = rowAt(waterfall.model, from, to);
  if (row >= 0) waterfall.select(row);
}

/** The keys that need nothing but the waterfall. @param {Waterfall} waterfall @returns {KeyMap} */
export function waterfallKeys(waterfall) {
  const next = () => move(waterfall, 1);
  const previous = () => move(waterfall, -1);
  const toggle = () => { if (waterfall.model.selected >= 0) waterfall.toggle(waterfall.model.selected); };
  const closer = () => waterfall.zoom(0.5);
  return {
    j: next, ArrowDown: next, k: previous, ArrowUp: previous,
    PageDown: () => move(waterfall, PAGE_ROWS), PageUp: () => move(waterfall, -PAGE_ROWS),
    Home: () => edge(waterfall, false), End: () => edge(waterfall, true),
    ArrowLeft: () => left(waterfall), ArrowRight: () => right(waterfall), Enter: toggle, " ": toggle,
    "[": () => seekTurn(waterfall, -1), "]": () => seekTurn(waterfall, 1),
    a: () => waterfall.toggleFollow(), f: () => waterfall.fitAll(), "+": closer, "=": closer, "-": () => waterfall.zoom(2),
    1: () => waterfall.foldTurns(), 0: () => waterfall.unfoldAll(),
  };
}
