// A year as weeks of days: how much of something there was on each day.
/** @import { TimeColumn } from "../../types/answers" */
import { day } from "../format/local-days.js";
import { html, useLayoutEffect, useRef } from "../ui/html.js";
import { told, valueOf } from "./sums.js";

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const STEPS = 5;

/** Bounds between the shades: fifths of the days with a value, so that one long day does not make all others pale. Pure.
 * @param {number[]} values */
export function bounds(values) {
  const sorted = values.filter((value) => value > 0).sort((a, b) => a - b);
  return Array.from({ length: STEPS - 1 }, (_, i) => sorted[Math.floor(((i + 1) / STEPS) * sorted.length)] ?? Infinity);
}

/** @param {{ days: TimeColumn[], metric: string, from: number, to: number, onNarrow: (from: number, to: number) => void }} props */
export function Calendar({ days, metric, from, to, onNarrow }) {
  const values = days.map((one) => valueOf(one, metric) ?? 0);
  const edges = bounds(values);
  const busy = values.filter((value) => value > 0).length;
  const currency = days.find((one) => one.cost)?.cost?.currency ?? "";
  const now = Date.now() * 1_000;
  const host = useRef(/** @type {HTMLElement | null} */ (null));
  // On a phone the newest weeks are in view.
  useLayoutEffect(() => { if (host.current) host.current.scrollLeft = host.current.scrollWidth; }, [days.length]);
  /** @param {MouseEvent} event */
  const click = (event) => {
    const at = event.target instanceof HTMLElement ? Number(event.target.dataset.at ?? NaN) : NaN;
    if (days[at]) onNarrow(days[at].from_us, days[at].to_us);
  };
  const weeks = Math.ceil(days.length / 7);
  /** A month is named at its first whole week. */
  const months = Array.from({ length: weeks }, (_, week) => {
    const date = new Date((days[week * 7]?.from_us ?? 0) / 1_000);
    return date.getDate() <= 7 ? MONTHS[date.getMonth()] : "";
  });
  return html`<div class="year" ref=${host} tabIndex="0" role="region" aria-label="A year by day"><div class="year-months dim" aria-hidden="true">${months.map((month, week) => html`<span key=${week}>${month}</span>`)}</div>
    <div class="year-days" role="img" aria-label=${`${busy} of ${days.length} days have something`} onClick=${click}>${days.map((one, i) => html`<i key=${one.from_us} data-at=${i}
      class=${`shade-${values[i] > 0 ? 1 + edges.filter((edge) => values[i] >= edge).length : 0}${one.from_us >= from && one.to_us <= to ? " year-in" : ""}${one.from_us > now ? " year-later" : ""}`}
      title=${`${day(one.from_us)}: ${values[i] > 0 ? told(values[i], metric, currency) : "nothing"}`}></i>`)}</div>
    <p class="dim year-scale" aria-hidden="true">less ${[0, 1, 2, 3, 4, 5].map((shade) => html`<i class=${`shade-${shade}`}></i>`)} more</p></div>`;
}
