// The critical path: what a span waited for, from its end backwards. Only shortening these makes the span faster.
/** @import { CriticalPath, Trace } from "../../types/trace" */
import { endOf } from "./rows.js";

/**
 * Which rows lie on the critical path of `top`, and for how long each.
 * @param {Trace} trace @param {number} top @param {number} now @returns {CriticalPath}
 */
export function criticalPath(trace, top, now) {
  /** @type {Map<number, number[]>} */
  const children = new Map();
  for (let i = top + 1; i < trace.last[top]; i += 1) {
    const list = children.get(trace.parent[i]);
    if (list) list.push(i);
    else children.set(trace.parent[i], [i]);
  }
  const marked = new Uint8Array(trace.n);
  /** @type {Map<number, number>} */
  const time = new Map();
  const stack = [[top, trace.start[top], endOf(trace, top, now)]];
  for (let next = stack.pop(); next; next = stack.pop()) {
    const [i, from, to] = next;
    marked[i] = 1;
    let at = to;
    let own = 0;
    const below = (children.get(i) ?? []).map((k) => [trace.start[k], endOf(trace, k, now), k]).sort((a, b) => b[1] - a[1] || b[0] - a[0]);
    for (const [start, end, k] of below) {
      if (start >= at || end <= from || end <= start) continue;
      const until = Math.min(end, at);
      own += at - until;
      const since = Math.max(start, from);
      stack.push([k, since, until]);
      at = since;
      if (at <= from) break;
    }
    time.set(i, own + Math.max(0, at - from));
  }
  const own = time.get(top) ?? 0;
  const steps = [...time].filter(([i, us]) => i !== top && us > 0).map(([i, us]) => ({ i, us })).sort((a, b) => trace.start[a.i] - trace.start[b.i]);
  return { marked, steps, own };
}
