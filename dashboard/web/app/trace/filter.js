// The filter bar of a session: words and `key:value` terms. A row must match all of them.
/** @import { Query, Trace } from "../../types/trace" */
import { ERROR, OK, OPEN, UNKNOWN, UNKNOWN_LENGTH } from "./columns.js";

/**
 * `kind:shell status:error dur>2s cargo test` as a query; null if the text asks for nothing.
 * @param {string} text @returns {Query | null}
 */
export function parse(text) {
  /** @type {Query} */
  const query = { words: [], kind: null, status: null, minUs: null, maxUs: null };
  for (const term of text.trim().split(/\s+/)) {
    const [, key, value] = /^(kind|status|tool):(.+)$/i.exec(term) ?? [];
    const [, sign, number, unit] = /^dur([<>])(\d+(?:\.\d+)?)(us|µs|ms|s|m|h)$/i.exec(term) ?? [];
    if (key === "kind" || key === "KIND") query.kind = value.toLowerCase();
    else if (key === "status") query.status = value.toLowerCase();
    else if (key === "tool") query.words.push(value.toLowerCase());
    else if (sign) query[sign === ">" ? "minUs" : "maxUs"] = Number(number) * UNIT_US[unit.toLowerCase()];
    else if (term) query.words.push(term.toLowerCase());
  }
  const empty = !query.words.length && !query.kind && !query.status && query.minUs === null && query.maxUs === null;
  return empty ? null : query;
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
  let count = 0;
  for (let i = 0; i < trace.n; i += 1) {
    if (!label[trace.label[i]] || !kind[trace.kind[i]]) continue;
    if (query.status && trace.status[i] !== status) continue;
    if ((query.minUs !== null || query.maxUs !== null) && trace.flags[i] & UNKNOWN_LENGTH) continue;
    if (query.minUs !== null && !(trace.dur[i] > query.minUs)) continue;
    if (query.maxUs !== null && !(trace.dur[i] >= 0 && trace.dur[i] < query.maxUs)) continue;
    hit[i] = 1;
    count += 1;
  }
  return { hit, count };
}
