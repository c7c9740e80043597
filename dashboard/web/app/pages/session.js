// One session: where the time went, its lanes, its waterfall, and a span beside it.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../html.js";
import { enc, get } from "../api.js";
import { decode, ERROR, merge } from "../columns.js";
import { matches, parse } from "../filter.js";
import { age, count, duration, plural } from "../format.js";
import { bind } from "../keys.js";
import { Lanes } from "../lanes.js";
import { visible } from "../text.js";
import { kindIndex } from "../rows.js";
import { State, Trouble, throttle, useLive, useNow } from "../ui.js";
import { Waterfall } from "../waterfall.js";
import { Detail } from "./detail.js";

const PARTS = [
  ["thinking", "thinking"], ["tools", "tools"], ["shell", "shell"], ["mcp", "mcp"], ["edits", "edits"],
  ["subagent", "subagent"], ["wait", "wait (derived)"], ["other", "model/other"],
];

export function Session({ id, query, hash, go }) {
  const [session, setSession] = useState(null);
  const [turns, setTurns] = useState([]);
  const [error, setError] = useState(null);
  const [stats, setStats] = useState(null);
  const [chosen, setChosen] = useState(null);
  const [search, setSearch] = useState(() => new URLSearchParams(query).get("q") ?? "");
  const [found, setFound] = useState(null);
  const [rev, setRev] = useState(0);
  const view = useRef({});
  const host = useRef(null);
  const strip = useRef(null);
  const field = useRef(null);

  const model = useMemo(() => controller({
    id, view: view.current, setSession, setTurns, setError, setStats, setChosen, setFound, setRev,
  }), [id]);

  useLayoutEffect(() => {
    model.mount(host.current, strip.current, { hash, query });
    return () => model.unmount();
  }, [model]);
  useEffect(() => {
    document.title = `${session?.state === "errored" ? "✕ " : ""}${visible(session?.first_prompt ?? "Session").slice(0, 60)} · hookspan`;
  }, [session?.first_prompt, session?.state]);
  useEffect(() => model.search(search), [search, model]);
  useLive((event, data) => model.event(event, data), [model]);
  useEffect(() => bind(model.keys({ focusFilter: () => field.current?.focus(), clear: () => setSearch(""), go })), [model]);
  const running = session && (session.state === "running" || session.state === "tool_open");
  const now = useNow(Boolean(running));
  useEffect(() => { if (running) model.tick(); }, [now]);

  return html`<div class="session">
    <header class="bar">
      <h1 class="blurry" title=${visible(session?.first_prompt ?? "")}>${visible(session?.first_prompt ?? (session ? id : " "))}</h1>
      ${session && html`<${Facts} session=${session} spans=${stats?.spans} />`}
      <input class="grow" ref=${field} type="search" aria-label="Filter the rows of this session" placeholder="/ filter rows: words  kind:shell  status:error  dur>2s"
        value=${search} onInput=${(e) => setSearch(e.target.value)}
        onKeyDown=${(e) => { if (e.key === "Enter") { e.target.blur(); model.nextMatch(1); } }} />
      <span class="dim num found" role="status">${found ? `${plural(found.count, "match")}`.replace("matchs", "matches") : ""}</span>
    </header>
    ${error && html`<${Trouble} error=${error} reload=${() => model.load()} />`}
    <${PartsBar} turns=${turns} session=${session} />
    <div class="lanes" ref=${strip}></div>
    <div class="split">
      <section class="wf" ref=${host} aria-label="Waterfall"></section>
      <aside class="pane" aria-label="Span detail">
        <${Detail} span=${chosen} rev=${rev} onGo=${(row) => model.goTo(row)} onLoaded=${(span) => model.loaded(span)} /></aside>
    </div>
    <footer class="keys" aria-hidden="true">j/k move · ←/→ fold · [ ] turn · e error · n match · 1 turns · 0 all · a axis · f fit · +/− zoom · / filter · ? keys</footer>
  </div>`;
}

function Facts({ session, spans }) {
  return html`<p class="facts-line dim"><${State} state=${session.state} />
    <span class="blurry">${visible(session.project ?? "–")}</span><span>${visible(session.model ?? "–")}</span>
    <span class="num">${duration(session.active_us)} active / ${duration(session.wall_us)} wall</span>
    ${spans != null && html`<span class="num">${plural(spans, "span")}</span>`}
    <span class=${session.errors ? "bad num" : "num"}>${plural(session.errors, "error")}</span>
    <span class="num" title=${session.tokens ? `input ${session.tokens.input} (cache read ${session.tokens.cache_read}, write ${session.tokens.cache_write}), output ${session.tokens.output}` : "no turn reported tokens"}>
      ${session.tokens ? `${count(session.tokens.input + session.tokens.output)} tok` : "– tok"}</span></p>`;
}

