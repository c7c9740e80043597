// The flame view: what took long, no matter when.
/** @import { Go } from "../../types/app" */
/** @import { FlameBox, FlameNode, Trace } from "../../types/trace" */
import { html, useEffect, useMemo, useState } from "../ui/html.js";
import { boxes, flame } from "../trace/flame-tree.js";
import { duration } from "../format/quantity.js";
import { visible } from "../format/text.js";

const ROW_PX = 24;

/** @param {{ trace: Trace | null, rev: number, go: (row: number) => void }} props */
export function Flame({ trace, rev, go }) {
  const tree = useMemo(() => (trace ? flame(trace, Date.now() * 1_000 - trace.t0) : null), [trace, rev]);
  const [way, setWay] = useState(/** @type {string[]} */ ([]));
  // Every change makes a new tree, so the path is kept as names.
  const { root, path } = useMemo(() => walk(tree, way), [tree, way]);
  useEffect(() => { if (path.length < way.length) setWay(path); }, [path.length]);
  if (!root || !trace) return html`<section class="flame" aria-label="Flame view"></section>`;
  const shown = boxes(root);
  const depth = shown.reduce((most, box) => Math.max(most, box.depth), 0);
  /** @param {FlameNode} node */
  const name = (node) => `${node.kind} ${node.name}`;
  /** @param {FlameBox} box */
  const open = (box) => {
    const chain = chainTo(root, box.node);
    setWay([...path, ...chain.map(name)]);
    if (box.node.first >= 0) go(trace.row[box.node.first]);
  };
  return html`<section class="flame" aria-label="Flame view"><p class="flame-way">
    <button type="button" class="link" onClick=${() => setWay([])}>session</button>${path.map((step, i) => html` <span aria-hidden="true">›</span> <button type="button" class="link blurry" onClick=${() => setWay(path.slice(0, i + 1))}>${visible(step.slice(step.indexOf(" ") + 1))}</button>`)}
    <span class="dim"> · width is time, spans of one name together; what ran in parallel shares its parent's width</span></p>
    <div class="flame-host" style=${{ height: `${(depth + 1) * ROW_PX}px` }}>${shown.map((box) => {
      const { node } = box;
      const text = `${visible(node.name)} · ${duration(node.us)}${node.count > 1 ? ` · ${node.count} ×` : ""}${node.errors ? ` · ${node.errors} failed` : ""}`;
      return html`<button type="button" key=${`${box.depth} ${box.x}`} class=${`flame-box k-${node.kind}${node.errors ? " flame-bad" : ""}`} title=${text}
        style=${{ left: `${box.x * 100}%`, width: `${box.w * 100}%`, top: `${box.depth * ROW_PX}px` }} onClick=${() => open(box)}>${box.w > 0.03 && html`<span class="blurry">${text}</span>`}</button>`;
    })}</div></section>`;
}

/** Follows the names of `way` as far as the tree has them. @param {FlameNode | null} tree @param {string[]} way */
function walk(tree, way) {
  let root = tree;
  /** @type {string[]} */
  const path = [];
  for (const step of way) {
    const next = root?.children.find((child) => `${child.kind} ${child.name}` === step);
    if (!next) break;
    root = next;
    path.push(step);
  }
  return { root, path };
}

/** The nodes between `root` and `node`, with `node`. @param {FlameNode} root @param {FlameNode} node */
function chainTo(root, node) {
  if (root === node) return [];
  /** @type {{ at: FlameNode, chain: FlameNode[] }[]} */
  const stack = [{ at: root, chain: [] }];
  for (let next = stack.pop(); next; next = stack.pop()) {
    const { at, chain } = next;
    for (const child of at.children) {
      if (child === node) return [...chain, child];
      stack.push({ at: child, chain: [...chain, child] });
    }
  }
  return [];
}
