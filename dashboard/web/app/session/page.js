// One session: where its time went, minimap, waterfall and other views, and one span beside them.
/** @import { Session as SessionAnswer, Turn } from "../../types/answers" */
/** @import { Go } from "../../types/app" */
/** @import { SessionState } from "../../types/session" */
import { cost, count, duration, plural } from "../format/quantity.js";
import { date } from "../format/time.js";
import { visible } from "../format/text.js";
import { enc, get } from "../net/api.js";
import { TRUNCATED } from "../trace/columns.js";
import { withTerm } from "../trace/filter.js";
import { sums } from "../trace/time-parts.js";
import { turnsOf } from "../trace/turns.js";
import { useNow } from "../ui/clock.js";
import { onText } from "../ui/fields.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../ui/html.js";
import { bind } from "../ui/keys.js";
import { lazy } from "../ui/lazy.js";
import { Legend, State } from "../ui/labels.js";
import { mark, Marks } from "../ui/marks.js";
import { Trouble, useTitle } from "../ui/page.js";
import { Store, useStore } from "../ui/store.js";
import { useLive } from "../ui/use-answer.js";
import { SessionController } from "./controller.js";
import { sessionKeys } from "./keys.js";
import { initialState } from "./state.js";
import { runs } from "./turns.js";

// Views that most visits do not open are fetched when opened.
const Detail = lazy(() => import("./detail.js").then((file) => file.Detail));
const Edits = lazy(() => import("./edits.js").then((file) => file.Edits));
const Flame = lazy(() => import("./flame.js").then((file) => file.Flame));
const Insights = lazy(() => import("./insights.js").then((file) => file.Insights));
const TurnList = lazy(() => import("./turn-list.js").then((file) => file.TurnList));
const Log = lazy(() => import("./log.js").then((file) => file.Log));
const Conversation = lazy(() => import("../conversation/page.js").then((file) => file.Conversation));

/** Views by the word in the address, with their names and keys. */
const VIEWS = [["conversation", "Conversation", "v"], ["waterfall", "Waterfall", "w"], ["flame", "Flame", "m"], ["log", "Log", "l"], ["edits", "Edits", "d"], ["insights", "Insights", "i"]];

/** On a phone the turns come first, as a list. */
const PHONE = matchMedia("(max-width: 600px)");

