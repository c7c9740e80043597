// How long things take: percentiles per tool, model, kind or project, and when.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../ui/html.js";
import { count, date, duration } from "../format/quantity.js";
import { edges, grid, strength } from "./latency-grid.js";
import { visible } from "../format/text.js";
import { Choice, Page, SortHead, Trouble, useAnswer, useDays, useQuery, useTitle } from "../ui/pieces.js";

const GROUPS = ["tool", "model", "kind", "project"];
const DAYS = [1, 7, 30, 365];
const COLUMNS = ["total_us", "p50_us", "p90_us", "p95_us", "p99_us", "max_us"];

export function Latency({ query, go }) {
  const { params, set } = useQuery("/latency", query, go);
  const group = GROUPS.includes(params.get("group")) ? params.get("group") : "tool";
  const [days, choice] = useDays(DAYS, { params, set });
  const name = params.get("name");
  const sort = [...COLUMNS, "n", "errors"].includes(params.get("sort")) ? params.get("sort") : "n";
  const { data, error, reload } = useAnswer(`latency?group=${group}&days=${days}`, (event) => event === "spans" || event === "resync", 5_000);
  useTitle("Latency");
  const rows = useMemo(() => (data?.items ?? []).toSorted((a, b) => b[sort] - a[sort]), [data, sort]);
  const most = Math.max(1, ...rows.map((row) => row.p99_us));
  const head = (key, label) => html`<${SortHead} label=${label} now=${sort === key} sort=${() => set("sort", key)} />`;
  const tools = html`<${Choice} name="group" values=${GROUPS} now=${group} choose=${(value) => go(`/latency?group=${value}&days=${days}`, { replace: true })} />
    ${choice}`;
  return html`<${Page} title="Latency" tools=${tools} error=${error} reload=${reload} ready=${data}>${() => (rows.length === 0
    ? html`<${Nothing} older=${data.older} days=${days} now=${data.to_us} set=${set} />`
    : html`<${Heat} group=${group} days=${days} name=${name} go=${go} clear=${() => set("name", "")} />
      <table class="list numbers"><caption class="sr">Percentiles per ${group}, ${group === "model" ? "of turns" : "of calls"}</caption>
      <thead><tr><th>${group}</th>${head("n", "n")}${COLUMNS.map((key) => head(key, key.replace("_us", "")))}${head("errors", "err")}<th class="wide" aria-hidden="true">p50 ━ p90 ━ p99, logarithmic</th></tr></thead>
      <tbody>${rows.map((row) => html`<tr key=${row.name} class=${row.name === name ? "chosen" : ""}>
        <td><button type="button" class="link" aria-pressed=${row.name === name} title="Only this one in the heatmap" onClick=${() => set("name", row.name === name ? "" : row.name)}>${visible(row.name)}</button></td>
        <td class="r num">${count(row.n)}</td>
        ${COLUMNS.map((key) => html`<td class="r num">${duration(row[key])}</td>`)}
        <td class=${`r num ${row.errors ? "bad" : "dim"}`}>${row.errors ? `${((row.errors / row.n) * 100).toFixed(1)}%` : "–"}</td>
        <td class="wide"><${Range} row=${row} most=${most} /></td></tr>`)}</tbody></table>`)}<//>`;
}

// Nothing in the period, but a longer one may hold something.
function Nothing({ older, days, now, set }) {
  const enough = older && DAYS.find((one) => one > days && now - one * 86_400e6 <= older.last_us);
  return html`<p class="dim pad-y">No finished span in these days.${older && html` ${count(older.n)} ${older.n === 1 ? "is" : "are"} older, the newest of ${date(older.last_us).slice(0, 10)}.`}
    ${enough && html` <button type="button" onClick=${() => set("days", String(enough))}>show ${enough === 365 ? "a year" : `${enough} days`}</button>`}</p>`;
}

function Range({ row, most }) {
  const at = (us) => (Math.log2(Math.max(1, us / 1_000) + 1) / Math.log2(most / 1_000 + 2)) * 100;
  const bar = (from, to, name) => html`<i class=${name} style=${{ left: `${at(from)}%`, width: `${Math.max(0.5, at(to) - at(from))}%` }}></i>`;
  return html`<div class="range" aria-hidden="true">${bar(row.p50_us, row.p99_us, "range-99")}${bar(row.p50_us, row.p90_us, "range-90")}</div>`;
}

const CELL_PX = 13;
const LEFT_PX = 62;
const BELOW_PX = 20;

