// One span and its descendants, as a trace of its own.
/** @import { Trace } from "../../types/trace" */


/** The part of `trace` from row `top` down. Shares strings and times with `trace`. @param {Trace} trace @param {number} top */
export function subtree(trace, top) {
  const to = trace.last[top];
  /** @type {Trace} */
  const part = {
    ...trace,
    n: to - top,
    like: undefined,
    index: new Map(),
    row: trace.row.slice(top, to),
    start: trace.start.slice(top, to),
    dur: trace.dur.slice(top, to),
    wait: trace.wait.slice(top, to),
    label: trace.label.slice(top, to),
    kind: trace.kind.slice(top, to),
    status: trace.status.slice(top, to),
    flags: trace.flags.slice(top, to),
    parent: trace.parent.slice(top, to),
    depth: trace.depth.slice(top, to),
    last: trace.last.slice(top, to),
  };
  for (let i = 0; i < part.n; i += 1) {
    part.parent[i] = i === 0 ? -1 : part.parent[i] - top;
    part.last[i] -= top;
    part.depth[i] -= trace.depth[top];
    part.index.set(part.row[i], i);
  }
  return part;
}

/** The nearest subagent at or above `i`, else the one that the call `i` started, else -1. @param {Trace} trace @param {number} i */
export function subagentOf(trace, i) {
  const kind = trace.kinds.indexOf("subagent");
  let at = i;
  while (at >= 0 && trace.kind[at] !== kind) at = trace.parent[at];
  if (at >= 0 || i < 0) return at;
  // A delegating call's subagent is directly below it.
  for (let k = i + 1; k < trace.last[i]; k += 1) if (trace.parent[k] === i && trace.kind[k] === kind) return k;
  return -1;
}