/** A row enters the address once it has been chosen for this long. */
const NAME_MS = 80;
/** @param {{ id: string, query: string, hash: string, go: Go }} props */
export function Session({ id, query, hash, go }) {
  const store = useMemo(() => new Store(initialState()), [id]);
  const { session, turns, error, trace, rev, chosen, found, focus, critical, following } = useStore(store);
  const [controller, setController] = useState(/** @type {SessionController | null} */ (null));
  const [search, setSearch] = useState(() => new URLSearchParams(query).get("q") ?? "");
  const asked = new URLSearchParams(query).get("view");
  const view = asked === "turns" || (PHONE.matches && !asked && !hash) ? "turns" : VIEWS.find(([word]) => word === asked)?.[0] ?? "conversation";
  const host = useRef(/** @type {HTMLElement | null} */ (null));
  const strip = useRef(/** @type {HTMLElement | null} */ (null));
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));

  useLayoutEffect(() => {
    if (!host.current || !strip.current) return undefined;
    const made = new SessionController(id, store, { host: host.current, strip: strip.current }, { query, hash });
    setController(made);
    return () => made.unmount();
  }, [id, store]);
  useTitle(`${session?.state === "errored" ? "✕ " : ""}${session?.first_prompt ?? "Session"}`);
  useEffect(() => controller?.search(search), [controller]);
  // Filters the rows at once, without redrawing this component.
  /** @param {string} text */
  const find = (text) => {
    controller?.search(text);
    setSearch(text);
  };
  useEffect(() => controller?.follow({ query, hash }), [query, hash, controller]);
  useLive((event, data) => controller?.event(event, data), [controller]);
  /** @param {string} word */
  const open = (word) => {
    const url = new URL(location.href);
    url.searchParams.set("view", word);
    go(url.href);
  };
  // Bound before the next frame, so that a key goes to the view on screen.
  useLayoutEffect(() => controller ? bind(sessionKeys(controller, {
    focusFilter: () => field.current?.focus(),
    star: () => { if (session) mark(id, { starred: !session.marks.starred }, marked); },
    clear: () => find(""),
    leave: () => { if (view !== "waterfall" && view !== "conversation") open("conversation"); },
    views: Object.fromEntries(VIEWS.map(([word, , key]) => [key, () => open(word)])),
    view,
  })) : undefined, [controller, view, session]);
  // A row chosen in another view is scrolled into view here.
  useLayoutEffect(() => { if (view === "waterfall") controller?.waterfall.scrollToChosen(); }, [controller, view]);
  const running = session !== null && runs(session);
  const now = useNow(running);
  useEffect(() => { if (running) controller?.tick(); }, [now]);
  /** @param {number} row */
  const goTo = (row) => controller?.goTo(row);
  /** @param {number} row */
  const show = (row) => {
    open("waterfall");
    goTo(row);
  };
  const beside = view === "waterfall" || view === "flame" || view === "log";
  const talk = view === "conversation";
  const other = { trace, rev, turns, session, chosen, go: goTo, show };

  /** @param {import("../../types/answers").SpanDetail} span */
  const named = (span) => controller?.named(span);
  // Without the pane, nothing else requests the chosen row's id for the address.
  useEffect(() => {
    if (!talk || chosen === null) return undefined;
    const timer = setTimeout(() => get(`spans/${enc(chosen)}`).then((span) => String(span.row) === store.value.chosen && named(span), () => {}), NAME_MS);
    return () => clearTimeout(timer);
  }, [talk, chosen, controller]);
  /** @param {string} span */
  const focusOn = (span) => controller?.focus(span);
  /** @param {KeyboardEvent} event */
  const nextMatch = (event) => {
    if (event.key !== "Enter") return;
    field.current?.blur();
    controller?.nextMatch(1);
  };

  /** @param {SessionAnswer["marks"]} marks */
  const marked = (marks) => session && store.set({ session: { ...session, marks } });
  const less = useMemo(() => trace !== null && turnsOf(trace).some((i) => trace.flags[i] & TRUNCATED), [trace, rev]);
  const unknown = session === null && error?.status === 404;
  return html`<div class=${unknown ? "session session-unknown" : "session"}>
    <header class="bar">
      <h1 class="blurry" title=${visible(session?.first_prompt ?? "")}>${visible(session?.first_prompt ?? (session ? id : " "))}</h1>
      ${session && html`<${Marks} id=${id} marks=${session.marks} done=${marked} /><${Facts} session=${session} spans=${trace?.n} less=${less} />`}
    </header>
    ${unknown && html`<section class="card narrow" role="alert"><h1>No such session</h1>
      <p>hookspan has no session with this id. It may have been deleted, or its hooks went to another collector.</p><p><a href="/sessions">All sessions</a></p></section>`}
    ${error && !unknown && html`<${Trouble} error=${error} reload=${() => controller?.loader.whole()} />`}
    ${!talk && view !== "turns" && html`<${PartsBar} turns=${turns} session=${session} />`}
    <div class="lanes" ref=${strip} hidden=${!beside}></div>
    <div class="views">
      <nav class="view-tabs" aria-label="Views"><a class="phone" href=${href("turns")} aria-current=${view === "turns" ? "true" : null} onClick=${plainClick(() => open("turns"))}>Turns</a>${VIEWS.map(([word, name, key]) => html`<a href=${href(word)} title=${`${name} (${key})`} aria-current=${word === view ? "true" : null} onClick=${plainClick(() => open(word))}>${name}</a>`)}</nav>
      ${(beside || talk) && html`<input class="grow" ref=${field} type="search" aria-label="Filter the rows of this session" placeholder="/ filter rows: words  kind:shell  -status:ok  dur>2s"
        value=${search} onInput=${onText(find)} onKeyDown=${nextMatch} />
      <span class="dim num found" role="status">${found === null ? "" : `${found} ${found === 1 ? "match" : "matches"}`}</span>`}
      ${running && view === "waterfall" && html`<button type="button" title="Stay at the row that runs (F)" aria-pressed=${following} onClick=${() => (following ? controller?.following.end() : controller?.following.begin())}>follow</button>`}
      ${view === "waterfall" && html`<button type="button" title="What the turn waited for, from its end backwards (c)" aria-pressed=${critical !== null} onClick=${() => controller?.toggleCritical()}>critical path</button>`}
      ${critical && view === "waterfall" && html`<span class="dim num">${duration(critical.own)} model time + ${plural(critical.steps, "step")}</span>`}
    </div>
    ${focus && html`<${Focus} focus=${focus} onBack=${() => controller?.focus(null)} onGo=${(/** @type {number} */ row) => { controller?.focus(null); goTo(row); }} />`}
    <div class="split">
      <section class="wf" ref=${host} aria-label="Waterfall" hidden=${view !== "waterfall"}></section>
      ${talk && !unknown && html`<${Conversation} id=${id} ...${other} named=${hash !== ""} hit=${controller?.model.hit ?? null} bind=${bind} />`}
      ${view === "turns" && html`<${TurnList} trace=${trace} turns=${turns} chosen=${chosen} read=${(/** @type {number} */ row) => { open("conversation"); goTo(row); }} />`}
      ${view === "flame" && html`<${Flame} ...${other} />`}
      ${view === "log" && html`<${Log} ...${other} search=${search} />`}
      ${view === "edits" && html`<${Edits} id=${id} query=${query} go=${go} rev=${rev} />`}
      ${view === "insights" && html`<${Insights} id=${id} ...${other} leave=${() => go("/sessions")} />`}
      <aside class="pane" aria-label="Span detail" hidden=${!beside}>
        ${beside && html`<${Detail} span=${chosen} rev=${rev} onGo=${goTo} onLoaded=${named} onFocus=${focusOn} group=${controller?.group(chosen) ?? 0} filter=${(/** @type {string} */ term) => find(withTerm(search, term))} />`}</aside>
    </div>
  </div>`;
}

