// What needs the person now, what runs, and totals of today.
/** @import { Need as NeedItem, Overview as Answer, SessionRow } from "../../types/answers" */
/** @import { Failure } from "../../types/app" */
import { html } from "../ui/html.js";
import { cost, count, duration, plural } from "../format/quantity.js";
import { clock } from "../format/time.js";
import { visible } from "../format/text.js";
import { Age } from "../ui/clock.js";
import { Place, State } from "../ui/labels.js";
import { NEEDS } from "../ui/needs.js";
import { Loading, Trouble, useTitle } from "../ui/page.js";
import { useAnswer } from "../ui/use-answer.js";
import { Waiting } from "./waiting.js";
import { sheet } from "../ui/sheet.js";

await sheet("pages");

/** @param {{ overview: { data: Answer | null, needs: NeedItem[], error: Failure | null, reload: () => void, lost: number | null } }} props `lost`: since when the collector is away */
export function Overview({ overview: { data, needs, error, reload, lost } }) {
  const { data: sessions, reload: again } = useAnswer("sessions?limit=10", (event) => event === "session" || event === "resync");
  useTitle("Overview");
  if (error && !data) return html`<${Trouble} error=${error} reload=${() => { reload(); again(); }} />`;
  if (!data || !sessions) return html`<${Loading} />`;
  if (!sessions.items.length) return html`<div class="page overview"><h1 class="sr">Overview</h1><${Waiting} /></div>`;
  const { ended, running, today } = data;
  const gaps = data.gaps ?? [];
  const above = new Set([...running.map((one) => one.id), ...ended.map((one) => one.session)]);
  const shown = sessions.items.filter((row) => !above.has(row.id));
  return html`<div class="page overview">
    <h1 class="sr">Overview</h1>
    <section aria-labelledby="needs"><h2 id="needs">Needs you now${needs.length > 0 && html` <span class="count">${needs.length}</span>`}</h2>
      ${needs.length === 0 && (lost ? html`<p class="warn">Not known while hookspan can't be reached.</p>` : html`<p class="calm">✓ Nothing needs you.</p>`)}
      <ul class="needs">${needs.map((need) => html`<${Need} key=${`${need.kind} ${need.session} ${need.url}`} need=${need} />`)}</ul></section>
    ${ended.length > 0 && html`<section aria-labelledby="ended"><h2 id="ended">Turn ended <span class="count calm-count">${ended.length}</span></h2>
      <ul class="needs">${ended.map((need) => html`<${Need} key=${need.session} need=${need} />`)}</ul></section>`}
    ${running.length > 0 && html`<section aria-labelledby="running"><h2 id="running">Running <span class="count calm-count">${running.length}</span></h2>
      <${List} rows=${running} /></section>`}
    <section class="today" aria-labelledby="today"><h2 id="today">Today <a class="aside" href="/time">where the time went</a></h2>
      <dl class="tiles">
        <div><dt>active</dt><dd>${duration(today.active_us)}</dd></div>
        <div><dt>turns</dt><dd>${today.turns}</dd></div>
        <div><dt>tokens in</dt><dd>${count(today.input_tokens)}</dd></div>
        <div><dt>tokens out</dt><dd>${count(today.output_tokens)}</dd></div>
        ${today.cost && html`<div><dt>estimated cost</dt><dd title="by the prices in the configuration, not a bill">${visible(cost(today.cost))}</dd></div>`}
        <div><dt>errors</dt><dd class=${today.errors ? "bad" : ""}>${today.errors}</dd></div>
      </dl></section>
    ${gaps.length > 0 && html`<section aria-labelledby="gaps"><h2 id="gaps">When no collector ran</h2>
      <ul class="plain gaps">${gaps.map((gap) => html`<li key=${gap.from_us}><span class="warn">▒ gap</span>
        <span class="num">${clock(gap.from_us).slice(0, 5)} – ${clock(gap.to_us).slice(0, 5)}</span>
        <span class="num dim">${duration(gap.to_us - gap.from_us)}</span>
        <span>collector was down; ${plural(gap.hooks, "hook")} recovered from the journal</span></li>`)}</ul></section>`}
    <section aria-labelledby="recent"><h2 id="recent">Recent sessions <a class="aside" href="/sessions">all</a></h2>
      <${List} rows=${shown} /></section>
  </div>`;
}

/** @param {{ rows: (SessionRow | Answer["running"][number])[] }} props */
function List({ rows }) {
  return html`<ul class="recent">${rows.map((row) => html`<li key=${row.id}><a href=${row.url}>
    <${State} state=${row.state} /><span class="dim blurry">${visible(row.project ?? "–")}</span>
    <span class="what blurry">${visible(row.first_prompt ?? row.id)}</span>
    <span class="dim num">${plural(row.turns, "turn")} · ${plural(row.calls, "call")}</span>
    <span class=${row.errors ? "bad num" : "dim num"}>${row.errors ? plural(row.errors, "error") : ""}</span>
    <span class="dim num r">${duration(row.active_us)}</span>
    <span class="dim r"><${Age} since=${row.last_us} suffix=" ago" /></span></a></li>`)}</ul>`;
}

/** @param {{ need: NeedItem }} props */
function Need({ need }) {
  const [icon, word, hint] = NEEDS[need.kind] ?? ["?", "other", ""];
  return html`<li class=${`need need-${need.kind}`}><a href=${need.url}>
    <span class="kind"><span aria-hidden="true">${icon}</span> ${word}</span>
    <span class="since num"><${Age} since=${need.since_us} /></span>
    <span class="what"><span class="blurry">${visible(need.label)}</span>${hint && html` <span class="dim">${hint}</span>`}</span>
    <span class="dim blurry"><${Place} project=${need.project ?? need.session} turn=${need.turn} /></span></a></li>`;
}
