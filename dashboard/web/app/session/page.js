// One session: where the time went, its lanes, its waterfall and other views of it, and a span beside it.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../ui/html.js";
import { cost, count, duration, plural } from "../format/quantity.js";
import { bind } from "../ui/keys.js";
import { controller } from "./controller.js";
import { PARTS } from "../trace/time-parts.js";
import { visible } from "../format/text.js";
import { Legend, State, Trouble, useLive, useNow, useTitle } from "../ui/pieces.js";
import { Detail } from "./detail.js";
import { Edits } from "./edits.js";
import { Flame } from "./flame.js";
import { Insights } from "./insights.js";
import { Log } from "./log.js";

/** Views by the word in the address, with their keys. */
const VIEWS = [["waterfall", "Waterfall", "w"], ["flame", "Flame", "m"], ["log", "Log", "l"], ["edits", "Edits", "d"], ["insights", "Insights", "i"]];

export function Session({ id, query, hash, go }) {
  const [session, setSession] = useState(null);
  const [turns, setTurns] = useState([]);
  const [error, setError] = useState(null);
  const [chosen, setChosen] = useState(null);
  const [search, setSearch] = useState(() => new URLSearchParams(query).get("q") ?? "");
  const [found, setFound] = useState(null);
  const [shown, setShown] = useState({ trace: null, rev: 0 });
  const [focus, setFocus] = useState(null);
  const [critical, setCritical] = useState(null);
  const asked = new URLSearchParams(query).get("view");
  const view = VIEWS.some(([word]) => word === asked) ? asked : "waterfall";
  const kept = useRef({});
  const host = useRef(null);
  const strip = useRef(null);
  const field = useRef(null);

  const model = useMemo(() => controller({
    id, view: kept.current, setSession, setTurns, setError, setShown, setChosen, setFound, setFocus, setCritical,
  }), [id]);

  useLayoutEffect(() => {
    model.mount(host.current, strip.current, { hash, query });
    return () => model.unmount();
  }, [model]);
  useTitle(`${session?.state === "errored" ? "✕ " : ""}${session?.first_prompt ?? "Session"}`);
  useEffect(() => model.search(search), [model]);
  // At once: the rows need no drawing of this component.
  const find = (text) => {
    model.search(text);
    setSearch(text);
  };
  useEffect(() => model.address({ query, hash }), [query, hash, model]);
  useLive((event, data) => model.event(event, data), [model]);
  const open = (word) => {
    const url = new URL(location.href);
    url.searchParams.set("view", word);
    go(url.href);
  };
  // With what is shown, and not a frame later.
  useLayoutEffect(() => bind(model.keys({
    focusFilter: () => field.current?.focus(),
    clear: () => find(""),
    leave: () => (view === "waterfall" ? go("/sessions") : open("waterfall")),
    views: Object.fromEntries(VIEWS.map(([word, , key]) => [key, () => open(word)])),
    waterfall: view === "waterfall",
  })), [model, view]);
  const running = session && (session.state === "running" || session.state === "tool_open");
  const now = useNow(Boolean(running));
  useEffect(() => { if (running) model.tick(); }, [now]);
  const aside = view === "waterfall" || view === "flame" || view === "log";
  const other = { trace: shown.trace, rev: shown.rev, turns, session, chosen, go: (row) => model.goTo(row), show: (row) => { open("waterfall"); model.goTo(row); } };

  return html`<div class="session">
    <header class="bar">
      <h1 class="blurry" title=${visible(session?.first_prompt ?? "")}>${visible(session?.first_prompt ?? (session ? id : " "))}</h1>
      ${session && html`<${Facts} session=${session} spans=${shown.trace?.n} />`}
    </header>
    ${error && html`<${Trouble} error=${error} reload=${() => model.load()} />`}
    <${PartsBar} turns=${turns} session=${session} />
    <div class="lanes" ref=${strip} hidden=${!aside}></div>
    <div class="views">
      <nav class="view-tabs" aria-label="Views">${VIEWS.map(([word, name, key]) => html`<a href=${href(word)} title=${`${name} (${key})`} aria-current=${word === view ? "true" : null} onClick=${(event) => follow(event, () => open(word))}>${name}</a>`)}</nav>
      ${aside && html`<input class="grow" ref=${field} type="search" aria-label="Filter the rows of this session" placeholder="/ filter rows: words  kind:shell  status:error  dur>2s"
        value=${search} onInput=${(e) => find(e.target.value)}
        onKeyDown=${(e) => { if (e.key === "Enter") { e.target.blur(); model.nextMatch(1); } }} />
      <span class="dim num found" role="status">${found ? `${found.count} ${found.count === 1 ? "match" : "matches"}` : ""}</span>`}
      ${view === "waterfall" && html`<button type="button" title="What the turn waited for, from its end backwards (c)" aria-pressed=${critical !== null} onClick=${() => model.critical()}>critical path</button>`}
      ${critical && view === "waterfall" && html`<span class="dim num">${duration(critical.own)} model/other + ${plural(critical.steps, "step")}</span>`}
    </div>
    ${focus && html`<${Focus} focus=${focus} onBack=${() => model.focus(null)} onGo=${(row) => { model.focus(null); model.goTo(row); }} />`}
    <div class="split">
      <section class="wf" ref=${host} aria-label="Waterfall" hidden=${view !== "waterfall"}></section>
      ${view === "flame" && html`<${Flame} ...${other} />`}
      ${view === "log" && html`<${Log} ...${other} search=${search} />`}
      ${view === "edits" && html`<${Edits} id=${id} query=${query} go=${go} rev=${shown.rev} />`}
      ${view === "insights" && html`<${Insights} id=${id} ...${other} leave=${() => go("/sessions")} />`}
      <aside class="pane" aria-label="Span detail" hidden=${!aside}>
        <${Detail} span=${chosen} rev=${shown.rev} onGo=${(row) => model.goTo(row)} onLoaded=${(span) => model.loaded(span)} onFocus=${(span) => model.focus(span)} group=${shown.trace && model.group(chosen)} /></aside>
    </div>
    <footer class="keys" aria-hidden="true">j/k move · ←/→ fold · [ ] turn · e error · n match · 1 turns · 0 all · a axis · f fit · +/− zoom · s subagent · c critical path · / filter · ? keys</footer>
  </div>`;
}

