// The frame: navigation, routes, theme, keys. Pages are chosen by the address; nothing reloads.
import { html, render, useEffect, useRef, useState } from "./html.js";
import { get } from "./api.js";
import { bind, enabled, setEnabled, start as startKeys } from "./keys.js";
import { live } from "./live.js";
import { Login, signIn, takeToken } from "./pages/login.js";
import { Overview } from "./pages/overview.js";
import { Session } from "./pages/session.js";
import { Sessions } from "./pages/sessions.js";
import { Errors, Health, Latency, LivePage } from "./pages/tables.js";

const NAV = [
  ["/", "Overview", "g o", "M3 12l9-8 9 8M6 10v10h12V10"],
  ["/sessions", "Sessions", "g s", "M4 6h16M4 12h16M4 18h10"],
  ["/errors", "Errors", "g e", "M12 4l9 16H3zM12 10v4M12 17v.5"],
  ["/latency", "Latency", "g l", "M5 20V10M12 20V4M19 20v-7"],
  ["/live", "Live", "g v", "M4 12h3l3-7 4 14 3-7h3"],
  ["/health", "Health", "g h", "M12 20s-8-5-8-11a4.5 4.5 0 018-2.8A4.5 4.5 0 0120 9c0 6-8 11-8 11z"],
];

const HELP = [
  ["j k ↓ ↑", "next, previous row"], ["→ ←", "unfold, fold or go to the parent"], ["Enter", "fold or unfold; open a session"],
  ["[ ]", "previous, next turn"], ["e E", "next, previous error"], ["n N", "next, previous match"], ["/", "filter"],
  ["1 0", "turns only, everything"], ["a", "axis follows the rows, or stays"], ["f", "fit the whole session"], ["+ −", "zoom"],
  ["y", "copy the address of this view"], ["b", "blur text, for a shared screen"], ["g then o s e l v h", "overview, sessions, errors, latency, live, health"],
  ["Esc", "clear the filter, go back"], ["?", "this list"],
];

function go(url, { replace = false } = {}) {
  const target = new URL(url, location.href);
  if (target.origin !== location.origin) return;
  history[replace ? "replaceState" : "pushState"](null, "", target.pathname + target.search + target.hash);
  dispatchEvent(new Event("hookspan:route"));
}

function useRoute() {
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

// Links of our own pages stay in the page; everything else is the browser's.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || link.target) return;
  const url = new URL(link.href);
  if (url.origin !== location.origin || url.pathname.startsWith("/a/") || url.pathname.startsWith("/api/")) return;
  event.preventDefault();
  go(url.href);
});

function stored(key, value) {
  try {
    if (value === undefined) return localStorage.getItem(key);
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
  } catch {
    // A browser that keeps nothing still shows everything.
  }
  return null;
}

const THEMES = ["system", "dark", "light"];

