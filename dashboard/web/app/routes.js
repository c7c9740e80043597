// Which page an address shows.
/** @import { Failure } from "../types/app" */
import { get } from "./net/api.js";
import { door } from "./net/door.js";
import { Login } from "./pages/login.js";
import { html, useEffect, useState } from "./ui/html.js";
import { lazy } from "./ui/lazy.js";
import { go } from "./ui/router.js";

/** @typedef {ReturnType<typeof import("./ui/needs.js").useOverview> & { lost: number | null }} OverviewAnswer */

// Each page is a module, fetched when an address needs it. `tests/assets.rs` limits the size of a first load.
/** @type {Record<string, ReturnType<typeof lazy>>} */
const PAGES = {
  "/": lazy(() => import("./pages/overview.js").then((file) => file.Overview)),
  "/now": lazy(() => import("./pages/now.js").then((file) => file.Now)),
  "/sessions": lazy(() => import("./pages/sessions.js").then((file) => file.Sessions)),
  "/errors": lazy(() => import("./pages/errors.js").then((file) => file.Errors)),
  "/latency": lazy(() => import("./pages/latency.js").then((file) => file.Latency)),
  "/time": lazy(() => import("./pages/time.js").then((file) => file.Time)),
  "/files": lazy(() => import("./pages/files.js").then((file) => file.Files)),
  "/file": lazy(() => import("./pages/file.js").then((file) => file.File)),
  "/live": lazy(() => import("./pages/live.js").then((file) => file.Live)),
  "/search": lazy(() => import("./pages/search.js").then((file) => file.Search)),
  "/privacy": lazy(() => import("./pages/privacy.js").then((file) => file.Privacy)),
  "/compare": lazy(() => import("./pages/compare.js").then((file) => file.Compare)),
  "/health": lazy(() => import("./pages/health.js").then((file) => file.Health)),
};
const Session = lazy(() => import("./session/page.js").then((file) => file.Session));

/** @param {string} path */
const sessionOf = (path) => /^\/s\/([^/]+)$/.exec(path)?.[1];

/** Starts to fetch an address's page while the browser still signs in. @param {string} path */
export function prepare(path) {
  const page = sessionOf(path) ? Session : Object.hasOwn(PAGES, path) ? PAGES[path] : null;
  page?.prepare({ first: true }).catch(() => {});
}

/**
 * Fetches all pages one by one while the collector is proven. They then open without a collector, and no other program
 * can send one.
 */
export async function prefetch() {
  for (const one of [Session, ...Object.values(PAGES)]) {
    if (door.open || door.proven) await one.prepare().catch(() => {});
  }
}

/**
 * The page of an address.
 * @param {{ path: string, query: string, hash: string }} route @param {Failure | null} failed why signing in failed @param {OverviewAnswer} overview
 */
export function page({ path, query, hash }, failed, overview) {
  const session = sessionOf(path);
  if (session) return html`<${Session} key=${session} id=${decode(session)} query=${query} hash=${hash} go=${go} />`;
  const trace = /^\/t\/([^/]+)(?:\/([^/]+))?$/.exec(path);
  if (trace) return html`<${Trace} trace=${trace[1]} span=${trace[2]} />`;
  if (path === "/login") return html`<${Login} failed=${failed} go=${go} />`;
  if (Object.hasOwn(PAGES, path)) return html`<${PAGES[path]} query=${query} go=${go} overview=${overview} />`;
  return html`<section class="card narrow"><h1>No such page</h1><p><a href="/">To the overview</a></p></section>`;
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** A link from a trace viewer. Leads to the session that contains the trace. @param {{ trace: string, span?: string }} props */
function Trace({ trace, span }) {
  const [error, set] = useState(/** @type {Failure | null} */ (null));
  useEffect(() => {
    get(`traces/${encodeURIComponent(trace)}`).then(({ url, span: root }) => {
      go(`${url.split("#")[0]}#${/^[0-9a-f]{16}$/.test(span ?? "") ? span : root}`, { replace: true });
    }, set);
  }, [trace]);
  return error && html`<section class="card narrow" role="alert"><h1>${error.message}</h1><p>${error.hint}</p></section>`;
}
