// Components whose module is fetched when first drawn, or earlier.
//
// A module may do everything that the page may, and no browser checks who sent it. So the collector proves itself
// before one is fetched: a program that took a stopped collector's port must not get a script into a signed-in tab.
import { door } from "../net/door.js";
import { live } from "../net/event-stream.js";
import { html, useEffect, useLayoutEffect, useState } from "./html.js";

/** @typedef {import("preact").FunctionComponent<any>} Part */

/**
 * A component that `load` fetches. `prepare` fetches it before it is drawn; with `first`, as part of the page's own
 * load, whose sender is not checked.
 * @param {() => Promise<Part>} load
 */
export function lazy(load) {
  /** @type {Part | null} */
  let part = null;
  /** @type {Promise<void> | null} */
  let fetching = null;
  /** @returns {Promise<void>} */
  const prepare = ({ first = false } = {}) => {
    fetching ??= (first ? load() : door.enter().then(load)).then((found) => { part = found; });
    fetching.catch(() => { fetching = null; });
    return fetching;
  };
  /** @param {Record<string, unknown>} props */
  function Lazy(props) {
    const [, drawn] = useState(false);
    const [failed, fail] = useState(false);
    useLayoutEffect(() => {
      if (!part) prepare().then(() => drawn(true), () => fail(true));
    }, []);
    if (part) return html`<${part} ...${props} />`;
    return failed ? html`<${NotFetched} />` : html`<div class="loading soon" role="status">loading…</div>`;
  }
  return Object.assign(Lazy, { prepare });
}

/** Minimum time between two automatic reloads. */
const AGAIN_MS = 10_000;

/** Reloads the page, but not twice in a row: then a stopped collector is not the cause. */
function loadAgain() {
  const last = Number(history.state?.loadedAgain ?? 0);
  if (live.state !== "connected" || Date.now() - last < AGAIN_MS) return;
  history.replaceState({ loadedAgain: Date.now() }, "");
  location.reload();
}

/** Replaces a component whose module did not arrive. Reloads the page once the collector answers. */
function NotFetched() {
  useEffect(() => {
    const stop = live.listen((event) => event === "state" && loadAgain());
    // Connected although the module is missing: the collector was restarted, perhaps as another build.
    const timer = setTimeout(loadAgain, 1_000);
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, []);
  return html`<section class="trouble" role="alert">
    <h1>This page could not be loaded</h1>
    <p>The collector does not answer, so the browser could not fetch the page's script. Hooks that come meanwhile are kept in the journal.</p>
    <p class="dim">Start the collector with hookspan up. This page then loads by itself.</p>
    <button type="button" onClick=${() => location.reload()}>Load again</button>
  </section>`;
}
