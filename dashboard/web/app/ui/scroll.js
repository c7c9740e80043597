// Scroll positions of lists, for users who come back. Kept until the tab is closed.
/** @import { RefObject } from "preact" */
import { useLayoutEffect, useMemo, useRef } from "./html.js";
import { cameBack } from "./router.js";

/** Addresses that are remembered. */
const PLACES_MAX = 50;
/** @type {Map<string, { top: number, rows: number }>} */
const places = new Map();

/** @param {string} url @param {{ top: number, rows: number }} place */
function remember(url, place) {
  places.delete(url);
  places.set(url, place);
  if (places.size > PLACES_MAX) places.delete(places.keys().next().value ?? "");
}

/**
 * A ref for the element that scrolls a list of `rows` rows. After Back, the list is where it was. `more` fetches
 * further rows; null if there are none.
 * @param {string} url address of the list @param {number} rows @param {(() => unknown) | null} more @returns {RefObject<HTMLElement | null>}
 */
export function useScrollPlace(url, rows, more) {
  const element = useRef(/** @type {HTMLElement | null} */ (null));
  const wanted = useRef(useMemo(() => (cameBack() ? places.get(url) ?? null : null), []));
  useLayoutEffect(() => {
    const list = element.current;
    if (!list) return undefined;
    const place = wanted.current;
    if (place && rows < place.rows && more) more();
    else if (place) {
      list.scrollTop = place.top;
      wanted.current = null;
    }
    const scrolled = () => remember(url, { top: list.scrollTop, rows });
    list.addEventListener("scroll", scrolled, { passive: true });
    return () => list.removeEventListener("scroll", scrolled);
  }, [url, rows]);
  return element;
}
