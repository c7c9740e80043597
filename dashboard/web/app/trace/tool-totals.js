// Totals per tool over the calls of a trace.
/** @import { ToolTotal, Trace } from "../../types/trace" */
import { ASKS_PERSON, ERROR, repeats, UNKNOWN_LENGTH } from "./columns.js";
import { endOf, head } from "./rows.js";

const CALLS = new Set(["tools", "shell", "mcp", "edits", "subagent"]);

/** Totals per tool, most time first. Time is null where no length is known, or where it is the wait for a person. @param {Trace} trace @param {number} now */
export function byTool(trace, now) {
  /** @type {Map<string, ToolTotal>} */
  const sums = new Map();
  for (let i = 0; i < trace.n; i += 1) {
    const kind = trace.kinds[trace.kind[i]];
    if (!CALLS.has(kind)) continue;
    const name = head(trace.strs[trace.label[i]]);
    const sum = sums.get(name) ?? { name, kind, n: 0, errors: 0, us: null };
    sum.n += 1;
    if (!(trace.flags[i] & (UNKNOWN_LENGTH | ASKS_PERSON))) sum.us = (sum.us ?? 0) + endOf(trace, i, now) - trace.start[i];
    if (trace.status[i] === ERROR && !repeats(trace, i)) sum.errors += 1;
    sums.set(name, sum);
  }
  return [...sums.values()].sort((a, b) => (b.us ?? -1) - (a.us ?? -1));
}
