// Which page an address shows.
/** @import { Failure } from "../types/app" */
import { get } from "./net/api.js";
import { Compare } from "./pages/compare.js";
import { Errors } from "./pages/errors.js";
import { Health } from "./pages/health.js";
import { Latency } from "./pages/latency.js";
import { Live } from "./pages/live.js";
import { Login } from "./pages/login.js";
import { Overview } from "./pages/overview.js";
import { Privacy } from "./pages/privacy.js";
import { Search } from "./pages/search.js";
import { Sessions } from "./pages/sessions.js";
import { Time } from "./pages/time.js";
import { Session } from "./session/page.js";
import { html, useEffect, useState } from "./ui/html.js";
import { go } from "./ui/router.js";

/** @typedef {ReturnType<typeof import("./ui/needs.js").useOverview>} OverviewAnswer */

/**
 * The page of an address.
 * @param {{ path: string, query: string, hash: string }} route @param {Failure | null} failed why signing in failed @param {OverviewAnswer} overview
 */
export function page({ path, query, hash }, failed, overview) {
  const session = /^\/s\/([^/]+)$/.exec(path)?.[1];
  if (session) return html`<${Session} key=${session} id=${decode(session)} query=${query} hash=${hash} go=${go} />`;
  const trace = /^\/t\/([^/]+)(?:\/([^/]+))?$/.exec(path);
  if (trace) return html`<${Trace} trace=${trace[1]} span=${trace[2]} />`;
  switch (path) {
    case "/": return html`<${Overview} overview=${overview} />`;
    case "/login": return html`<${Login} failed=${failed} go=${go} />`;
    case "/sessions": return html`<${Sessions} query=${query} go=${go} />`;
    case "/errors": return html`<${Errors} query=${query} go=${go} />`;
    case "/latency": return html`<${Latency} query=${query} go=${go} />`;
    case "/time": return html`<${Time} query=${query} go=${go} />`;
    case "/live": return html`<${Live} />`;
    case "/search": return html`<${Search} query=${query} go=${go} />`;
    case "/privacy": return html`<${Privacy} />`;
    case "/compare": return html`<${Compare} query=${query} go=${go} />`;
    case "/health": return html`<${Health} />`;
    default: return html`<section class="card narrow"><h1>No such page</h1><p><a href="/">To the overview</a></p></section>`;
  }
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** A link from a trace viewer: goes to the session that holds the trace. @param {{ trace: string, span?: string }} props */
function Trace({ trace, span }) {
  const [error, set] = useState(/** @type {Failure | null} */ (null));
  useEffect(() => {
    get(`traces/${encodeURIComponent(trace)}`).then(({ url, span: root }) => {
      go(`${url.split("#")[0]}#${/^[0-9a-f]{16}$/.test(span ?? "") ? span : root}`, { replace: true });
    }, set);
  }, [trace]);
  return error && html`<section class="card narrow" role="alert"><h1>${error.message}</h1><p>${error.hint}</p></section>`;
}
