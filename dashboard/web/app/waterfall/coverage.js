// How busy each kind was, per pixel column of the minimap. Pure.
/** @import { Trace } from "../../types/trace" */
/** @import { Axis } from "../../types/waterfall" */
import { ASKS_PERSON, ERROR } from "../trace/columns.js";
import { endOf, kindIndex } from "../trace/rows.js";
import { toX } from "./axis.js";

/** Kinds that have a strip, from top to bottom. */
export const LANES = ["thinking", "tools", "shell", "mcp", "edits", "subagent", "wait"];
const WAIT = LANES.indexOf("wait");

/** The strips for which a trace has spans. @param {Trace} trace */
export function usedLanes(trace) {
  return LANES.filter((name) => (name === "wait" ? trace.wait.some((us) => us > 0) || trace.flags.some((bits) => bits & ASKS_PERSON) : trace.kinds.includes(name)));
}

/** Busy share per strip and pixel column, and which columns hold an error.
 * @param {Trace} trace @param {Axis} scale @param {number} columns @param {number} now */
export function coverage(trace, scale, columns, now) {
  const lanes = LANES.map(() => new Float32Array(columns));
  const errors = new Uint8Array(columns);
  const laneOf = trace.kinds.map((kind) => LANES.indexOf(kind));
  const session = kindIndex(trace, "session");
  const subagent = kindIndex(trace, "subagent");
  /** @param {number} lane @param {number} from @param {number} to */
  const add = (lane, from, to) => {
    const x0 = Math.max(0, toX(scale, from));
    // At least a small part of a column, so that a very short call is visible. Thousands of such calls still count less
    // than one column that is busy all the time.
    const x1 = Math.min(columns, Math.max(toX(scale, to), x0 + 1e-4));
    const last = Math.min(columns - 1, Math.floor(x1));
    for (let x = Math.floor(x0); x <= last; x += 1) lanes[lane][x] += Math.min(x + 1, x1) - Math.max(x, x0);
  };
  for (let i = 0; i < trace.n; i += 1) {
    const lane = trace.flags[i] & ASKS_PERSON ? WAIT : laneOf[trace.kind[i]];
    // A call that only delegates used no time itself; its subagent did.
    const delegates = trace.last[i] > i + 1 && trace.kind[i] !== subagent;
    if (lane >= 0 && !delegates) add(lane, trace.start[i], endOf(trace, i, now));
    if (trace.wait[i] > 0) add(WAIT, trace.start[i] - trace.wait[i], trace.start[i]);
    if (trace.status[i] === ERROR && trace.kind[i] !== session) {
      const x = Math.floor(toX(scale, trace.start[i]));
      if (x >= 0 && x < columns) errors[x] = 1;
    }
  }
  return { lanes, errors };
}