// The chosen row moves in the address without a drawing: a plain click takes what the address says now.
function follow(event, action) {
  if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  action();
}

// The address of another view: what else is in it stays.
function href(word) {
  const url = new URL(location.href);
  url.searchParams.set("view", word);
  return url.pathname + url.search + url.hash;
}

function Focus({ focus, onBack, onGo }) {
  const { span, path } = focus;
  return html`<section class="focus" aria-label="One subagent">
    <div class="focus-line"><button type="button" onClick=${onBack}>‹ back</button>
      <nav class="path blurry" aria-label="Way to the subagent">${path.map((step) => html`<button type="button" class="link" onClick=${() => onGo(step.row)}>${visible(step.label)}</button><span aria-hidden="true"> › </span>`)}<b>${visible(span.label)}</b></nav>
      <span class="num">${span.dur_us === null ? "running" : duration(span.dur_us)}</span>
      <span class="num dim">${plural(span.calls, "call")}</span>${span.errors > 0 && html`<span class="num bad">${plural(span.errors, "error")}</span>`}
      ${span.link && html`<span class=${/^(exact|transcript)$/.test(span.link.confidence) ? "chip" : "chip warn"}>link ${visible(span.link.confidence)}${span.link.source ? ` (${visible(span.link.source)})` : ""}</span>`}</div>
    ${(span.task || span.result) && html`<dl class="focus-texts blurry"><div><dt>task</dt><dd>${visible(span.task ?? "not stored")}</dd></div><div><dt>result</dt><dd>${visible(span.result ?? "none seen")}</dd></div></dl>`}
  </section>`;
}

function Facts({ session, spans }) {
  return html`<p class="facts-line dim"><${State} state=${session.state} />
    <span class="blurry">${visible(session.project ?? "–")}</span><span>${visible(session.model ?? "–")}</span>
    <span class="num">${duration(session.active_us)} active / ${duration(session.wall_us)} wall</span>
    ${spans != null && html`<span class="num">${plural(spans, "span")}</span>`}
    <span class=${session.errors ? "bad num" : "num"}>${plural(session.errors, "error")}</span>
    <span class="num" title=${session.tokens ? `input ${session.tokens.input} (cache read ${session.tokens.cache_read}, write ${session.tokens.cache_write}), output ${session.tokens.output}` : "no turn reported tokens"}>
      ${session.tokens ? `${count(session.tokens.input + session.tokens.output)} tok` : "– tok"}</span>
    ${session.cost && html`<span class="num" title="an estimate by the prices in the configuration, not a bill; what subagents used is in no hook">${visible(cost(session.cost))}</span>`}</p>`;
}

function PartsBar({ turns, session }) {
  const sums = PARTS.map((key) => [key, turns.reduce((sum, turn) => sum + turn.parts[`${key}_us`], 0)]).filter(([, us]) => us > 0);
  const total = sums.reduce((sum, [, us]) => sum + us, 0);
  const you = session ? Math.max(0, session.wall_us - session.active_us) : 0;
  return html`<section class="parts" aria-label="Where the time went">
    <div class="parts-bar" aria-hidden="true">${sums.map(([key, us]) => html`<i class=${`k-${key}`} style=${{ flexGrow: us / total }}></i>`)}</div>
    <${Legend} parts=${sums} total=${total}>${total > 0 && html`<li class="dim"><i class="dot k-you"></i>you <span class="num">${duration(you)}</span> (not in bar)</li>`}<//>
  </section>`;
}
