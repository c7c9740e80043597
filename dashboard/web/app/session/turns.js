// Texts and decisions about turns. Pure.
/** @import { Turn } from "../../types/answers" */
/** @import { Trace } from "../../types/trace" */
import { cost, count, plural, tokenTotal } from "../format/quantity.js";
import { ERROR } from "../trace/columns.js";
import { mix } from "../trace/time-parts.js";
import { turnsByRow } from "../trace/turns.js";

/**
 * The turn to open at first: the running one, else the last with an error, else the last. Undefined without turns.
 * @param {Trace} trace @param {number[]} turns
 */
export function turnToOpen(trace, turns) {
  const running = turns.findLast((i) => trace.dur[i] < 0);
  if (running !== undefined) return running;
  const failed = turns.findLast((i) => trace.status.subarray(i, trace.last[i]).includes(ERROR));
  return failed ?? turns.at(-1);
}

/** Whether something of a session runs. @param {{ state: string }} session */
export const runs = ({ state }) => state === "running" || state === "tool_open";

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
