// What happens between the page of a session, its waterfall, its lanes and the network. Kept out of the component, so that a
// keystroke renders nothing.
import { enc, get } from "../net/api.js";
import { decode, ERROR, merge } from "../trace/columns.js";
import { criticalPath } from "../trace/critical-path.js";
import { matches, parse } from "../trace/filter.js";
import { cost, count, plural } from "../format/quantity.js";
import { Lanes } from "../waterfall/minimap.js";
import { kindIndex } from "../trace/rows.js";
import { mix } from "../trace/time-parts.js";
import { subagentOf, subtree } from "../trace/subtree.js";
import { copyAddress, notify, throttle } from "../ui/pieces.js";
import { Waterfall } from "../waterfall/waterfall.js";

/** The text that stands beside a turn. */
function note(turn) {
  const words = [
    turn.calls ? plural(turn.calls, "call") : null,
    turn.errors ? `${turn.errors} err` : null,
    turn.tokens ? `${count(turn.tokens.input + turn.tokens.output)} tok` : null,
    turn.cost ? cost(turn.cost) : null,
  ];
  return words.filter(Boolean).join(" · ");
}

export function controller({ id, view, setSession, setTurns, setError, setShown, setChosen, setFound, setFocus, setCritical }) {
  // `full` is the session; `trace` is what is shown of it: all, or one subagent.
  let full = null;
  let trace = null;
  let alive = true;
  let query = null;
  let loading = false;
  let again = false;
  let wantedHash = null;
  let wantedFocus = null;
  let focusRow = null;
  let criticalRow = null;
  let turnList = [];
  let written = null;
  const now = () => Date.now() * 1_000 - (full?.t0 ?? 0);
  const wf = () => view.waterfall;

  // What is shown of the session may have changed: the same row stays chosen.
  const show = () => {
    const selected = trace && wf().selected >= 0 ? trace.row[wf().selected] : null;
    const top = focusRow === null ? undefined : full.index.get(focusRow);
    trace = top === undefined ? full : subtree(full, top);
    wf().selected = selected === null ? -1 : trace.index.get(selected) ?? -1;
    wf().hit = null;
    wf().marked = null;
    wf().show(trace, now());
    paint();
    annotate();
    if (query) applySearch();
    applyCritical();
    setShown({ trace, rev: full.rev });
  };

  const paint = () => {
    view.lanes.paint(trace, wf().span[0], wf().span[1], wf().cuts, now());
    wf().version += 1;
    wf().axis = null;
    wf().schedule();
  };

  // Tokens, errors and shares beside the turns: the columns do not carry them.
  const annotate = () => {
    const turn = kindIndex(trace, "turn");
    const byStart = new Map(turnList.map((one) => [one.start_us, one]));
    wf().notes.clear();
    wf().mixes.clear();
    for (let i = 0; i < trace.n; i += 1) {
      if (trace.kind[i] !== turn) continue;
      const one = byStart.get(trace.start[i] + trace.t0);
      if (!one) continue;
      wf().notes.set(trace.row[i], note(one));
      wf().mixes.set(trace.row[i], mix(one.parts));
    }
    wf().version += 1;
    wf().schedule();
  };

  // Turns are folded, except the one a person most likely came for: the last one with an error, else the last.
  const foldAtStart = () => {
    const turn = kindIndex(full, "turn");
    const all = [];
    for (let i = 0; i < full.n; i += 1) if (full.kind[i] === turn) all.push(i);
    const failed = all.filter((i) => {
      for (let k = i; k < full.last[i]; k += 1) if (full.status[k] === ERROR) return true;
      return false;
    });
    const keep = failed.at(-1) ?? all.at(-1);
    for (const i of all) if (i !== keep) wf().folded.add(full.row[i]);
    return keep === undefined ? null : full.row[keep];
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
      const before = full !== null;
      full = decode(spans);
      const keep = before ? null : foldAtStart();
      show();
      if (wantedFocus) await focusOn(wantedFocus);
      if (wantedHash) await goToHash(wantedHash);
      else if (keep !== null && focusRow === null) api.goTo(keep);
    } catch (error) {
      if (alive) setError(error);
    }
  };

  const goToHash = async (hash) => {
    wantedHash = null;
    try {
      const span = await get(`spans/${enc(hash)}`);
      if (alive) api.goTo(span.row);
    } catch (error) {
      if (error.status !== 404) throw error;
    }
  };

  const delta = async () => {
    if (loading || !full) {
      again = true;
      return;
    }
    loading = true;
    again = false;
    try {
      const [answer, turns] = await Promise.all([
        get(`sessions/${enc(id)}/spans?since=${full.rev}`), get(`sessions/${enc(id)}/turns`),
      ]);
      if (!alive) return;
      turnList = turns.items;
      setTurns(turnList);
      const known = new Set(full.row);
      const merged = merge(full, answer);
      if (!merged) {
        await first();
      } else {
        full = merged;
        openNewTurn(known);
        show();
      }
    } catch (error) {
      if (alive && error.status !== 0) setError(error);
    } finally {
      loading = false;
      if (again && alive) deltaSoon();
    }
  };
  const deltaSoon = throttle(delta, 150);

  // A turn that begins while one watches is open.
  const openNewTurn = (known) => {
    const turn = kindIndex(full, "turn");
    for (let i = 0; i < full.n; i += 1) if (full.kind[i] === turn && !known.has(full.row[i])) wf().folded.delete(full.row[i]);
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

  const applyCritical = () => {
    const top = criticalRow === null ? undefined : trace.index.get(criticalRow);
    if (top === undefined) {
      criticalRow = null;
      wf().mark(null);
      setCritical(null);
      return;
    }
    const { marked, steps, own } = criticalPath(trace, top, now());
    wf().mark(marked);
    setCritical({ own, steps: steps.length });
  };

  const focusOn = async (ref) => {
    wantedFocus = null;
    const [{ focus: span }, { path }] = await Promise.all([
      get(`sessions/${enc(id)}/spans?focus=${enc(ref)}`), get(`spans/${enc(ref)}`),
    ]).catch((error) => {
      // The address names a span that is not (any more) there: the whole session is better than an error.
      if (error.status === 404 || error.status === 400) return [{}, {}];
      throw error;
    });
    const top = span && full.index.get(span.row);
    if (!alive || top === undefined) return;
    focusRow = span.row;
    wf().folded.delete(span.row);
    // Those below it are folded: one asked for this one alone.
    const kind = kindIndex(full, "subagent");
    for (let i = top + 1; i < full.last[top]; i += 1) if (full.kind[i] === kind) wf().folded.add(full.row[i]);
    wf().setManual(null);
    address((url) => url.searchParams.set("focus", span.id));
    setFocus({ span, path: path ?? [] });
    show();
    if (wf().selected < 0) api.goTo(span.row);
  };

  const unfocus = () => {
    const from = focusRow;
    focusRow = null;
    address((url) => url.searchParams.delete("focus"));
    setFocus(null);
    wf().setManual(null);
    show();
    if (from !== null && wf().selected < 0) api.goTo(from);
  };

  // What is in the address is what is on the page; the page need not read back what it wrote itself.
  const address = (change) => {
    const url = new URL(location.href);
    change(url);
    history.replaceState(history.state, "", url.pathname + url.search + url.hash);
    written = url.search + url.hash;
  };

  const saveAxis = throttle(() => alive && address((url) => {
    const range = wf().manual;
    if (range) url.searchParams.set("t", range.map((us) => Math.round(us)).join(","));
    else url.searchParams.delete("t");
  }), 400);

  const api = {
    mount(host, strip, { hash, query: text }) {
      wantedHash = /^#?([0-9a-f]{16})$/.exec(hash)?.[1] ?? null;
      const params = new URLSearchParams(text);
      wantedFocus = params.get("focus");
      written = text + hash;
      view.waterfall = new Waterfall(host, {
        onSelect: (i) => setChosen(String(trace.row[i])),
        onAxis: ({ from, to }) => {
          view.lanes.window(from, to);
          saveAxis();
        },
      });
      const range = params.get("t")?.split(",").map(Number);
      if (range?.length === 2 && range.every(Number.isFinite) && range[1] > range[0]) view.waterfall.manual = range;
      view.lanes = new Lanes(strip, {
        onJump: (t) => { wf().setManual(null); wf().jump(t); },
        onBrush: (from, to) => { wf().setManual([from, to]); wf().jump(from); },
      });
      view.themed = new MutationObserver(() => trace && paint());
      view.themed.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
      // Also fires when another view gives the place back.
      view.sized = new ResizeObserver(() => trace && strip.clientWidth > 0 && paint());
      view.sized.observe(strip);
      first();
    },
    unmount() {
      alive = false;
      view.sized.disconnect();
      view.themed.disconnect();
      wf().destroy();
    },
    load: first,
    /** Back and forward, or a link of this page: follow what the address says. */
    address({ hash, query: text }) {
      if (!full || written === text + hash) return;
      const span = /^#([0-9a-f]{16})$/.exec(hash)?.[1];
      const asked = new URLSearchParams(text).get("focus");
      written = text + hash;
      if (!asked && focusRow !== null) unfocus();
      if (span) goToHash(span).catch(setError);
    },
    search(text) {
      query = parse(text);
      if (text.trim() || new URL(location.href).searchParams.has("q")) {
        address((url) => (text.trim() ? url.searchParams.set("q", text) : url.searchParams.delete("q")));
      }
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
      if (trace && !trace.index.has(row) && full.index.has(row)) unfocus();
      const i = trace?.index.get(row);
      if (i === undefined) return;
      if (wf().hit && wf().at(i) === undefined) wf().filter(null);
      wf().select(i);
    },
    loaded(span) {
      address((url) => { url.hash = span.id; });
    },
    nextMatch(step) {
      if (!trace || !wf().hit) return;
      wf().seek(step, (i) => wf().hit[i] === 1);
    },
    /** The equal siblings that the row `key` stands for while they are folded. */
    group(key) {
      const i = trace.index.get(Number(key));
      const group = i === undefined ? undefined : wf().groups.get(i);
      return group && !group.open ? group.count : 0;
    },
    /** One subagent alone; `null` shows the session again. */
    focus(ref) {
      if (ref === null) unfocus();
      else focusOn(ref).catch(setError);
    },
    critical() {
      if (criticalRow !== null) {
        criticalRow = null;
      } else {
        const i = wf().selected < 0 ? 0 : wf().selected;
        const turn = wf().turnOf(i);
        criticalRow = trace.row[turn >= 0 ? turn : i];
        if (turn >= 0) wf().toggle(turn, true);
      }
      applyCritical();
    },
    keys({ focusFilter, clear, leave, views, waterfall }) {
      const turn = () => kindIndex(trace, "turn");
      const session = () => kindIndex(trace, "session");
      const error = (step) => wf().seek(step, (i) => trace.status[i] === ERROR && trace.last[i] === i + 1)
        || wf().seek(step, (i) => trace.status[i] === ERROR && trace.kind[i] !== session());
      const subagent = () => {
        const at = wf().selected < 0 ? -1 : subagentOf(trace, wf().selected);
        if (at >= 0 && trace.row[at] !== focusRow) return focusOn(trace.row[at]).catch(setError);
        if (focusRow !== null) return unfocus();
        return notify("no subagent here: choose one, or a row of one");
      };
      // The chosen row gets into the address when its pane is loaded; who copies before that means the row as well.
      const copy = async () => {
        if (trace && wf().selected >= 0) await get(`spans/${trace.row[wf().selected]}`).then(api.loaded, () => {});
        copyAddress();
      };
      const rows = {
        j: () => wf().move(1), ArrowDown: () => wf().move(1), k: () => wf().move(-1), ArrowUp: () => wf().move(-1),
        PageDown: () => wf().move(20), PageUp: () => wf().move(-20), Home: () => wf().edge(false), End: () => wf().edge(true),
        ArrowLeft: () => wf().left(), ArrowRight: () => wf().right(), Enter: () => wf().selected >= 0 && wf().toggle(wf().selected),
        " ": () => wf().selected >= 0 && wf().toggle(wf().selected),
        "[": () => wf().seek(-1, (i) => trace.kind[i] === turn()), "]": () => wf().seek(1, (i) => trace.kind[i] === turn()),
        e: () => error(1), E: () => error(-1), n: () => api.nextMatch(1), N: () => api.nextMatch(-1),
        a: () => wf().toggleFollow(), f: () => wf().fitAll(), "+": () => wf().zoom(0.5), "=": () => wf().zoom(0.5), "-": () => wf().zoom(2),
        1: () => wf().foldTurns(), 0: () => wf().unfoldAll(), s: subagent, c: () => api.critical(),
      };
      const ready = (action) => (event) => trace && action(event);
      return {
        ...(waterfall ? Object.fromEntries(Object.entries(rows).map(([key, action]) => [key, ready(action)])) : {}),
        ...views,
        "/": focusFilter,
        y: copy,
        Escape: () => {
          if (query) clear();
          else if (criticalRow !== null && waterfall) api.critical();
          else if (focusRow !== null) unfocus();
          else leave();
        },
      };
    },
  };
  return api;
}
