// Which rows of a trace are turns, and the turn of each.
/** @import { Turn } from "../../types/answers" */
/** @import { Trace } from "../../types/trace" */
import { kindIndex } from "./rows.js";

/** Indices of all turns. @param {Trace} trace */
export function turnsOf(trace) {
  const turn = kindIndex(trace, "turn");
  const all = [];
  for (let i = 0; i < trace.n; i += 1) if (trace.kind[i] === turn) all.push(i);
  return all;
}

/**
 * The turns of a trace by row, found by the number at the beginning of a turn's label. A start is no key: a child that
 * starts before its turn moves the row's start. Turns of subagents have their own numbers and are left out.
 * @param {Trace} trace @param {Turn[]} turns @returns {Map<number, Turn>} by index
 */
export function turnsByRow(trace, turns) {
  const session = kindIndex(trace, "session");
  const byNumber = new Map(turns.map((one) => [one.n, one]));
  const found = new Map();
  for (const i of turnsOf(trace)) {
    const up = trace.parent[i];
    const number = /^turn (\d+)/.exec(trace.strs[trace.label[i]])?.[1];
    const one = number === undefined ? undefined : byNumber.get(Number(number));
    if (one && (up < 0 || trace.kind[up] === session)) found.set(i, one);
  }
  return found;
}
