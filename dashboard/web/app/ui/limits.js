// Filter words that come from a link and have no field on the page.
/** @import { QueryParams } from "../../types/app" */
import { html } from "./html.js";
import { duration } from "../format/quantity.js";
import { date } from "../format/time.js";
import { visible } from "../format/text.js";

/** Filter words that select by the session of a row. */
export const OF_SESSION = ["branch", "outcome", "tag", "starred"];
/** The words of `docs/figures.md`, as parameters. */
export const WORDS = ["tool", "kind", "model", "project", "status", ...OF_SESSION, "from_us", "to_us"];

/** Adds the filter words of the address to `asked`. @param {URLSearchParams} params @param {URLSearchParams} asked */
export function pass(params, asked) {
  for (const name of WORDS) {
    const value = params.get(name);
    if (value) asked.set(name, value);
  }
  return asked;
}

/** The filters of the page, each with a button that removes it. @param {QueryParams & { names: string[] }} props */
export function Limits({ params, set, names }) {
  /** @type {[text: string, names: string[]][]} */
  const shown = [];
  const min = Number(params.get("min_us"));
  const max = Number(params.get("max_us"));
  if (min || max) shown.push([`${min ? duration(min) : "0"} to ${max ? duration(max) : "any length"}`, ["min_us", "max_us"]]);
  const from = Number(params.get("from_us"));
  const to = Number(params.get("to_us"));
  if (from || to) shown.push([`${from ? date(from) : "ever"} to ${to ? date(to) : "now"}`, ["from_us", "to_us"]]);
  for (const name of names) if (params.get(name)) shown.push([`${name} ${visible(params.get(name))}`, [name]]);
  if (!shown.length) return null;
  return html`<p class="limits">${shown.map(([text, names]) => html`<span class="chip">${text}
    <button type="button" class="link" aria-label=${`Remove filter: ${text}`} onClick=${() => names.forEach((name) => set(name, ""))}>✕</button></span>`)}</p>`;
}
