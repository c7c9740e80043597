// Small pieces that several pages use.
import { html, useEffect, useMemo, useRef, useState } from "./html.js";
import { get } from "../net/api.js";
import { live } from "../net/event-stream.js";
import { age, duration } from "../format/quantity.js";
import { LABELS, share } from "../trace/time-parts.js";
import { visible } from "../format/text.js";
import { setTitle } from "./title.js";

/**
 * What the server was last asked for: `{data, error, reload}`. Asks again when `path` changes, and after stream events that
 * `heard` takes, at most once per `ms`.
 */
export function useAnswer(path, heard = null, ms = 1_000) {
  const [state, set] = useState({ data: null, error: null, path: null });
  const [turn, again] = useState(0);
  useEffect(() => {
    if (!path) return undefined;
    const control = new AbortController();
    get(path, { signal: control.signal }).then(
      (data) => set({ data, error: null, path }),
      (error) => error.name !== "AbortError" && set((old) => ({ data: old.path === path ? old.data : null, error, path })),
    );
    return () => control.abort();
  }, [path, turn]);
  const reload = useMemo(() => () => again((n) => n + 1), []);
  useEffect(() => {
    if (!heard) return undefined;
    const soon = throttle(reload, ms);
    return live.listen((event, data) => heard(event, data) && soon());
  }, []);
  // The last answer stays on the page until the next one is here.
  return { data: state.data, error: state.path === path ? state.error : null, reload };
}

/** Calls `listener` for stream events while the component lives. */
export function useLive(listener, inputs) {
  useEffect(() => live.listen(listener), inputs);
}

/** Calls `action` at most once per `ms`, the last call never lost. */
export function throttle(action, ms) {
  let timer = 0;
  let last = -Infinity;
  const run = () => {
    timer = 0;
    last = performance.now();
    action();
  };
  return () => {
    if (!timer) timer = setTimeout(run, Math.max(0, last + ms - performance.now()));
  };
}

/** The time now in microseconds, renewed every second while `on`. */
export function useNow(on = true) {
  const [now, set] = useState(() => Date.now() * 1_000);
  useEffect(() => {
    if (!on) return undefined;
    const timer = setInterval(() => set(Date.now() * 1_000), 1_000);
    return () => clearInterval(timer);
  }, [on]);
  return now;
}

/** An age that ticks, hidden from the live region. */
export function Age({ since, suffix = "" }) {
  const now = useNow();
  return html`<time class="num" dateTime=${new Date(since / 1_000).toISOString()}>${age(now - since)}${suffix}</time>`;
}

const STATES = {
  running: ["●", "running"],
  tool_open: ["◐", "call open"],
  your_turn: ["▲", "your turn"],
  done: ["✓", "done"],
  errored: ["✕", "errored"],
  stale: ["–", "stale"],
};

/** A state as icon and word. */
export function State({ state }) {
  const [icon, word] = STATES[state] ?? ["?", "other"];
  return html`<span class=${`state state-${STATES[state] ? state : "other"}`}><span aria-hidden="true">${icon}</span> ${word}</span>`;
}

/** What went wrong, and what to do. */
export function Trouble({ error, reload }) {
  const signed = error.status === 401;
  return html`<section class="trouble" role="alert">
    <h2>${signed ? "Signed out" : error.message}</h2>
    <p>${error.detail}</p>
    ${error.hint && html`<p class="dim">${error.hint}</p>`}
    ${reload && !signed && html`<button type="button" onClick=${reload}>Try again</button>`}
  </section>`;
}

/** A quiet placeholder of the final height. */
export function Loading() {
  return html`<div class="loading" role="status">loading…</div>`;
}

/** Names the page. */
export function useTitle(title) {
  useEffect(() => setTitle(title), [title]);
}

