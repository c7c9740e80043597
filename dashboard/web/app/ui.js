// Small pieces that several pages use.
import { html, useEffect, useState } from "./html.js";
import { get } from "./api.js";
import { live } from "./live.js";
import { age } from "./format.js";

/** What the server was last asked for: `{data, error, reload}`. Asks again when `path` changes. */
export function useAnswer(path) {
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
  const fresh = state.path === path || state.data;
  return { data: fresh ? state.data : null, error: state.error, reload: () => again((n) => n + 1) };
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
