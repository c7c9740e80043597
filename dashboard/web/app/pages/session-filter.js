// The filter of the session list: words, and `tool:`, `kind:`, `outcome:`, `tag:`, `dur>` and such terms. The address has a parameter for each.
// `project:`, `model:`, `state:` and `status:` may be typed, too; they move to their own fields.
import { OF_SESSION } from "../ui/limits.js";
import { UNIT_US } from "../trace/filter.js";

const TERM = /^(tool|kind|project|model|state|status|branch|outcome|tag|starred):(\S+)$/i;
/** Terms without fields of their own. */
const SHOWN = ["tool", "kind", ...OF_SESSION.filter((name) => name !== "outcome")];
const LONGER = /^dur>(\d+(?:\.\d+)?)(us|µs|ms|s|m|h)$/i;

/**
 * `params` with the terms of `text`. Terms with fields of their own change only if `text` names them.
 * @param {string} text @param {URLSearchParams} params
 */
export function readBar(text, params) {
  const words = [];
  for (const name of [...SHOWN, "min_us", "q", "cursor"]) params.delete(name);
  for (const term of text.trim().split(/\s+/)) {
    const [, name, value] = TERM.exec(term) ?? [];
    const [, number, unit] = LONGER.exec(term) ?? [];
    if (name) params.set(name.toLowerCase(), value);
    else if (number) params.set("min_us", String(Math.round(Number(number) * UNIT_US[unit.toLowerCase()])));
    else if (term) words.push(term);
  }
  if (words.length) params.set("q", words.join(" "));
  return params;
}

/** The text that means `params`. @param {URLSearchParams} params */
export function barText(params) {
  const out = [];
  const words = params.get("q");
  if (words) out.push(words);
  for (const name of SHOWN) if (params.get(name)) out.push(`${name}:${params.get(name)}`);
  const us = Number(params.get("min_us"));
  if (us > 0) out.push(`dur>${exact(us)}`);
  return out.join(" ");
}

/** A duration in the largest unit that divides it. @param {number} us */
function exact(us) {
  for (const unit of ["h", "m", "s", "ms"]) if (us % UNIT_US[unit] === 0) return `${us / UNIT_US[unit]}${unit}`;
  return `${us}us`;
}