function PartsBar({ turns, session }) {
  const sums = PARTS.map(([key, label]) => [key, label, turns.reduce((sum, turn) => sum + turn.parts[`${key}_us`], 0)]);
  const total = sums.reduce((sum, [, , us]) => sum + us, 0);
  const you = session ? Math.max(0, session.wall_us - session.active_us) : 0;
  const shown = sums.filter(([, , us]) => us > 0);
  const share = (us) => `${Math.round((us / total) * 100)}%`;
  return html`<section class="parts" aria-label="Where the time went">
    <div class="parts-bar" aria-hidden="true">${shown.map(([key, , us]) => html`<i class=${`k-${key}`} style=${{ flexGrow: us / total }}></i>`)}</div>
    <ul class="legend">${shown.map(([key, label, us]) => html`<li><i class=${`dot k-${key}`}></i>${label} <span class="num">${duration(us)}</span> <span class="dim num">${share(us)}</span></li>`)}
      ${total > 0 && html`<li class="dim"><i class="dot k-you"></i>you <span class="num">${duration(you)}</span> (not in bar)</li>`}</ul>
  </section>`;
}

// What happens between page, waterfall, lanes and network. Kept out of the component, so that a keystroke renders nothing.
function controller({ id, view, setSession, setTurns, setError, setStats, setChosen, setFound, setRev }) {
  let trace = null;
  let alive = true;
  let query = null;
  let loading = false;
  let again = false;
  let wantedHash = null;
  let turnList = [];
  const now = () => Date.now() * 1_000 - (trace?.t0 ?? 0);
  const wf = () => view.waterfall;

  const show = () => {
    const time = now();
    wf().show(trace, time);
    const end = wf().span[1];
    view.lanes.paint(trace, 0, end, wf().cuts, time);
    wf().version += 1;
    wf().axis = null;
    wf().schedule();
    setStats({ spans: trace.n });
    setRev(trace.rev);
    annotate();
    if (query) applySearch();
  };

  // Tokens and errors beside the turns: the columns do not carry them.
  const annotate = () => {
    if (!trace) return;
    const turn = kindIndex(trace, "turn");
    const byStart = new Map(turnList.map((one) => [one.start_us, one]));
    wf().notes.clear();
    for (let i = 0; i < trace.n; i += 1) {
      if (trace.kind[i] !== turn) continue;
      const one = byStart.get(trace.start[i] + trace.t0);
      if (!one) continue;
      const words = [one.calls ? plural(one.calls, "call") : null, one.errors ? `${one.errors} err` : null, one.tokens ? `${count(one.tokens.input + one.tokens.output)} tok` : null];
      wf().notes.set(trace.row[i], words.filter(Boolean).join(" · "));
    }
    wf().version += 1;
    wf().schedule();
  };

  // Turns are folded, except the one a person most likely came for: the last one with an error, else the last.
  const foldAtStart = () => {
    const turn = kindIndex(trace, "turn");
    const all = [];
    for (let i = 0; i < trace.n; i += 1) if (trace.kind[i] === turn) all.push(i);
    const failed = all.filter((i) => {
      for (let k = i; k < trace.last[i]; k += 1) if (trace.status[k] === ERROR) return true;
      return false;
    });
    const keep = failed.at(-1) ?? all.at(-1);
    for (const i of all) if (i !== keep) wf().folded.add(trace.row[i]);
    return keep;
  };

  const first = async () => {
    try {
      const [session, turns, spans] = await Promise.all([
        get(`sessions/${enc(id)}`), get(`sessions/${enc(id)}/turns`), get(`sessions/${enc(id)}/spans`),
      ]);
      if (!alive) return;
      setError(null);
      setSession(session);
      turnList = turns.items;
      setTurns(turnList);
      const again = trace !== null;
      trace = decode(spans);
      const keep = again ? undefined : foldAtStart();
      show();
      if (wantedHash) await goToHash(wantedHash);
      else if (keep !== undefined) wf().select(keep);
    } catch (error) {
      if (alive) setError(error);
    }
  };

  const goToHash = async (hash) => {
    wantedHash = null;
    try {
      const span = await get(`spans/${enc(hash)}`);
      api.goTo(span.row);
    } catch (error) {
      if (error.status !== 404) throw error;
    }
  };

  const delta = async () => {
    if (loading || !trace) {
      again = true;
      return;
    }
    loading = true;
    again = false;
    try {
      const [answer, turns] = await Promise.all([
        get(`sessions/${enc(id)}/spans?since=${trace.rev}`), get(`sessions/${enc(id)}/turns`),
      ]);
      if (!alive) return;
      turnList = turns.items;
      setTurns(turnList);
      const selected = wf().selected >= 0 ? trace.row[wf().selected] : null;
      const known = new Set(trace.row);
      const merged = merge(trace, answer);
      if (!merged) {
        await first();
      } else {
        trace = merged;
        followLive(known);
        show();
      }
      if (selected !== null) {
        const i = trace.index.get(selected);
        wf().selected = i ?? -1;
        wf().version += 1;
      }
    } catch (error) {
      if (alive && error.status !== 0) setError(error);
    } finally {
      loading = false;
      if (again && alive) deltaSoon();
    }
  };
  const deltaSoon = throttle(delta, 150);

  // A turn that begins while one watches folds the finished ones before it, as on arrival.
  const followLive = (known) => {
    const turn = kindIndex(trace, "turn");
    let newest = -1;
    for (let i = 0; i < trace.n; i += 1) if (trace.kind[i] === turn && !known.has(trace.row[i])) newest = i;
    if (newest >= 0) wf().folded.delete(trace.row[newest]);
  };

  const applySearch = () => {
    if (!trace) return;
    if (!query) {
      wf().filter(null);
      setFound(null);
      return;
    }
    const { hit, count: n } = matches(trace, query);
    wf().filter(hit);
    setFound({ count: n });
  };

  const address = (change) => {
    const url = new URL(location.href);
    change(url);
    history.replaceState(history.state, "", url.pathname + url.search + url.hash);
  };

  const saveAxis = throttle(() => alive && address((url) => {
    const range = wf().manual;
    if (range) url.searchParams.set("t", range.map((us) => Math.round(us)).join(","));
    else url.searchParams.delete("t");
  }), 400);

  const api = {
    mount(host, strip, { hash, query: text }) {
      wantedHash = /^#?([0-9a-f]{16})$/.exec(hash)?.[1] ?? null;
      view.waterfall = new Waterfall(host, {
        onSelect: (i) => setChosen(String(trace.row[i])),
        onAxis: ({ from, to }) => {
          view.lanes.window(from, to);
          saveAxis();
        },
      });
      const range = new URLSearchParams(text).get("t")?.split(",").map(Number);
      if (range?.length === 2 && range.every(Number.isFinite) && range[1] > range[0]) view.waterfall.manual = range;
      view.lanes = new Lanes(strip, {
        onJump: (t) => { wf().setManual(null); wf().jump(t); },
        onBrush: (from, to) => { wf().setManual([from, to]); wf().jump(from); },
      });
      view.themed = new MutationObserver(() => trace && show());
      view.themed.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
      view.resized = () => trace && show();
      addEventListener("resize", view.resized);
      first();
    },
    unmount() {
      alive = false;
      removeEventListener("resize", view.resized);
      view.themed.disconnect();
      wf().destroy();
    },
    load: first,
    search(text) {
      query = parse(text);
      address((url) => (text.trim() ? url.searchParams.set("q", text) : url.searchParams.delete("q")));
      applySearch();
    },
    event(event, data) {
      if (event === "resync") first();
      if (event === "session" && data.id === id) setSession(data);
      if (event === "spans" && data.session === id) deltaSoon();
    },
    tick() {
      if (!trace) return;
      wf().now = now();
      wf().version += 1;
      wf().schedule();
    },
    goTo(row) {
      const i = trace?.index.get(row);
      if (i === undefined) return;
      if (wf().hit && !wf().position.has(i)) wf().filter(null);
      wf().select(i);
    },
    loaded(span) {
      address((url) => { url.hash = span.id; });
    },
    nextMatch(step) {
      if (!trace || !wf().hit) return;
      wf().seek(step, (i) => wf().hit[i] === 1);
    },
    keys({ focusFilter, clear, go }) {
      const turn = () => kindIndex(trace, "turn");
      const session = () => kindIndex(trace, "session");
      const error = (step) => wf().seek(step, (i) => trace.status[i] === ERROR && trace.last[i] === i + 1)
        || wf().seek(step, (i) => trace.status[i] === ERROR && trace.kind[i] !== session());
      const ready = (action) => (event) => trace && action(event);
      const map = {
        j: () => wf().move(1), ArrowDown: () => wf().move(1), k: () => wf().move(-1), ArrowUp: () => wf().move(-1),
        PageDown: () => wf().move(20), PageUp: () => wf().move(-20), Home: () => wf().edge(false), End: () => wf().edge(true),
        ArrowLeft: () => wf().left(), ArrowRight: () => wf().right(), Enter: () => wf().selected >= 0 && wf().toggle(wf().selected),
        " ": () => wf().selected >= 0 && wf().toggle(wf().selected),
        "[": () => wf().seek(-1, (i) => trace.kind[i] === turn()), "]": () => wf().seek(1, (i) => trace.kind[i] === turn()),
        e: () => error(1), E: () => error(-1), n: () => api.nextMatch(1), N: () => api.nextMatch(-1),
        a: () => wf().toggleFollow(), f: () => wf().fitAll(), "+": () => wf().zoom(0.5), "=": () => wf().zoom(0.5), "-": () => wf().zoom(2),
        1: () => wf().foldTurns(), 0: () => wf().unfoldAll(), "/": focusFilter,
        y: () => navigator.clipboard?.writeText(location.href),
        Escape: () => (query ? clear() : go("/sessions")),
      };
      return Object.fromEntries(Object.entries(map).map(([key, action]) => [key, key === "/" ? action : ready(action)]));
    },
  };
  return api;
}