function setTheme(theme) {
  stored("hookspan.theme", theme === "system" ? null : theme);
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

function setBlur(on) {
  stored("hookspan.blur", on ? "1" : null);
  if (on) document.documentElement.dataset.blur = "1";
  else delete document.documentElement.dataset.blur;
}

function App({ failed }) {
  const route = useRoute();
  const [connection, setConnection] = useState(live.state);
  const [failing, setFailing] = useState([]);
  const [theme, chooseTheme] = useState(() => document.documentElement.dataset.theme ?? "system");
  const [blurred, chooseBlur] = useState(() => document.documentElement.dataset.blur === "1");
  const help = useRef(null);
  useEffect(() => {
    // What was heard between the first drawing and now would be lost otherwise.
    setConnection(live.state);
    return live.listen((event, data) => {
      if (event === "state") setConnection(data);
      if (event === "health") setFailing(data.failing);
    });
  }, []);
  useEffect(() => { setBlur(blurred); }, [blurred]);
  useEffect(() => bind({
    "?": () => (help.current.open ? help.current.close() : help.current.showModal()),
    b: () => chooseBlur((on) => !on),
    ...Object.fromEntries(NAV.map(([url, , keys]) => [keys, () => go(url)])),
  }), []);
  const nextTheme = () => {
    const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    setTheme(next);
    chooseTheme(next);
  };
  const here = (url) => (url === "/sessions" ? /^\/(sessions|s\/)/.test(route.path) : route.path === url);
  return html`<div class="frame">
    <nav class="rail" aria-label="Pages">
      ${NAV.map(([url, name, keys, path]) => html`<a href=${url} title=${`${name} (${keys})`} aria-current=${here(url) ? "page" : null}>
        <svg viewBox="0 0 24 24" aria-hidden="true"><path d=${path} /></svg><span>${name}</span>
        ${url === "/health" && failing.length > 0 && html`<b class="badge" title=${`${failing.length} failing`}>${failing.length}</b>`}</a>`)}
      <span class="rail-end">
        <button type="button" title="Blur text, for a shared screen (b)" aria-pressed=${blurred} onClick=${() => chooseBlur(!blurred)}>${blurred ? "blurred" : "blur"}</button>
        <button type="button" title="Theme: system, dark, light" onClick=${nextTheme}>${theme}</button>
        <button type="button" title="Keys (?)" onClick=${() => help.current.showModal()}>keys</button>
        <span class=${`link-state link-${connection}`} role="status" title="Live connection to hookspan">${connection === "connected" ? "● live" : "○ offline"}</span>
      </span>
    </nav>
    <main id="main">${page(route, failed)}</main>
    <dialog ref=${help} aria-labelledby="help-title" onClick=${(e) => e.target === help.current && help.current.close()}>
      <form method="dialog"><header><h2 id="help-title">Keys</h2><button>close</button></header></form>
      <dl>${HELP.map(([key, what]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>
      <label><input type="checkbox" checked=${enabled()} onChange=${(e) => setEnabled(e.target.checked)} /> keys are on (off inside fields)</label>
    </dialog>
  </div>`;
}

function page({ path, query, hash }, failed) {
  const session = /^\/s\/([^/]+)$/.exec(path)?.[1];
  if (session) return html`<${Session} key=${session} id=${decode(session)} query=${query} hash=${hash} go=${go} />`;
  const trace = /^\/t\/([^/]+)(?:\/([^/]+))?$/.exec(path);
  if (trace) return html`<${Trace} trace=${trace[1]} span=${trace[2]} />`;
  switch (path) {
    case "/": return html`<${Overview} />`;
    case "/login": return html`<${Login} failed=${failed} go=${go} />`;
    case "/sessions": return html`<${Sessions} query=${query} go=${go} />`;
    case "/errors": return html`<${Errors} />`;
    case "/latency": return html`<${Latency} query=${query} go=${go} />`;
    case "/live": return html`<${LivePage} />`;
    case "/health": return html`<${Health} />`;
    default: return html`<section class="card narrow"><h1>No such page</h1><p><a href="/">To the overview</a></p></section>`;
  }
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// A link from a trace viewer: to the session that holds the trace.
function Trace({ trace, span }) {
  const [error, set] = useState(null);
  useEffect(() => {
    get(`traces/${encodeURIComponent(trace)}`).then(({ url, span: root }) => {
      go(`${url.split("#")[0]}#${/^[0-9a-f]{16}$/.test(span ?? "") ? span : root}`, { replace: true });
    }, set);
  }, [trace]);
  return error && html`<section class="card narrow" role="alert"><h1>${error.message}</h1><p>${error.hint}</p></section>`;
}

async function main() {
  const token = takeToken();
  let failed = null;
  if (token) {
    try {
      await signIn(token);
      if (location.pathname === "/login") go("/", { replace: true });
    } catch (error) {
      failed = error;
      go("/login", { replace: true });
    }
  }
  startKeys();
  render(html`<${App} failed=${failed} />`, document.getElementById("app"));
  live.start();
}

main();
