// Which rows of a trace are turns, and which turn each of them is.
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
 * The turns of a trace by their row: by the number that a turn's label begins with. A start is no key: a child that starts before its
 * turn moves the start of the row. Turns of subagents have numbers of their own and are left out.
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
