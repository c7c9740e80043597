// What the page says and does about turns. Pure.
/** @import { Turn } from "../../types/answers" */
/** @import { Trace } from "../../types/trace" */
import { cost, count, plural, tokenTotal } from "../format/quantity.js";
import { ERROR } from "../trace/columns.js";
import { kindIndex } from "../trace/rows.js";
import { mix } from "../trace/time-parts.js";

/** Indices of all turns. @param {Trace} trace */
export function turnsOf(trace) {
  const turn = kindIndex(trace, "turn");
  const all = [];
  for (let i = 0; i < trace.n; i += 1) if (trace.kind[i] === turn) all.push(i);
  return all;
}

/**
 * The turn that is open when the page opens: the one that runs, else the last one with an error, else the last. Undefined without turns.
 * @param {Trace} trace @param {number[]} turns
 */
export function turnToOpen(trace, turns) {
  const running = turns.findLast((i) => trace.dur[i] < 0);
  if (running !== undefined) return running;
  const failed = turns.findLast((i) => trace.status.subarray(i, trace.last[i]).includes(ERROR));
  return failed ?? turns.at(-1);
}

/** The text beside a turn. @param {Turn} turn */
function note(turn) {
  const words = [
    turn.calls ? plural(turn.calls, "call") : null,
    turn.errors ? `${turn.errors} err` : null,
    turn.tokens ? `${count(tokenTotal(turn.tokens))} tok` : null,
    turn.cost ? cost(turn.cost) : null,
    turn.repository?.commits.length ? plural(turn.repository.commits.length, "commit") : null,
  ];
  return words.filter(Boolean).join(" · ");
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

/** Notes and backgrounds of turns, by row key. @param {Trace} trace @param {Turn[]} turns */
export function annotations(trace, turns) {
  const notes = new Map();
  const mixes = new Map();
  for (const [i, one] of turnsByRow(trace, turns)) {
    notes.set(trace.row[i], note(one));
    mixes.set(trace.row[i], mix(one.parts));
  }
  return { notes, mixes };
}
