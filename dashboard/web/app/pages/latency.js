// How long things take: percentiles per tool, model, kind or project, and a heatmap over time.
/** @import { Answer, Heatmap, LatencyRow } from "../../types/answers" */
/** @import { Go, PageProps, QueryParams } from "../../types/app" */
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../ui/html.js";
import { count, duration } from "../format/quantity.js";
import { columns } from "../format/local-days.js";
import { date } from "../format/time.js";
import { edges, grid, strength } from "./latency-grid.js";
import { visible } from "../format/text.js";
import { saveCsv } from "../ui/csv.js";
import { Choice, useQuery, useSort } from "../ui/fields.js";
import { Limits, WORDS, pass } from "../ui/limits.js";
import { Page, Trouble, useTitle } from "../ui/page.js";
import { useRange } from "../ui/range.js";
import { colors, onTheme } from "../ui/theme.js";
import { useAnswer } from "../ui/use-answer.js";
import { sheet } from "../ui/sheet.js";

await sheet("pages");

const GROUPS = ["tool", "model", "kind", "project"];
const COLUMNS = /** @type {const} */ (["total_us", "p50_us", "p90_us", "p95_us", "p99_us", "max_us"]);
const SORTS = /** @type {const} */ ([...COLUMNS, "n", "errors"]);

/** Filter words without the period, which has a text of its own. */
const NAMED = WORDS.filter((word) => !word.endsWith("_us"));

/** @typedef {ReturnType<typeof grid>} Grid */
/** @typedef {{ column: number, row: number }} Cell */

/** @param {PageProps} props */
export function Latency({ query, go }) {
  const { params, set } = useQuery("/latency", query, go);
  const group = GROUPS.find((one) => one === params.get("group")) ?? "tool";
  const range = useRange({ params, set });
  const { days } = range;
  const name = params.get("name");
  const asked = pass(params, new URLSearchParams({ group }));
  for (const [name, value] of Object.entries(range.asked)) asked.set(name, value);
  const { sort: asking, order, head } = useSort({ params, set }, "n");
  const sort = SORTS.find((one) => one === asking) ?? "n";
  const { data, error, reload } = useAnswer(`latency?${asked}`, (event) => event === "spans" || event === "resync", 5_000);
  useTitle("Latency");
  const rows = useMemo(() => (data?.items ?? []).toSorted((a, b) => ((b[sort] ?? -1) - (a[sort] ?? -1)) * (order === "asc" ? -1 : 1)), [data, sort, order]);
  const most = Math.max(1, ...rows.map((row) => row.p99_us ?? 0));
  const tools = html`<${Choice} name="group" values=${GROUPS} now=${group} choose=${(/** @type {string} */ value) => set({ group: value, name: "" })} />
    ${range.control}<button type="button" disabled=${!rows.length} onClick=${() => saveCsv("latency", [group, "calls", "errors", ...COLUMNS.map((key) => `${key.slice(0, -3)} seconds`)], rows.map((row) => [row.name, row.n, row.errors, ...COLUMNS.map((key) => row[key] === null ? null : Number(row[key]) / 1e6)]))}>CSV</button>`;
  return html`<${Page} title="Latency" tools=${tools} error=${error} reload=${reload} ready=${data}>${() => data && html`<${Limits} params=${range.without(params)} set=${set} names=${NAMED} />
    ${data.from_us < range.from && html`<p class="dim">Counted from ${date(data.from_us)}: a part of that UTC day has too many spans.</p>`}${rows.length === 0
    ? html`<${Nothing} older=${data.older} days=${days} set=${set} narrowed=${NAMED.some((word) => params.get(word))} />`
    : html`<${Heat} group=${group} days=${days} asked=${asked} cut=${columns(range.from, range.to, days <= 7 ? 1 / 24 : days <= 30 ? 0.25 : days <= 120 ? 1 : 7)} name=${name} go=${go} clear=${() => set("name", "")} />
      <table class="list numbers"><caption class="sr">Percentiles per ${group}, ${group === "model" ? "of turns" : "of calls"}</caption>
      <thead><tr><th>${group}</th>${head("n", "count")}${COLUMNS.map((key) => head(key, key.replace("_us", "")))}${head("errors")}<th class="wide" aria-hidden="true">p50 ━ p90 ━ p99, logarithmic</th></tr></thead>
      <tbody>${rows.map((row) => html`<tr key=${row.name} class=${row.name === name ? "chosen" : ""}>
        <td><button type="button" class="link" aria-pressed=${row.name === name} title="Only this one in the heatmap" onClick=${() => set("name", row.name === name ? "" : row.name)}>${visible(row.name)}</button></td>
        <td class="r num">${count(row.n)}</td>
        ${COLUMNS.map((key) => html`<td class="r num">${row[key] === null ? "?" : duration(row[key])}</td>`)}
        <td class=${`r num ${row.errors ? "bad" : "dim"}`}>${row.errors ? `${((row.errors / row.n) * 100).toFixed(1)}%` : "–"}</td>
        <td class="wide">${row.p99_us && html`<${Range} row=${row} most=${most} />`}</td></tr>`)}</tbody></table>`}`}<//>`;
}

