// Active time as a flame graph: spans with the same path of names put together, widest first.
import { ERROR } from "./columns.js";
import { endOf } from "./rows.js";

const ALL = "all turns";

/**
 * The tree `{name, kind, us, count, errors, first, children}`. Turns are one node; a session is the root. `us` of a node is
 * what its spans lasted together, so parallel children may be wider than their parent: `width` is scaled down where they are.
 */
export function flame(trace, now) {
  const root = node("session", "session", -1);
  const at = new Array(trace.n);
  for (let i = 0; i < trace.n; i += 1) {
    const kind = trace.kinds[trace.kind[i]];
    if (kind === "session") {
      at[i] = root;
      continue;
    }
    const up = trace.parent[i] < 0 ? root : at[trace.parent[i]];
    const name = kind === "turn" ? ALL : trace.strs[trace.label[i]];
    const key = `${kind} ${name}`;
    let found = up.map.get(key);
    if (!found) {
      found = node(name, kind, i);
      up.map.set(key, found);
    }
    found.us += endOf(trace, i, now) - trace.start[i];
    found.count += 1;
    if (trace.status[i] === ERROR) found.errors += 1;
    at[i] = found;
  }
  root.us = [...root.map.values()].reduce((sum, one) => sum + one.us, 0);
  root.count = 1;
  return settle(root);
}

function node(name, kind, first) {
  return { name, kind, first, us: 0, count: 0, errors: 0, map: new Map(), children: [] };
}

function settle(top) {
  const stack = [top];
  while (stack.length) {
    const one = stack.pop();
    one.children = [...one.map.values()].sort((a, b) => b.us - a.us);
    one.map = null;
    stack.push(...one.children);
  }
  return top;
}

/** Boxes `{node, depth, x, w}` (shares of the width) of what is wide enough to be seen, at most `max`. */
export function boxes(root, { min = 0.002, max = 600 } = {}) {
  const out = [];
  const stack = [[root, 0, 0, 1]];
  while (stack.length && out.length < max) {
    const [one, depth, x, w] = stack.shift();
    out.push({ node: one, depth, x, w });
    const sum = one.children.reduce((all, child) => all + child.us, 0);
    const scale = w / Math.max(one.us, sum, 1);
    let left = x;
    for (const child of one.children) {
      const width = child.us * scale;
      if (width < min) break;
      stack.push([child, depth + 1, left, width]);
      left += width;
    }
  }
  return out;
}