function Heat({ group, days, name, go, clear }) {
  const asked = `latency/heatmap?group=${group}&days=${days}${name ? `&name=${encodeURIComponent(name)}` : ""}`;
  const { data, error, reload } = useAnswer(asked, (event) => event === "spans" || event === "resync", 5_000);
  const canvas = useRef(null);
  const host = useRef(null);
  const [cell, setCell] = useState(null);
  const [width, setWidth] = useState(0);
  const [theme, setTheme] = useState(0);
  const heat = useMemo(() => (data ? grid(data) : null), [data]);
  useEffect(() => {
    const seen = new ResizeObserver(() => setWidth(host.current?.clientWidth ?? 0));
    seen.observe(host.current);
    const themed = new MutationObserver(() => setTheme((n) => n + 1));
    themed.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    return () => {
      seen.disconnect();
      themed.disconnect();
    };
  }, []);
  const step = heat ? Math.min(40, Math.max(2, (width - LEFT_PX - 4) / Math.max(1, heat.columns))) : 0;
  useLayoutEffect(() => {
    if (heat && width && heat.rows) paint(canvas.current, heat, data, step, cell);
  }, [heat, width, cell, theme]);
  const find = (event) => {
    const box = canvas.current.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - LEFT_PX) / step);
    const row = heat.rows - 1 - Math.floor((event.clientY - box.top) / CELL_PX);
    return column >= 0 && column < heat.columns && row >= 0 && row < heat.rows ? { column, row } : null;
  };
  const open = ({ column, row }) => {
    const [min, max] = edges(heat.buckets[row]);
    const from = data.from_us + column * data.step_us;
    const list = new URLSearchParams({ min_us: String(min), max_us: String(max), from_us: String(from), to_us: String(from + data.step_us) });
    if (name) list.set(group, name);
    go(`/search?${list}`);
  };
  const keys = (event) => {
    if (!heat) return;
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] ?? [0, 0];
    if (event.key === "Enter" && cell) open(cell);
    if (!dx && !dy) return;
    event.preventDefault();
    event.stopPropagation();
    const now = cell ?? { column: heat.columns, row: Math.floor(heat.rows / 2) };
    setCell({ column: Math.max(0, Math.min(heat.columns - 1, now.column + dx)), row: Math.max(0, Math.min(heat.rows - 1, now.row + dy)) });
  };
  const words = cell && heat && data ? describe(cell, heat, data) : `${name ? `${visible(name)} · ` : ""}stronger: more. Choose a cell to list its spans.`;
  return html`<section class="heat" aria-labelledby="heat">
    <h2 id="heat">When and how long${name ? html` · <span>${visible(name)}</span> <button type="button" class="link" onClick=${clear}>all</button>` : ""}</h2>
    ${error && error.status !== 404 && html`<${Trouble} error=${error} reload=${reload} />`}
    <div ref=${host} class="heat-host">${heat?.rows > 0 && html`<canvas ref=${canvas} tabIndex="0" role="img"
      aria-label=${`Heatmap of durations over ${days} days; the table below is its text. ${words}`}
      onPointerMove=${(e) => setCell(find(e))} onPointerLeave=${() => setCell(null)} onClick=${(e) => { const one = find(e); if (one && heat.at(one.column, one.row)) open(one); }} onKeyDown=${keys}></canvas>`}</div>
    <p class="dim heat-note" aria-live="off">${data && !heat?.rows ? "Nothing finished in these days." : words}</p></section>`;
}

function describe({ column, row }, heat, data) {
  const [min, max] = edges(heat.buckets[row]);
  const from = data.from_us + column * data.step_us;
  const n = heat.at(column, row);
  return `${date(from)} – ${date(from + data.step_us).slice(11)} · ${duration(min)} to ${duration(max)} · ${n} ${n === 1 ? "span" : "spans"}`;
}

function paint(canvas, heat, data, step, cell) {
  const ratio = Math.min(2, devicePixelRatio || 1);
  const width = LEFT_PX + step * heat.columns + 2;
  const height = heat.rows * CELL_PX + BELOW_PX;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const c = canvas.getContext("2d");
  const style = getComputedStyle(canvas);
  const color = (name) => style.getPropertyValue(name).trim();
  c.scale(ratio, ratio);
  c.font = `11px ${style.fontFamily}`;
  c.textBaseline = "middle";
  for (let row = 0; row < heat.rows; row += 1) {
    const y = (heat.rows - 1 - row) * CELL_PX;
    c.globalAlpha = 1;
    if (row % 2 === 0 || heat.rows < 10) {
      c.fillStyle = color("--dim");
      c.textAlign = "right";
      c.fillText(duration(edges(heat.buckets[row])[0]), LEFT_PX - 8, y + CELL_PX / 2);
    }
    for (let column = 0; column < heat.columns; column += 1) {
      const n = heat.at(column, row);
      c.globalAlpha = n ? strength(n, heat.most) : 1;
      c.fillStyle = color(n ? "--accent" : "--panel");
      c.fillRect(LEFT_PX + column * step, y, Math.max(1, step - (step > 4 ? 1 : 0)), CELL_PX - 1);
    }
  }
  c.globalAlpha = 1;
  c.fillStyle = color("--dim");
  c.textAlign = "left";
  let free = -Infinity;
  for (let column = 0; column < heat.columns; column += 1) {
    const x = LEFT_PX + column * step;
    const text = data.step_us >= 86_400e6 ? date(data.from_us + column * data.step_us).slice(5, 10) : date(data.from_us + column * data.step_us).slice(5);
    const wide = c.measureText(text).width;
    if (x < free || x + wide > width) continue;
    c.fillText(text, x, heat.rows * CELL_PX + 11);
    free = x + wide + 24;
  }
  if (cell) {
    c.strokeStyle = color("--text");
    c.lineWidth = 1.5;
    c.strokeRect(LEFT_PX + cell.column * step, (heat.rows - 1 - cell.row) * CELL_PX, step - 0.5, CELL_PX - 0.5);
  }
}