/**
 * Handles plain clicks on a link. The chosen row changes the address without redrawing, so the link's own address may
 * be out of date.
 * @param {() => void} action @returns {(event: MouseEvent) => void}
 */
const plainClick = (action) => (event) => {
  if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  action();
};

/** The address of another view. The other parameters stay. @param {string} word */
function href(word) {
  const url = new URL(location.href);
  url.searchParams.set("view", word);
  return url.pathname + url.search + url.hash;
}

/** The bar above a subagent that is shown alone.
 * @param {{ focus: NonNullable<SessionState["focus"]>, onBack: () => void, onGo: (row: number) => void }} props */
function Focus({ focus, onBack, onGo }) {
  const { span, path } = focus;
  return html`<section class="focus" aria-label="One subagent">
    <div class="focus-line"><button type="button" onClick=${onBack}>‹ back</button>
      <nav class="path blurry" aria-label="Way to the subagent">${path.map((step) => html`<button type="button" class="link" onClick=${() => onGo(step.row)}>${visible(step.label)}</button><span aria-hidden="true"> › </span>`)}<b>${visible(span.label)}</b></nav>
      <span class="num">${span.dur_us === null ? "?" : duration(span.dur_us)}</span>
      <span class="num dim">${plural(span.calls, "call")}</span>${span.errors > 0 && html`<span class="num bad">${plural(span.errors, "error")}</span>`}
      ${span.link && html`<span class=${/^(exact|transcript)$/.test(span.link.confidence) ? "chip" : "chip warn"}>link ${visible(span.link.confidence)}${span.link.source ? ` (${visible(span.link.source)})` : ""}</span>`}</div>
    ${(span.task || span.result) && html`<dl class="focus-texts blurry"><div><dt>task</dt><dd>${visible(span.task ?? "not stored")}</dd></div><div><dt>result</dt><dd>${visible(span.result ?? "none seen")}</dd></div></dl>`}
  </section>`;
}

/** @param {{ session: SessionAnswer, spans: number | undefined, less: boolean }} props `less`: a turn lost hooks at a limit */
function Facts({ session, spans, less }) {
  return html`<p class="facts-line dim"><${State} state=${session.state} />
    <span class="blurry">${visible(session.project ?? "–")}</span><span>${visible(session.model ?? "–")}</span>
    ${less && html`<span class="warn" title="A turn of this session was so long that hooks were left out of its tree. The raw log has them.">▲ figures too low: hooks left out</span>`}
    <span class="num">${date(session.start_us)}</span>
    <span class="num">${duration(session.active_us)} active / ${duration(session.wall_us)} wall</span>
    ${spans != null && html`<span class="num">${plural(spans, "span")}</span>`}
    <span class=${session.errors ? "bad num" : "num"}>${plural(session.errors, "error")}</span>
    <span class="num" title=${session.tokens ? `input ${session.tokens.input ?? "?"} (cache read ${session.tokens.cache_read ?? "?"}, write ${session.tokens.cache_write ?? "?"}), output ${session.tokens.output ?? "?"}` : "no turn reported tokens"}>
      ${session.tokens ? `${count(session.tokens.input)} tok in, ${count(session.tokens.output)} out` : "– tok"}</span>
    ${session.repository && html`<span class="blurry" title=${visible(session.repository.url ?? "")}>${visible(session.repository.branch ?? "–")} ${visible(session.repository.commit?.slice(0, 8) ?? "")}${session.repository.commits.length > 0 && ` · ${plural(session.repository.commits.length, "commit")}`}</span>`}
    ${session.cost && html`<span class="num" title="an estimate by the prices in the configuration, not a bill; what subagents used is in no hook">${visible(cost(session.cost))}</span>`}</p>`;
}

/** @param {{ turns: Turn[], session: SessionAnswer | null }} props */
function PartsBar({ turns, session }) {
  const parts = sums(turns.map((turn) => turn.parts));
  const total = parts.reduce((sum, [, us]) => sum + us, 0);
  const you = session ? Math.max(0, session.wall_us - session.active_us) : 0;
  return html`<section class="parts" aria-label="Where the time went">
    <div class="parts-bar" aria-hidden="true">${parts.map(([key, us]) => html`<i class=${`k-${key}`} style=${{ flexGrow: us / total }}></i>`)}</div>
    <${Legend} parts=${parts} total=${total}>${total > 0 && html`<li class="dim"><i class="dot k-you"></i>you <span class="num">${duration(you)}</span> (not in bar)</li>`}<//>
  </section>`;
}
