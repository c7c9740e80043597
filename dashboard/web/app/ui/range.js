// The period that a page shows: one control for all pages. It is in the address, and goes along to the next page.
/** @import { QueryParams, Range, View } from "../../types/app" */
import { day, daysBetween, midnight } from "../format/local-days.js";
import { Choice } from "./fields.js";
import { html, useLayoutEffect } from "./html.js";
import { bind } from "./keys.js";
import { read, write } from "./local-storage.js";

const DAYS = [1, 7, 30, 90, 365];
/** @type {Record<number, string>} */
const WORDS = { 0: "all", 1: "today", 365: "1 y" };

/**
 * The period of the address, else the one that was chosen last, else the last `first` days. With `all`, everything can be chosen.
 * @param {QueryParams} query @param {{ first?: number, all?: boolean }} [options] @returns {Range}
 */
export function useRange({ params, set }, { first = 30, all = false } = {}) {
  const now = Date.now() * 1_000;
  const given = [Number(params.get("from_us")), Number(params.get("to_us"))];
  const fixed = given[0] > 0 && given[1] > given[0];
  const kept = params.get("days") ?? read("hookspan.days");
  const asked = kept === null ? NaN : Number(kept);
  const valid = DAYS.includes(asked) || (all && asked === 0);
  const days = fixed ? Math.max(1, daysBetween(midnight(given[0]), midnight(given[1] - 1, 1))) : valid ? asked : first;
  const from = fixed ? given[0] : days ? midnight(now, 1 - days) : 0;
  const to = fixed ? given[1] : midnight(now, 1);
  /** @param {number} value */
  const choose = (value) => {
    write("hookspan.days", String(value));
    set({ days: String(value), from_us: "", to_us: "" });
  };
  /** Moves the period by its own length. @param {number} side */
  const shift = (side) => {
    const [start, end] = [midnight(from, side * days), midnight(to - 1, side * days + 1)];
    if (start >= midnight(now, 1)) return;
    set({ days: "", from_us: String(start), to_us: String(end) });
  };
  const values = all ? [...DAYS, 0] : DAYS;
  const next = values[(values.indexOf(fixed ? -1 : days) + 1) % values.length];
  useLayoutEffect(() => bind({ t: () => choose(next), ...(days ? { "<": () => shift(-1), ">": () => shift(1) } : {}) }), [days, from, to]);
  const label = days === 0 ? "everything" : days === 1 ? day(from) : `${day(from)} – ${day(to - 1)}`;
  const control = html`<span class="range-pick">
    <button type="button" aria-label="earlier (<)" title="earlier (<)" disabled=${!days} onClick=${() => shift(-1)}>‹</button>
    <span class="num">${label}</span>
    <button type="button" aria-label="later (>)" title="later (>)" disabled=${!days || midnight(to - 1, 1) > now} onClick=${() => shift(1)}>›</button>
    <${Choice} name="period (t)" values=${values} now=${fixed ? -1 : days} choose=${choose} word=${(/** @type {number} */ n) => WORDS[n] ?? `${n} d`} /></span>`;
  /** @type {Record<string, string>} */
  const period = days ? { from_us: String(from), to_us: String(to - 1) } : {};
  /** The parameters without the period, which has a control of its own. @param {URLSearchParams} all */
  const without = (all) => new URLSearchParams([...all].filter(([name]) => name !== "from_us" && name !== "to_us"));
  return { from, to, days, asked: period, control, without };
}
