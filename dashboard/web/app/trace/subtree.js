// One span and what hangs under it, as a trace of its own.

const COLUMNS = ["row", "start", "dur", "wait", "label", "kind", "status", "flags", "last", "depth", "parent"];

/** The part of `trace` from the row `top` down; shares its strings, keeps its clock. */
export function subtree(trace, top) {
  const to = trace.last[top];
  const part = { ...trace, n: to - top, like: undefined, index: new Map() };
  for (const name of COLUMNS) part[name] = trace[name].slice(top, to);
  for (let i = 0; i < part.n; i += 1) {
    part.parent[i] = i === 0 ? -1 : part.parent[i] - top;
    part.last[i] -= top;
    part.depth[i] -= trace.depth[top];
    part.index.set(part.row[i], i);
  }
  return part;
}

/** The nearest subagent at or above `i`, or -1. */
export function subagentOf(trace, i) {
  const kind = trace.kinds.indexOf("subagent");
  let at = i;
  while (at >= 0 && trace.kind[at] !== kind) at = trace.parent[at];
  if (at >= 0 || i < 0) return at;
  // A call that delegates: the subagent is right below it.
  for (let k = i + 1; k < trace.last[i]; k += 1) if (trace.parent[k] === i && trace.kind[k] === kind) return k;
  return -1;
}
