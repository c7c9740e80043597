// Active time as a flame graph: spans with the same path of names are one node, widest first.
/** @import { FlameBox, FlameNode, Trace } from "../../types/trace" */
import { ERROR, repeats } from "./columns.js";
import { endOf } from "./rows.js";

const ALL = "all turns";

/**
 * The tree. All turns are one node; the session is the root. A node's `us` is the sum of its spans, so parallel
 * children may be wider than their parent; `boxes` scales them down.
 * @param {Trace} trace @param {number} now @returns {FlameNode}
 */
export function flame(trace, now) {
  const root = node("session", "session", -1);
  /** @type {Growing[]} */
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
    if (trace.status[i] === ERROR && !repeats(trace, i)) found.errors += 1;
    at[i] = found;
  }
  root.us = [...root.map.values()].reduce((sum, one) => sum + one.us, 0);
  root.count = 1;
  return sorted(root);
}

/**
 * A node whose children are still found by name.
 * @typedef {FlameNode & { map: Map<string, Growing> }} Growing
 * @param {string} name @param {string} kind @param {number} first @returns {Growing}
 */
function node(name, kind, first) {
  return { name, kind, first, us: 0, count: 0, errors: 0, map: new Map(), children: [] };
}

/** Sorts the children of every node, widest first. @param {Growing} top */
function sorted(top) {
  const stack = [top];
  for (let one = stack.pop(); one; one = stack.pop()) {
    const children = [...one.map.values()].sort((a, b) => b.us - a.us);
    one.children = children;
    one.map.clear();
    stack.push(...children);
  }
  return top;
}

/**
 * Boxes of the nodes, at most `max`. Nodes of one parent that are too narrow to read share one box.
 * @param {FlameNode} root @param {{ min?: number, max?: number }} [limits]
 */
export function boxes(root, { min = 0.02, max = 600 } = {}) {
  /** @type {FlameBox[]} */
  const out = [];
  /** @type {FlameBox[]} */
  const queue = [{ node: root, depth: 0, x: 0, w: 1 }];
  for (let box = queue.shift(); box && out.length < max; box = queue.shift()) {
    const { node: one, depth, x, w } = box;
    out.push(box);
    const sum = one.children.reduce((all, child) => all + child.us, 0);
    const scale = w / Math.max(one.us, sum, 1);
    let left = x;
    for (const [k, child] of one.children.entries()) {
      const rest = one.children.slice(k);
      const narrow = child.us * scale < min && rest.length > 1;
      const shown = narrow ? together(rest) : child;
      const width = shown.us * scale;
      if (width < min / 10) break;
      queue.push({ node: shown, depth: depth + 1, x: left, w: width });
      if (narrow) break;
      left += width;
    }
  }
  return out;
}

/** One node for several. @param {FlameNode[]} all @returns {FlameNode} */
function together(all) {
  const sum = node(`${all.length} others`, all.every((one) => one.kind === all[0].kind) ? all[0].kind : "other", -1);
  for (const one of all) {
    sum.us += one.us;
    sum.count += one.count;
    sum.errors += one.errors;
  }
  return sum;
}
