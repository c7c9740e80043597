// The keys of the conversation. Moving and folding have the same keys as in the waterfall.
/** @import { KeyMap } from "../../types/app" */
/** @import { Talk } from "./talk.js" */

const PAGE_ROWS = 20;

/** @param {Talk} talk @param {{ copy: () => unknown, go: (row: number) => void }} page @returns {KeyMap} */
export function conversationKeys(talk, { copy, go }) {
  const { script } = talk;
  /** @param {number} at */
  const choose = (at) => {
    talk.following = false;
    if (script.rows[at] >= 0) go(script.trace.row[script.rows[at]]);
  };
  /** @param {number} step */
  const move = (step) => () => {
    const from = script.at(talk.selected) ?? (step > 0 ? -1 : script.rows.length);
    const sign = Math.sign(step);
    let at = Math.max(0, Math.min(script.rows.length - 1, from + step));
    while (script.rows[at] < 0) at += sign;
    choose(at);
  };
  /** @param {number} step */
  const turn = (step) => () => {
    const from = script.at(talk.selected) ?? -1;
    const n = script.rows.length;
    for (let k = 1; k <= n; k += 1) {
      const at = (((from + step * k) % n) + n) % n;
      if (script.form(script.rows[at]) !== "prompt") continue;
      choose(at);
      talk.toTop(script.rows[at]);
      return;
    }
  };
  /** The chosen row as it is shown. */
  const chosen = () => {
    const at = script.at(talk.selected);
    return at === undefined || talk.selected < 0 ? -1 : script.rows[at];
  };
  const toggle = () => { if (chosen() >= 0) talk.toggle(chosen()); };
  const right = () => {
    const i = chosen();
    if (i < 0) return;
    const known = talk.texts.of(script.trace.row[i]);
    if (!isOpen(talk, i) || (script.isOpen(i, known) && !script.isWhole(i) && !script.isParent(i))) talk.toggle(i, true);
    else if (script.isParent(i) || script.groups.has(i)) move(1)();
  };
  const left = () => {
    const i = chosen();
    if (i < 0) return;
    const { trace } = script;
    const member = [...script.groups].find(([first, group]) => group.open && i >= first && i < group.last)?.[0];
    if (member !== undefined) {
      talk.toggle(member, false);
      go(trace.row[member]);
    } else if (isOpen(talk, i) && script.form(i) !== "note") talk.toggle(i, false);
    else if (trace.parent[i] >= 0) choose(script.at(trace.parent[i]) ?? 0);
  };
  const edge = (/** @type {number} */ at, /** @type {number} */ step) => () => {
    let to = at < 0 ? script.rows.length - 1 : at;
    while (script.rows[to] < 0) to += step;
    choose(to);
  };
  return {
    j: move(1), ArrowDown: move(1), k: move(-1), ArrowUp: move(-1), PageDown: move(PAGE_ROWS), PageUp: move(-PAGE_ROWS),
    Home: edge(0, 1), End: edge(-1, -1), "[": turn(-1), "]": turn(1), ArrowRight: right, ArrowLeft: left, Enter: toggle, " ": toggle,
    0: () => talk.change(() => script.setMode("all")), 1: () => talk.change(() => script.setMode("prompts")),
    c: copy,
    F: () => {
      talk.following = true;
      talk.toEnd();
    },
  };
}

/** @param {Talk} talk @param {number} i */
function isOpen({ script, texts }, i) {
  return script.groups.has(i) ? !script.isGroup(i) : script.isOpen(i, texts.of(script.trace.row[i]));
}
