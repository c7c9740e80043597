// The frame: navigation, routes, theme, keys. Pages are chosen by the address; nothing reloads.
import { html, render, useEffect, useRef, useState } from "./ui/html.js";
import { get, post } from "./net/api.js";
import { bind, enabled, setEnabled, start as startKeys } from "./ui/keys.js";
import { live } from "./net/event-stream.js";
import { write as keep } from "./ui/local-storage.js";
import { useOverview } from "./ui/needs.js";
import { Palette } from "./ui/palette.js";
import { copyAddress } from "./ui/pieces.js";
import { Compare } from "./pages/compare.js";
import { Errors } from "./pages/errors.js";
import { Health } from "./pages/health.js";
import { Latency } from "./pages/latency.js";
import { LivePage } from "./pages/live.js";
import { Login, signIn, takeToken } from "./pages/login.js";
import { Overview, said } from "./pages/overview.js";
import { Privacy } from "./pages/privacy.js";
import { Search } from "./pages/search.js";
import { Session } from "./session/page.js";
import { Sessions } from "./pages/sessions.js";
import { Time } from "./pages/time.js";

const NAV = [
  ["/", "Overview", "g o", "M3 12l9-8 9 8M6 10v10h12V10"],
  ["/sessions", "Sessions", "g s", "M4 6h16M4 12h16M4 18h10"],
  ["/errors", "Errors", "g e", "M12 4l9 16H3zM12 10v4M12 17v.5"],
  ["/latency", "Latency", "g l", "M5 20V10M12 20V4M19 20v-7"],
  ["/time", "Time", "g t", "M12 3a9 9 0 100 18 9 9 0 000-18zM12 7v5l3.5 2"],
  ["/search", "Search", "g f", "M10.5 4a6.5 6.5 0 100 13 6.5 6.5 0 000-13zM15.5 15.5L21 21"],
  ["/live", "Live", "g v", "M4 12h3l3-7 4 14 3-7h3"],
  ["/health", "Health", "g h", "M12 20s-8-5-8-11a4.5 4.5 0 018-2.8A4.5 4.5 0 0120 9c0 6-8 11-8 11z"],
  ["/privacy", "Privacy", "g p", "M12 3l7 3v6c0 4.5-3 7.5-7 9-4-1.5-7-4.5-7-9V6zM9.5 12l2 2 3.5-4"],
];

