// The filter bar of a session: words and `key:value` terms. A row must match all of them, and none of the terms that
// begin with a minus.
/** @import { Query, Trace } from "../../types/trace" */
import { ERROR, OK, OPEN, UNKNOWN, UNKNOWN_LENGTH } from "./columns.js";

const TERM = /^(-?)(kind|status|tool):(.+)$/i;

/**
 * `kind:shell -status:ok dur>2s cargo test` as a query; null if the text asks for nothing.
 * @param {string} text @returns {Query | null}
 */
export function parse(text) {
  const query = blank();
  for (const term of text.trim().split(/\s+/)) {
    const [, minus, key = "", value = ""] = TERM.exec(term) ?? [];
    const [, sign, number, unit] = /^dur([<>])(\d+(?:\.\d+)?)(us|µs|ms|s|m|h)$/i.exec(term) ?? [];
    const into = minus ? blank() : query;
    if (minus) query.without.push(into);
    if (/kind/i.test(key)) into.kind = value.toLowerCase();
    else if (/status/i.test(key)) into.status = value.toLowerCase();
    else if (key) into.words.push(value.toLowerCase());
    else if (sign) query[sign === ">" ? "minUs" : "maxUs"] = Number(number) * UNIT_US[unit.toLowerCase()];
    else if (term) query.words.push(term.toLowerCase());
  }
  const empty = !query.words.length && !query.kind && !query.status && query.minUs === null && query.maxUs === null && !query.without.length;
  return empty ? null : query;
}

/** @returns {Query} */
const blank = () => ({ words: [], kind: null, status: null, minUs: null, maxUs: null, without: [] });

/** The text with a term added, and without the opposite of it. @param {string} text @param {string} term */
export function withTerm(text, term) {
  const opposite = term.startsWith("-") ? term.slice(1) : `-${term}`;
  return [...text.split(/\s+/).filter((one) => one && one !== term && one !== opposite), term].join(" ");
}

/** Units of a duration, microseconds. @type {Record<string, number>} */
export const UNIT_US = { us: 1, "µs": 1, ms: 1e3, s: 1e6, m: 60e6, h: 3_600e6 };

/** @type {Record<string, number>} */
const STATUS = { ok: OK, error: ERROR, open: OPEN, unknown: UNKNOWN };

/**
 * Which rows of a trace match. Each distinct label is checked once.
 * @param {Trace} trace @param {Query} query
 */
export function matches(trace, query) {
  const hit = new Uint8Array(trace.n);
  const label = trace.strs.map((text) => {
    const lower = text.toLowerCase();
    return query.words.every((word) => lower.includes(word));
  });
  const kind = trace.kinds.map((name) => !query.kind || name.startsWith(query.kind));
  const status = STATUS[query.status ?? ""];
  const without = query.without.map((one) => matches(trace, one).hit);
  let count = 0;
  for (let i = 0; i < trace.n; i += 1) {
    if (!label[trace.label[i]] || !kind[trace.kind[i]]) continue;
    if (query.status && trace.status[i] !== status) continue;
    if ((query.minUs !== null || query.maxUs !== null) && trace.flags[i] & UNKNOWN_LENGTH) continue;
    if (query.minUs !== null && !(trace.dur[i] > query.minUs)) continue;
    if (query.maxUs !== null && !(trace.dur[i] >= 0 && trace.dur[i] < query.maxUs)) continue;
    if (without.some((not) => not[i])) continue;
    hit[i] = 1;
    count += 1;
  }
  return { hit, count };
}
