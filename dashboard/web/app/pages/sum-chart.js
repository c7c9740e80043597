// Stacked columns over a period. A drag over columns narrows the period, and so does a click on one.
/** @import { Chart } from "../../types/app" */
import { day } from "../format/local-days.js";
import { plural } from "../format/quantity.js";
import { visible } from "../format/text.js";
import { share } from "../trace/time-parts.js";
import { html, useRef, useState } from "../ui/html.js";
import { told } from "./sums.js";

/** @param {{ chart: Chart, onNarrow: (from: number, to: number) => void }} props */
export function Columns({ chart, onNarrow }) {
  const { columns, metric, currency, most } = chart;
  const [drag, setDrag] = useState(/** @type {[number, number] | null} */ (null));
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  if (chart.refused || !chart.known) {
    const why = metric === "cost" ? "No cost is known: set prices in the configuration, or no turn reported tokens." : metric === "tokens" ? "No turn reported tokens in this period." : "Nothing in this period.";
    return html`<p class="dim chart-none">${chart.refused ?? why}</p>`;
  }
  /** The column under the pointer. @param {PointerEvent} event */
  const at = (event) => {
    const box = list.current?.getBoundingClientRect();
    if (!box) return 0;
    return Math.max(0, Math.min(columns.length - 1, Math.floor(((event.clientX - box.left) / box.width) * columns.length)));
  };
  /** @param {PointerEvent} event */
  const down = (event) => {
    if (event.button !== 0) return;
    list.current?.setPointerCapture(event.pointerId);
    setDrag([at(event), at(event)]);
  };
  /** @param {PointerEvent} event */
  const move = (event) => drag && setDrag([drag[0], at(event)]);
  const up = () => {
    if (drag) onNarrow(columns[Math.min(...drag)].from, columns[Math.max(...drag)].to);
    setDrag(null);
  };
  const every = Math.ceil(columns.length / 10);
  const sum = chart.legend.reduce((all, one) => all + one.value, 0);
  return html`<div class="chart"><div class="chart-scale dim num" aria-hidden="true"><span>${told(most, metric, currency)}</span><span>${told(most / 2, metric, currency)}</span><span>0</span></div>
    <ol class="columns" ref=${list} onPointerDown=${down} onPointerMove=${move} onPointerUp=${up} onPointerCancel=${() => setDrag(null)}>${columns.map((one, i) => html`
      <li key=${one.from} class=${drag && i >= Math.min(...drag) && i <= Math.max(...drag) ? "column column-drag" : weekend(one) ? "column column-off" : "column"} title=${words(one, chart)}>
        <span class="column-bar" style=${{ height: `${((one.sum ?? 0) / Math.max(most, 1e-9)) * 100}%` }} aria-hidden="true">${one.parts.map((part) => html`<i class=${part.tone} style=${{ flexGrow: part.value }}></i>`)}</span>
        <span class="sr">${words(one, chart)}</span>${i % every === 0 && html`<span class="dim day-name" aria-hidden="true">${day(one.from).slice(5)}</span>`}</li>`)}</ol></div>
    <ul class="legend chart-legend">${chart.legend.map((one) => html`<li key=${one.tone}><i class=${`dot ${one.tone}`}></i><span class="blurry">${visible(one.name)}</span> <span class="num">${told(one.value, metric, currency)}</span> <span class="dim num">${share(one.value, sum)}</span></li>`)}</ul>`;
}

/** @param {Chart["columns"][number]} one */
function weekend({ from, to }) {
  return to - from < 2 * 86_400e6 && [0, 6].includes(new Date(from / 1_000).getDay());
}

/** A column in words. @param {Chart["columns"][number]} one @param {Chart} chart */
function words(one, { metric, currency }) {
  const last = day(one.to - 1);
  const when = last === day(one.from) ? last : `${day(one.from)} to ${last}`;
  if (!one.turns) return `${when}: nothing`;
  const parts = one.parts.toSorted((a, b) => b.value - a.value).slice(0, 5).map((part) => `${visible(part.name)} ${told(part.value, metric, currency)}`);
  return `${when}: ${told(one.sum, metric, currency)}, ${plural(one.turns, "turn")}${one.errors ? `, ${plural(one.errors, "error")}` : ""}${parts.length ? ` (${parts.join(", ")})` : ""}`;
}