/**
 * Says that the period is empty, and offers a longer one that is not.
 * @param {{ older: Answer<"latency">["older"], days: number, set: QueryParams["set"], narrowed: boolean }} props
 */
function Nothing({ older, days, set, narrowed }) {
  if (narrowed) return html`<p class="dim pad-y">No finished span matches. Remove a filter.</p>`;
  const enough = older && [7, 30, 90, 365].find((one) => one > days && Date.now() * 1_000 - one * 86_400e6 <= older.last_us);
  return html`<p class="dim pad-y">No finished span in these days.${older && html` ${count(older.n)} ${older.n === 1 ? "is" : "are"} older, the newest of ${date(older.last_us).slice(0, 10)}.`}
    ${enough && html` <button type="button" onClick=${() => set({ days: String(enough), from_us: "", to_us: "" })}>show ${enough === 365 ? "a year" : `${enough} days`}</button>`}</p>`;
}

/** @param {{ row: LatencyRow, most: number }} props */
function Range({ row: { p50_us, p90_us, p99_us }, most }) {
  /** @param {number | null} us */
  const at = (us) => (Math.log2(Math.max(1, (us ?? 0) / 1_000) + 1) / Math.log2(most / 1_000 + 2)) * 100;
  /** @param {number | null} from @param {number | null} to @param {string} name */
  const bar = (from, to, name) => html`<i class=${name} style=${{ left: `${at(from)}%`, width: `${Math.max(0.5, at(to) - at(from))}%` }}></i>`;
  return html`<div class="range" aria-hidden="true">${bar(p50_us, p99_us, "range-99")}${bar(p50_us, p90_us, "range-90")}</div>`;
}

/** @type {Record<string, [number, number]>} */
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const CELL_PX = 13;
const LEFT_PX = 62;
const BELOW_PX = 20;

