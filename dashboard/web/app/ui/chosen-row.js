// The chosen row of a list, moved by keys.
import { useRef, useState } from "./html.js";

/** The chosen row among `n`. `list` is the ref of the element whose rows each contain a link. */
export function useRows(n = 0) {
  const [at, setAt] = useState(-1);
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  /** @param {number} step */
  const move = (step) => {
    if (!n) return;
    const to = Math.max(0, Math.min(n - 1, at + step));
    setAt(to);
    list.current?.querySelectorAll("tbody tr, li.row")[to]?.querySelector("a")?.focus();
  };
  const [next, last] = [() => move(1), () => move(-1)];
  return { at: Math.min(at, n - 1), setAt, list, move, keys: { j: next, ArrowDown: next, k: last, ArrowUp: last } };
}
