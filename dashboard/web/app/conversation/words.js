// What a row says in its one line. Pure.
/** @import { StepItem } from "../../types/conversation" */
/** @import { Script } from "./script.js" */
import { duration } from "../format/quantity.js";
import { visible } from "../format/text.js";
import { ERROR, OPEN, TENTATIVE, UNKNOWN, UNKNOWN_LENGTH } from "../trace/columns.js";
import { head } from "../trace/rows.js";

/** Members of a group that are named. */
const NAMED_MAX = 4;

/** The bold word, and its subject. @param {Script} script @param {number} i @returns {[label: string, subject: string]} */
export function title(script, i) {
  const { trace } = script;
  const label = trace.strs[trace.label[i]];
  const word = head(label);
  const rest = label.slice(word.length).replace(/^,? /, "");
  const group = script.groups.get(i);
  if (!group || group.open) return [visible(word), visible(rest)];
  const names = new Set();
  for (let k = i; k < group.last && names.size <= NAMED_MAX; k += 1) names.add(short(trace.strs[trace.label[k]]));
  const all = [...names].filter(Boolean);
  return [`${group.count} × ${visible(word)}`, visible(all.slice(0, NAMED_MAX).join(", ") + (all.length > NAMED_MAX ? ", …" : ""))];
}

/** The file name of a label that ends in a path. @param {string} label */
function short(label) {
  const rest = label.slice(head(label).length).replace(/^,? /, "");
  return /^[^\s]*[/\\][^\s/\\]+$/.test(rest) ? rest.slice(Math.max(rest.lastIndexOf("/"), rest.lastIndexOf("\\")) + 1) : rest;
}

/** The result, if it is worth a word. @param {Script} script @param {number} i @param {StepItem} [step] */
export function outcome({ trace }, i, step) {
  const kind = trace.kinds[trace.kind[i]];
  if (trace.status[i] === ERROR) return step?.exit_code != null && step.exit_code !== 0 ? `✕ exit ${step.exit_code}` : "✕ failed";
  if (trace.status[i] === OPEN) return kind === "turn" || kind === "subagent" || kind === "thinking" ? "running" : "running or waiting for approval";
  if (trace.status[i] === UNKNOWN) return "no end seen";
  return trace.flags[i] & TENTATIVE ? "link uncertain" : "";
}

/** The duration; for a group the sum. @param {Script} script @param {number} i */
export function length({ trace, groups, now }, i) {
  const group = groups.get(i);
  if (!group || group.open) {
    if (trace.flags[i] & UNKNOWN_LENGTH) return "?";
    if (trace.dur[i] === 0) return "";
    return trace.dur[i] < 0 ? `${duration(now - trace.start[i])} …` : duration(trace.dur[i]);
  }
  let sum = 0;
  for (let k = i; k < group.last; k += 1) if (!(trace.flags[k] & UNKNOWN_LENGTH)) sum += Math.max(0, trace.dur[k]);
  return `Σ ${duration(sum)}`;
}

/** `key: value` lines of a tool's input; the text itself if it is not an object. @param {string} text */
export function readableInput(text) {
  try {
    const value = JSON.parse(text);
    if (value === null || typeof value !== "object" || Array.isArray(value)) return text;
    return Object.entries(value).map(([key, one]) => `${key}: ${typeof one === "string" ? one : JSON.stringify(one)}`).join("\n");
  } catch {
    return text;
  }
}