const HELP = [
  ["j k ↓ ↑", "next, previous row"], ["→ ←", "unfold, fold or go to the parent"], ["Enter", "fold or unfold; open what is chosen"],
  ["[ ]", "previous, next turn"], ["e E", "next, previous error"], ["n N", "next, previous match"], ["/", "filter or search"],
  ["1 0", "turns only, everything"], ["a", "axis follows the rows, or stays"], ["f", "fit the whole session"], ["+ −", "zoom"],
  ["s", "this subagent alone; again or Esc: back"], ["c", "critical path of the turn"], ["w m l d i", "views of a session: waterfall, flame, log, edits, insights"],
  ["y", "copy the address of this view"], ["b", "blur text, for a shared screen"], ["Ctrl K", "go to a page, session or command"],
  ["g then o s e l t f v h p", "overview, sessions, errors, latency, time, search, live, health, privacy"],
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

const THEMES = ["system", "dark", "light"];

function setTheme(theme) {
  keep("hookspan.theme", theme === "system" ? null : theme);
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

function setBlur(on) {
  keep("hookspan.blur", on ? "1" : null);
  if (on) document.documentElement.dataset.blur = "1";
  else delete document.documentElement.dataset.blur;
}

function App({ failed }) {
  const route = useRoute();
  const [connection, setConnection] = useState(live.state);
  const [failing, setFailing] = useState([]);
  const [theme, chooseTheme] = useState(() => document.documentElement.dataset.theme ?? "system");
  const [blurred, chooseBlur] = useState(() => document.documentElement.dataset.blur === "1");
  const [keysOn, turnKeys] = useState(enabled);
  const [spoken, speak] = useState("");
  const help = useRef(null);
  const palette = useRef(null);
  const overview = useOverview(route.path !== "/login");
  // Spoken when the list changes, not when an age ticks.
  const needs = said(overview.data?.needs ?? []);
  useEffect(() => { if (overview.data) speak(needs); }, [needs]);
  useEffect(() => {
    // What was heard between the first drawing and now would be lost otherwise.
    setConnection(live.state);
    return live.listen((event, data) => {
      if (event === "state") setConnection(data);
      if (event === "health") setFailing(data.failing);
    });
  }, []);
  useEffect(() => { setBlur(blurred); }, [blurred]);
  const [note, setNote] = useState("");
  useEffect(() => {
    let timer = 0;
    const show = ({ detail }) => {
      clearTimeout(timer);
      setNote(detail);
      timer = setTimeout(() => setNote(""), 2_500);
    };
    addEventListener("hookspan:notify", show);
    return () => removeEventListener("hookspan:notify", show);
  }, []);
  useEffect(() => bind({
    "?": () => toggle(help.current),
    "Ctrl k": () => toggle(palette.current),
    y: copyAddress,
    Escape: () => history.length > 1 && history.back(),
    b: () => chooseBlur((on) => !on),
    ...Object.fromEntries(NAV.map(([url, , keys]) => [keys, () => go(url)])),
  }, { base: true }), []);
  const nextTheme = () => {
    const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    setTheme(next);
    chooseTheme(next);
  };
  const commands = [
    { name: blurred ? "show text sharp" : "blur text, for a shared screen", hint: "b", run: () => chooseBlur(!blurred) },
    { name: "next theme: system, dark, light", run: nextTheme },
    { name: "keys", hint: "?", run: () => toggle(help.current) },
    { name: "copy the address of this view", hint: "y", run: copyAddress },
    { name: "sign out", run: () => post("logout", {}).then(() => location.assign("/login")) },
  ];
  const waiting = overview.data?.needs.length ?? 0;
  const here = (url) => (url === "/sessions" ? /^\/(sessions|s\/)/.test(route.path) : route.path === url);
  return html`<div class="frame">
    <nav class="rail" aria-label="Pages">
      ${NAV.map(([url, name, keys, path]) => html`<a href=${url} title=${`${name} (${keys})`} aria-current=${here(url) ? "page" : null}>
        <svg viewBox="0 0 24 24" aria-hidden="true"><path d=${path} /></svg><span>${name}</span>
        ${url === "/" && waiting > 0 && html`<b class="badge need-badge" title=${`${waiting} waiting for you`}>${waiting}</b>`}
        ${url === "/health" && failing.length > 0 && html`<b class="badge" title=${`${failing.length} failing`}>${failing.length}</b>`}</a>`)}
      <span class="rail-end">
        <button type="button" title="Blur text, for a shared screen (b)" aria-pressed=${blurred} onClick=${() => chooseBlur(!blurred)}>${blurred ? "blurred" : "blur"}</button>
        <button type="button" title="Theme: system, dark, light" onClick=${nextTheme}>${theme}</button>
        <button type="button" title="Go to or do (Ctrl K)" onClick=${() => toggle(palette.current)}>go to</button>
        <button type="button" title="Keys (?)" onClick=${() => toggle(help.current)}>keys</button>
        <span class=${`link-state link-${connection}`} role="status" title="Live connection to hookspan">${connection === "connected" ? "● live" : "○ offline"}</span>
      </span>
    </nav>
    <p class="sr" role="status">${spoken}</p>
    <main id="main" tabindex="-1">${page(route, failed, overview)}</main>
    <p class="toast" role="status">${note}</p>
    <${Palette} dialog=${palette} pages=${NAV} commands=${commands} go=${go} />
    <dialog ref=${help} aria-labelledby="help-title" onClick=${(e) => e.target === help.current && help.current.close()}>
      <form method="dialog"><header><h2 id="help-title">Keys</h2><button>close</button></header></form>
      <dl>${HELP.map(([key, what]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>
      <label><input type="checkbox" checked=${keysOn} onChange=${(e) => { setEnabled(e.target.checked); turnKeys(e.target.checked); }} /> keys are on (off inside fields)</label>
    </dialog>
  </div>`;
}

function toggle(dialog) {
  if (dialog.open) return dialog.close();
  dialog.showModal();
  return dialog.dispatchEvent(new Event("hookspan:open"));
}

function page({ path, query, hash }, failed, overview) {
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
    case "/live": return html`<${LivePage} />`;
    case "/search": return html`<${Search} query=${query} go=${go} />`;
    case "/privacy": return html`<${Privacy} query=${query} />`;
    case "/compare": return html`<${Compare} query=${query} go=${go} />`;
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
