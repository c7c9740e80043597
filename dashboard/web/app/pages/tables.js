// Pages that are one table: errors, latency, live, health.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { get, post, enc } from "../api.js";
import { bytes, clock, count, duration } from "../format.js";
import { visible } from "../text.js";
import { Age, Loading, Trouble, throttle, useAnswer, useLive } from "../ui.js";

export function Errors() {
  const { data, error, reload } = useAnswer("errors?limit=200");
  useTitle("Errors");
  const soon = useMemo(() => throttle(reload, 3_000), []);
  useLive((event) => event === "spans" && soon(), []);
  return page("Errors", error, reload, data, () => data.items.length === 0
    ? html`<p class="calm">✓ No failure is stored.</p>`
    : html`<table class="list"><thead><tr><th class="wide">failure</th><th class="r">count</th><th class="r">sessions</th><th class="r">first</th><th class="r">last</th></tr></thead>
      <tbody>${data.items.map((row) => html`<tr key=${row.fingerprint}>
        <td class="wide"><a class="blurry" href=${row.url}>${visible(row.fingerprint)}</a></td><td class="r num bad">${row.count}</td>
        <td class="r num">${row.sessions}</td><td class="r dim"><${Age} since=${row.first_us} /></td><td class="r"><${Age} since=${row.last_us} /></td></tr>`)}</tbody></table>`);
}

const GROUPS = ["tool", "model", "kind"];
const DAYS = [1, 7, 30, 365];

export function Latency({ query, go }) {
  const params = new URLSearchParams(query);
  const group = GROUPS.includes(params.get("group")) ? params.get("group") : "tool";
  const days = DAYS.includes(Number(params.get("days"))) ? Number(params.get("days")) : 30;
  const { data, error, reload } = useAnswer(`latency?group=${group}&days=${days}`);
  useTitle("Latency");
  const choose = (name, values, now) => html`<span class="choice" role="group" aria-label=${name}>${values.map((value) => html`
    <button type="button" aria-pressed=${value === now} onClick=${() => go(`/latency?group=${name === "group" ? value : group}&days=${name === "days" ? value : days}`, { replace: true })}>${value}${name === "days" ? " d" : ""}</button>`)}</span>`;
  const most = Math.max(1, ...(data?.items ?? []).map((row) => row.p99_us));
  return page("Latency", error, reload, data, () => data.items.length === 0
    ? html`<p class="calm">No finished span in these days.</p>`
    : html`<table class="list"><thead><tr><th>${group}</th><th class="r">n</th><th class="r">p50</th><th class="r">p90</th><th class="r">p95</th><th class="r">p99</th><th class="r">max</th><th class="r">err</th><th class="wide">p50 – p99, logarithmic</th></tr></thead>
      <tbody>${data.items.map((row) => html`<tr key=${row.name}><td>${visible(row.name)}</td><td class="r num">${count(row.n)}</td>
        ${["p50_us", "p90_us", "p95_us", "p99_us", "max_us"].map((key) => html`<td class="r num">${duration(row[key])}</td>`)}
        <td class=${`r num ${row.errors ? "bad" : "dim"}`}>${row.errors ? `${((row.errors / row.n) * 100).toFixed(1)}%` : "–"}</td>
        <td class="wide"><${Range} row=${row} most=${most} /></td></tr>`)}</tbody></table>`,
  html`${choose("group", GROUPS, group)}${choose("days", DAYS, days)}`);
}

function Range({ row, most }) {
  const at = (us) => (Math.log2(Math.max(1, us / 1_000) + 1) / Math.log2(most / 1_000 + 2)) * 100;
  return html`<div class="range" aria-hidden="true"><i style=${{ left: `${at(row.p50_us)}%`, width: `${Math.max(0.5, at(row.p99_us) - at(row.p50_us))}%` }}></i></div>`;
}

const LIVE_MAX = 1_000;

