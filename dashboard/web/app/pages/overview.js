// What needs the person now, what runs, today in sums.
import { html, useEffect, useMemo, useState } from "../html.js";
import { count, duration, plural } from "../format.js";
import { visible } from "../text.js";
import { Age, Loading, State, Trouble, throttle, useAnswer, useLive } from "../ui.js";
import { Nothing } from "./sessions.js";

const NEEDS = {
  tool_open: ["◐", "call open", "running or waiting for approval"],
  your_turn: ["▲", "your turn", ""],
  failed: ["✕", "failed", ""],
  stalled: ["–", "stalled", "no event for ten minutes"],
};

function midnight() {
  const day = new Date();
  day.setHours(0, 0, 0, 0);
  return day.getTime() * 1_000;
}

export function Overview() {
  const [from] = useState(midnight);
  const { data, error, reload } = useAnswer(`overview?from_us=${from}`);
  const { data: sessions } = useAnswer("sessions?limit=8");
  const soon = useMemo(() => throttle(reload, 1_000), []);
  useLive((event) => (event === "session" || event === "resync") && soon(), []);
  const needs = data?.needs ?? [];
  useEffect(() => {
    document.title = `${needs.length ? `(${needs.length}) ` : ""}Overview · hookspan`;
  }, [needs.length]);
  // Spoken when the list changes, not when an age ticks.
  const said = needs.map((need) => `${NEEDS[need.kind]?.[1] ?? "needs you"}: ${need.project ?? need.session}`).join("; ");
  if (error && !data) return html`<${Trouble} error=${error} reload=${reload} />`;
  if (!data) return html`<${Loading} />`;
  if (sessions && !sessions.items.length) return html`<div class="page"><${Nothing} /></div>`;
  return html`<div class="page overview">
    <h1 class="sr">Overview</h1>
    <p class="sr" role="status">${said}</p>
    <section aria-labelledby="needs"><h2 id="needs">Needs you now</h2>
      ${needs.length === 0 && html`<p class="calm">✓ Nothing waits for you.</p>`}
      <ul class="needs">${needs.map((need) => html`<${Need} key=${need.session} need=${need} />`)}</ul></section>
    <section class="today" aria-labelledby="today"><h2 id="today">Today</h2>
      <dl class="tiles">
        <div><dt>active</dt><dd>${duration(data.today.active_us)}</dd></div>
        <div><dt>turns</dt><dd>${data.today.turns}</dd></div>
        <div><dt>tokens in</dt><dd>${count(data.today.tokens?.input)}</dd></div>
        <div><dt>tokens out</dt><dd>${count(data.today.tokens?.output)}</dd></div>
        <div><dt>errors</dt><dd class=${data.today.errors ? "bad" : ""}>${data.today.errors}</dd></div>
        <div><dt>running</dt><dd>${data.running.length}</dd></div>
      </dl></section>
    <section aria-labelledby="recent"><h2 id="recent">Recent sessions</h2>
      <ul class="recent">${(sessions?.items ?? []).map((row) => html`<li key=${row.id}><a href=${row.url}>
        <${State} state=${row.state} /><span class="dim blurry">${visible(row.project ?? "–")}</span>
        <span class="what blurry">${visible(row.first_prompt ?? row.id)}</span>
        <span class="dim num">${plural(row.turns, "turn")} · ${plural(row.calls, "call")}</span>
        <span class=${row.errors ? "bad num" : "dim num"}>${row.errors ? plural(row.errors, "error") : ""}</span>
        <span class="dim r"><${Age} since=${row.last_us} suffix=" ago" /></span></a></li>`)}</ul></section>
  </div>`;
}

function Need({ need }) {
  const [icon, word, hint] = NEEDS[need.kind] ?? ["?", "other", ""];
  return html`<li class=${`need need-${need.kind}`}><a href=${need.url}>
    <span class="kind"><span aria-hidden="true">${icon}</span> ${word}</span>
    <span class="since num"><${Age} since=${need.since_us} /></span>
    <span class="what blurry">${visible(need.label)}${hint && html` <span class="dim">${hint}</span>`}</span>
    <span class="dim blurry">${visible(need.project ?? need.session)} / turn ${need.turn}</span></a></li>`;
}
