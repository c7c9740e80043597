// The navigation on the left: pages, theme, blur, and the state of the connection.
/** @import { RailProps } from "../../types/app" */
import { html, useEffect, useState } from "./html.js";
import { needWords } from "./needs.js";

/** Pages: address, name, keys, icon. */
export const PAGES = [
  ["/", "Overview", "g o", "M3 12l9-8 9 8M6 10v10h12V10"],
  ["/now", "Now", "g n", "M12 3a9 9 0 100 18 9 9 0 000-18zM12 9a3 3 0 100 6 3 3 0 000-6z"],
  ["/sessions", "Sessions", "g s", "M4 6h16M4 12h16M4 18h10"],
  ["/errors", "Errors", "g e", "M12 4l9 16H3zM12 10v4M12 17v.5"],
  ["/latency", "Latency", "g l", "M5 20V10M12 20V4M19 20v-7"],
  ["/time", "Time", "g t", "M12 3a9 9 0 100 18 9 9 0 000-18zM12 7v5l3.5 2"],
  ["/files", "Files", "g i", "M3 6h6l2 2h10v11H3z"],
  ["/search", "Search", "g f", "M10.5 4a6.5 6.5 0 100 13 6.5 6.5 0 000-13zM15.5 15.5L21 21"],
  ["/live", "Live", "g v", "M4 12h3l3-7 4 14 3-7h3"],
  ["/health", "Health", "g h", "M12 20s-8-5-8-11a4.5 4.5 0 018-2.8A4.5 4.5 0 0120 9c0 6-8 11-8 11z"],
  ["/privacy", "Privacy", "g p", "M12 3l7 3v6c0 4.5-3 7.5-7 9-4-1.5-7-4.5-7-9V6zM9.5 12l2 2 3.5-4"],
];

/** What stands in the bar of a phone; the rest is behind "More". */
const FIRST = ["/now", "/sessions", "/time", "/errors"];

/** @param {RailProps} props */
export function Rail({ path, waiting, failing, connection, actions }) {
  /** @param {string} url */
  const here = (url) => (url === "/sessions" ? /^\/(sessions|s\/)/.test(path) : path === url || (url === "/files" && path === "/file"));
  const [open, setOpen] = useState(false);
  useEffect(() => setOpen(false), [path]);
  return html`<nav class=${open ? "rail rail-open" : "rail"} aria-label="Pages">
      ${PAGES.map(([url, name, keys, icon]) => html`<a href=${url} class=${FIRST.includes(url) ? null : "rail-rest"} title=${`${name} (${keys})`} aria-current=${here(url) ? "page" : null}>
        <svg viewBox="0 0 24 24" aria-hidden="true"><path d=${icon} /></svg><span>${name}</span>
        ${(url === "/" || url === "/now") && waiting > 0 && html`<b class=${url === "/" ? "badge need-badge" : "badge phone-badge"} title=${needWords(waiting)}>${waiting}</b>`}
        ${url === "/health" && failing.length > 0 && html`<b class="badge" title=${`${failing.length} failing`}>${failing.length}</b>`}</a>`)}
      <button type="button" class="rail-more" aria-expanded=${open} onClick=${() => setOpen(!open)}><span aria-hidden="true">···</span> More</button>
      <span class="rail-end">
        <button type="button" title="Blur text, for a shared screen (b)" aria-pressed=${actions.blurred} onClick=${actions.blur}>${actions.blurred ? "blurred" : "blur"}</button>
        <button type="button" title="Theme: system, dark, light" onClick=${actions.nextTheme}>${actions.theme}</button>
        <button type="button" title="Go to a page or run a command (Ctrl K)" onClick=${actions.goTo}>go to</button>
        <button type="button" title="Keys (?)" onClick=${actions.help}>keys</button>
        <span class=${`link-state link-${connection}`} role="status" title="Live connection to hookspan">${connection === "connected" ? "● live" : "○ offline"}</span>
      </span>
    </nav>`;
}
