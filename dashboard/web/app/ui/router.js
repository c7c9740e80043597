// Addresses: each selects a page, and nothing reloads.
/** @import { Go } from "../../types/app" */
import { useEffect, useState } from "./html.js";

/** Whether Back or Forward led to this page. */
let back = false;
export const cameBack = () => back;
addEventListener("popstate", () => { back = true; });

/** @type {Go} */
export function go(url, { replace = false } = {}) {
  const target = new URL(url, location.href);
  if (target.origin !== location.origin) return;
  back = false;
  history[replace ? "replaceState" : "pushState"](null, "", target.pathname + target.search + target.hash);
  dispatchEvent(new Event("hookspan:route"));
}

/** Where the browser is: path, query and hash. */
export function useRoute() {
  const read = () => ({ path: location.pathname, query: location.search, hash: location.hash });
  const [route, set] = useState(read);
  useEffect(() => {
    const changed = () => set(read());
    addEventListener("popstate", changed);
    addEventListener("hookspan:route", changed);
    return () => {
      removeEventListener("popstate", changed);
      removeEventListener("hookspan:route", changed);
    };
  }, []);
  return route;
}

/** Follows links to our own pages without a reload. The browser handles all others. */
export function followLinks() {
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link?.href || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || link.target) return;
    const url = new URL(link.href);
    if (url.origin !== location.origin || url.pathname.startsWith("/a/") || url.pathname.startsWith("/api/")) return;
    event.preventDefault();
    go(url.href);
  });
}