export function LivePage() {
  const [rows, setRows] = useState(null);
  const [fresh, setFresh] = useState([]);
  const [paused, setPaused] = useState(false);
  const [error, setError] = useState(null);
  const hold = useRef(false);
  hold.current = paused;
  useTitle("Live");
  const load = () => get("spans?limit=200").then(({ items }) => {
    setError(null);
    if (hold.current) setFresh(items);
    else setRows((old) => upsert(old ?? [], items));
  }, setError);
  const soon = useMemo(() => throttle(load, 300), []);
  useEffect(() => { load(); }, []);
  useLive((event) => (event === "spans" || event === "resync") && soon(), []);
  const known = new Set(rows?.map((row) => row.id));
  const waiting = fresh.filter((row) => !known.has(row.id)).length;
  const resume = () => {
    setPaused(false);
    setRows((old) => upsert(old ?? [], fresh));
    setFresh([]);
  };
  return page("Live", error, load, rows, () => html`<table class="list"><thead><tr><th>time</th><th>kind</th><th class="wide">span</th><th class="r">duration</th><th>status</th></tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${row.id}><td class="num dim">${clock(row.start_us)}</td><td><i class=${`dot k-${row.kind}`}></i>${row.kind}</td>
      <td class="wide"><a class="blurry" href=${row.url}>${visible(row.label)}</a></td><td class="r num">${row.dur_us === null ? "open" : duration(row.dur_us)}</td>
      <td class=${row.status === "error" ? "bad" : "dim"}>${row.status === "error" ? "✕ failed" : row.status}</td></tr>`)}</tbody></table>`,
  html`<button type="button" aria-pressed=${paused} onClick=${() => (paused ? resume() : setPaused(true))}>${paused ? `resume (${waiting} new)` : "pause"}</button>`);
}

function upsert(old, items) {
  const fresh = new Map(items.map((row) => [row.id, row]));
  const kept = old.map((row) => {
    const newer = fresh.get(row.id);
    fresh.delete(row.id);
    return newer ?? row;
  });
  return [...fresh.values(), ...kept].sort((a, b) => b.row - a.row).slice(0, LIVE_MAX);
}

export function Health() {
  const { data, error, reload } = useAnswer("health");
  useTitle("Health");
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && reload(), 5_000);
    return () => clearInterval(timer);
  }, []);
  return page("Health", error, reload, data, () => html`
    ${!data.token_required && html`<p class="warning" role="note">▲ Started with --no-token: every account on this machine can read this port.</p>`}
    <dl class="tiles">
      <div><dt>journal behind</dt><dd>${bytes(data.journal.behind_bytes)}</dd></div>
      <div><dt>journal</dt><dd>${bytes(data.journal.bytes)} <small class="dim">${data.journal.segments} seg</small></dd></div>
      <div><dt>database</dt><dd>${bytes(data.db.bytes)}</dd></div>
      <div><dt>write-ahead log</dt><dd>${bytes(data.db.wal)}</dd></div>
      <div><dt>version</dt><dd>${data.version}</dd></div>
    </dl>
    <h2>Destinations</h2>
    ${data.exporters.length === 0 ? html`<p class="dim">None configured: nothing leaves this machine.</p>` : html`
    <table class="list"><thead><tr><th>name</th><th>endpoint</th><th>state</th><th class="r">last ok</th><th class="r">delivered</th><th class="r">queued</th><th class="r">lost</th><th class="wide">last error</th><th><span class="sr">action</span></th></tr></thead>
      <tbody>${data.exporters.map((one) => html`<${Exporter} key=${one.name} one=${one} reload=${reload} />`)}</tbody></table>`}
    <h2>Counters</h2>
    <dl class="counters">${Object.entries(data.counters).map(([name, n]) => html`<div><dt>${visible(name)}</dt><dd class="num">${n.toLocaleString("en")}</dd></div>`)}</dl>`);
}

const EXPORTER = { ok: ["✓", "good"], retry: ["↻", "warn"], paused: ["‖", "bad"], off: ["–", "dim"] };

function Exporter({ one, reload }) {
  const [icon, tone] = EXPORTER[one.state] ?? ["?", "dim"];
  const lost = Object.entries(one.lost).filter(([, n]) => n > 0);
  return html`<tr class=${tone === "bad" ? "row-bad" : ""}><td>${visible(one.name)}</td><td class="dim">${visible(one.endpoint_host)}</td>
    <td class=${tone}>${icon} ${visible(one.state)}</td><td class="r">${one.last_ok_us === null ? "never" : html`<${Age} since=${one.last_ok_us} suffix=" ago" />`}</td>
    <td class="r num">${one.delivered.toLocaleString("en")}</td><td class="r num">${one.queued.toLocaleString("en")}</td>
    <td class=${lost.length ? "r num bad" : "r dim"}>${lost.length ? lost.map(([name, n]) => `${name} ${n}`).join(", ") : "0"}</td>
    <td class="wide">${visible(one.last_error ?? "")}</td>
    <td>${(one.state === "paused" || one.state === "retry") && html`<button type="button" onClick=${() => post(`exporters/${enc(one.name)}/retry`, {}).then(reload)}>retry</button>`}</td></tr>`;
}

function useTitle(title) {
  useEffect(() => { document.title = `${title} · hookspan`; }, []);
}

function page(title, error, reload, data, body, tools) {
  return html`<div class="page"><header class="bar"><h1>${title}</h1>${tools && html`<div class="tools">${tools}</div>`}</header>
    ${error && html`<${Trouble} error=${error} reload=${reload} />`}
    ${data ? html`<div class="scroll">${body()}</div>` : !error && html`<${Loading} />`}</div>`;
}