/** @param {{ group: string, days: number, asked: URLSearchParams, cut: string, name: string | null, go: Go, clear: () => void }} props */
function Heat({ group, days, asked, cut, name, go, clear }) {
  const { data, error, reload } = useAnswer(`latency/heatmap?${asked}&columns=${cut}${name ? `&name=${encodeURIComponent(name)}` : ""}`, (event) => event === "spans" || event === "resync", 5_000);
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const host = useRef(/** @type {HTMLElement | null} */ (null));
  const [cell, setCell] = useState(/** @type {Cell | null} */ (null));
  const [width, setWidth] = useState(0);
  const [theme, setTheme] = useState(0);
  const heat = useMemo(() => (data ? grid(data) : null), [data]);
  useEffect(() => {
    const seen = new ResizeObserver(() => setWidth(host.current?.clientWidth ?? 0));
    if (host.current) seen.observe(host.current);
    const stop = onTheme(() => setTheme((n) => n + 1));
    return () => {
      seen.disconnect();
      stop();
    };
  }, []);
  const step = heat ? Math.min(40, Math.max(2, (width - LEFT_PX - 4) / Math.max(1, heat.columns))) : 0;
  useLayoutEffect(() => {
    if (heat && data && canvas.current && width && heat.rows) paint(canvas.current, heat, data, step, cell);
  }, [heat, width, cell, theme]);
  /** @param {MouseEvent} event @returns {Cell | null} */
  const find = (event) => {
    if (!canvas.current || !heat) return null;
    const box = canvas.current.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - LEFT_PX) / step);
    const row = heat.rows - 1 - Math.floor((event.clientY - box.top) / CELL_PX);
    return column >= 0 && column < heat.columns && row >= 0 && row < heat.rows ? { column, row } : null;
  };
  /** @param {Cell} cell */
  const open = ({ column, row }) => {
    if (!heat || !data) return;
    const [min, max] = edges(heat.buckets[row]);
    const list = pass(asked, new URLSearchParams({ min_us: String(min), max_us: String(max) }));
    list.set("from_us", String(data.edges_us[column]));
    list.set("to_us", String(data.edges_us[column + 1] - 1));
    if (name) list.set(group, name);
    go(`/search?${list}`);
  };
  /** @param {MouseEvent} event */
  const choose = (event) => {
    const one = find(event);
    if (one && heat?.at(one.column, one.row)) open(one);
  };
  /** @param {KeyboardEvent} event */
  const keys = (event) => {
    if (!heat) return;
    const [dx, dy] = STEPS[event.key] ?? [0, 0];
    if (event.key === "Enter" && cell) open(cell);
    if (!dx && !dy) return;
    event.preventDefault();
    event.stopPropagation();
    if (!cell) {
      const begun = data?.edges_us.findLastIndex((at) => at <= Date.now() * 1_000) ?? 0;
      return setCell({ column: Math.max(0, Math.min(heat.columns - 1, begun)), row: Math.floor(heat.rows / 2) });
    }
    const now = cell;
    setCell({ column: Math.max(0, Math.min(heat.columns - 1, now.column + dx)), row: Math.max(0, Math.min(heat.rows - 1, now.row + dy)) });
  };
  const words = cell && heat && data ? describe(cell, heat, data) : `${name ? `${visible(name)} · ` : ""}stronger colour = more calls. Choose a cell to list its spans.`;
  return html`<section class="heat" aria-labelledby="heat">
    <h2 id="heat">When and how long${name ? html` · <span>${visible(name)}</span> <button type="button" class="link" onClick=${clear}>all</button>` : ""}</h2>
    ${error && error.status !== 404 && html`<${Trouble} error=${error} reload=${reload} />`}
    <div ref=${host} class="heat-host">${heat && heat.rows > 0 && html`<canvas ref=${canvas} tabIndex="0" role="img"
      aria-label=${`Heatmap of durations over ${days} days; the table below is its text. ${words}`}
      onPointerMove=${(/** @type {MouseEvent} */ event) => setCell(find(event))} onPointerLeave=${() => setCell(null)} onClick=${choose} onKeyDown=${keys}></canvas>`}</div>
    <p class="dim heat-note" aria-live="off">${data && !heat?.rows ? "Nothing finished in these days." : words}</p></section>`;
}

/** @param {Cell} cell @param {Grid} heat @param {Heatmap} data */
function describe({ column, row }, heat, data) {
  const [min, max] = edges(heat.buckets[row]);
  const n = heat.at(column, row);
  return `${date(data.edges_us[column])} – ${date(data.edges_us[column + 1]).slice(data.step_us > 86_400e6 ? 0 : 11)} · ${duration(min)} to ${duration(max)} · ${n} ${n === 1 ? "span" : "spans"}`;
}

/** @param {HTMLCanvasElement} canvas @param {Grid} heat @param {Heatmap} data @param {number} step @param {Cell | null} cell */
function paint(canvas, heat, data, step, cell) {
  const ratio = Math.min(2, devicePixelRatio || 1);
  const width = LEFT_PX + step * heat.columns + 2;
  const height = heat.rows * CELL_PX + BELOW_PX;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const c = canvas.getContext("2d");
  if (!c) return;
  const color = colors(canvas);
  c.scale(ratio, ratio);
  c.font = `11px ${getComputedStyle(canvas).fontFamily}`;
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
    const text = date(data.edges_us[column]).slice(5, data.step_us >= 21_600e6 ? 10 : undefined);
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
