// Columns of the chart of Time and cost. Pure.
/** @import { Part, Chart } from "../../types/app" */
/** @import { TimeAnswer, TimeColumn } from "../../types/answers" */
import { cost, count, duration, tokenTotal } from "../format/quantity.js";
import { LABELS, PARTS, partUs } from "../trace/time-parts.js";

export const METRICS = ["time", "tokens", "cost"];
/** @type {Record<string, string>} */
export const NAMES = { time: "time", tokens: "tokens", cost: "cost" };

/** The metric of a column; null if it is unknown. @param {TimeColumn} one @param {string} metric */
export function valueOf(one, metric) {
  if (metric === "tokens") return tokenTotal({ input: one.input_tokens, output: one.output_tokens });
  if (metric === "cost") return one.cost ? one.cost.estimated : null;
  return one.active_us;
}

/** A value as text. @param {number | null} value @param {string} metric @param {string} currency */
export function told(value, metric, currency) {
  if (value === null) return "–";
  if (metric === "tokens") return `${count(value)} tok`;
  if (metric === "cost") return cost({ estimated: value, currency, unpriced_tokens: 0 });
  return duration(value);
}

/** @param {TimeAnswer} data @param {string} by @param {string} metric @returns {Chart} */
export function stack(data, by, metric) {
  const names = by === "model" ? data.models.map((one) => one.model ?? "not named") : data.items.map((one) => one.project ?? "no workspace");
  /** @param {TimeColumn} one @returns {Part[]} */
  const parts = (one) => {
    if (by === "kind") return PARTS.map((key) => ({ name: LABELS[key], tone: `k-${key}`, value: partUs(one.parts, key) }));
    return one.shares.map((part) => ({
      name: part.of === null ? "others" : names[part.of],
      tone: part.of === null ? "tone-rest" : `tone-${part.of}`,
      value: (metric === "tokens" ? part.tokens : metric === "cost" ? part.cost : part.active_us) ?? 0,
    }));
  };
  const refused = by === "kind" && metric !== "time" ? "Tokens are counted per turn, so a kind of work has none: choose project or model." : null;
  const columns = data.days.map((one) => ({
    from: one.from_us, to: one.to_us, turns: one.turns, errors: one.errors, sum: valueOf(one, metric),
    parts: refused ? [] : parts(one).filter(({ value }) => value > 0),
  }));
  /** @type {Map<string, Part>} */
  const legend = new Map();
  for (const part of columns.flatMap((one) => one.parts)) {
    const sum = legend.get(part.tone);
    if (sum) sum.value += part.value;
    else legend.set(part.tone, { ...part });
  }
  return {
    metric, columns, refused, currency: data.total.cost?.currency ?? "",
    legend: [...legend.values()].sort((a, b) => b.value - a.value),
    most: Math.max(0, ...columns.map((one) => one.sum ?? 0)),
    known: columns.some((one) => one.sum !== null && one.sum > 0),
  };
}