/** A page with a bar: `ready` is what `children` needs, null while it is on its way. */
export function Page({ title, tools, error, reload, ready, children }) {
  return html`<div class="page"><header class="bar"><h1>${title}</h1>${tools && html`<div class="tools">${tools}</div>`}</header>
    ${error && html`<${Trouble} error=${error} reload=${reload} />`}
    ${ready ? html`<div class="scroll">${children()}</div>` : !error && html`<${Loading} />`}</div>`;
}

/** The parameters of the address, and `set(name, value)` that puts one there. */
export function useQuery(path, query, go) {
  const params = useMemo(() => new URLSearchParams(query), [query]);
  const set = (name, value) => {
    const changed = new URLSearchParams(location.search);
    changed.delete("cursor");
    if (value) changed.set(name, value);
    else changed.delete(name);
    go(`${path}${changed.size ? `?${changed}` : ""}`, { replace: true });
  };
  return { params, set };
}

/** A filter of the bar: a field, or a choice with `options`. Kept in the address. */
export function Field({ name, label = name, params, set, options, size = 10 }) {
  const value = params.get(name) ?? "";
  if (options) {
    return html`<label class="field">${label} <select value=${value} onChange=${(e) => set(name, e.target.value)}>
      ${options.map((option) => html`<option value=${option}>${option ? option.replace("_", " ") : "all"}</option>`)}</select></label>`;
  }
  return html`<label class="field">${label} <input size=${size} value=${value} onChange=${(e) => set(name, e.target.value.trim())} /></label>`;
}

/** A group of buttons of which one is pressed. */
export function Choice({ name, values, now, choose, word = (value) => value }) {
  return html`<span class="choice" role="group" aria-label=${name}>${values.map((value) => html`
    <button type="button" aria-pressed=${value === now} onClick=${() => choose(value)}>${word(value)}</button>`)}</span>`;
}

/** What the address says of the days to show: `[days, choice]`, 30 unless it says another of `values`. */
export function useDays(values, { params, set }) {
  const asked = Number(params.get("days"));
  const days = values.includes(asked) ? asked : 30;
  return [days, html`<${Choice} name="days" values=${values} now=${days} choose=${(value) => set("days", String(value))} word=${(n) => (n === 365 ? "1 y" : `${n} d`)} />`];
}

/** The head of a column by which a list may be sorted; `now` when it is. */
export function SortHead({ label, now, sort }) {
  return html`<th class="r" aria-sort=${now ? "descending" : null}><button type="button" class="sort" onClick=${sort}>${label}${now ? " ▾" : ""}</button></th>`;
}

/** What time went into, as a list: `[part, us]` of `total`. */
export function Legend({ parts, total, children }) {
  return html`<ul class="legend">${parts.map(([key, us]) => html`<li><i class=${`dot k-${key}`}></i>${LABELS[key]} <span class="num">${duration(us)}</span> <span class="dim num">${share(us, total)}</span></li>`)}${children}</ul>`;
}

/** A chosen row of a list: `{at, list, move}`; `list` is the ref of the table whose rows hold a link each. */
export function useRows(n) {
  const [at, setAt] = useState(-1);
  const list = useRef(null);
  const move = (step) => {
    if (!n) return;
    const to = Math.max(0, Math.min(n - 1, at + step));
    setAt(to);
    list.current?.querySelectorAll("tbody tr, li.row")[to]?.querySelector("a")?.focus();
  };
  return { at: Math.min(at, n - 1), setAt, list, move };
}

/** `api / turn 7`. */
export function Place({ project, turn }) {
  return `${visible(project)}${turn ? ` / turn ${turn}` : ""}`;
}

/** Says something in passing, at the foot of the page and to a screen reader. */
export function notify(text) {
  dispatchEvent(new CustomEvent("hookspan:notify", { detail: text }));
}

/** Puts the address of this view on the clipboard, and says so. */
export function copyAddress() {
  navigator.clipboard?.writeText(location.href).then(() => notify("address copied"), () => notify("the browser did not allow copying"));
}
