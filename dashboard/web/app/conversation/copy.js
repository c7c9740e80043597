// A turn as Markdown: the prompt, a line per action, edits as diffs, and the answer. Pure.
/** @import { StepItem } from "../../types/conversation" */
/** @import { Script } from "./script.js" */
import { duration } from "../format/quantity.js";
import { moment } from "./prompt.js";
import { outcome } from "./words.js";

/** Rows of a turn that are copied. */
export const COPY_ROWS = 2_000;

/** The spans of a turn whose text is copied. @param {Script} script @param {number} top */
export function copied({ trace }, top) {
  const rows = [];
  for (let i = top; i < trace.last[top] && rows.length < COPY_ROWS; i += 1) rows.push(i);
  return rows;
}

/** @param {Script} script @param {number} top @param {(row: number) => StepItem | undefined} step */
export function asMarkdown(script, top, step) {
  const { trace } = script;
  const out = [];
  const rows = copied(script, top);
  for (const i of rows) {
    const known = step(trace.row[i]);
    const form = script.form(i);
    if (script.delegates(i)) continue;
    // A turn's first text is its prompt, an answer's is the answer.
    const text = known?.texts.map((one) => one.text).find(Boolean);
    if (form === "prompt") out.push(`## You, ${moment(trace.start[i] + trace.t0)}\n\n${quoted(text ?? "not stored")}`);
    else if (form === "answer") out.push(text ?? "*(the answer is not stored)*");
    else if (form === "thought") out.push(`*thought:* ${oneLine(text ?? "not stored")}`);
    else out.push(call(script, i, known));
  }
  if (trace.last[top] - top > rows.length) out.push(`*${trace.last[top] - top - rows.length} more rows are left out*`);
  return `${out.join("\n\n")}\n`;
}

/** @param {Script} script @param {number} i @param {StepItem | undefined} known */
function call(script, i, known) {
  const { trace } = script;
  // The trace's label may hold secrets; the answer for a copy has it redacted.
  const label = known?.label ?? trace.kinds[trace.kind[i]];
  const words = [trace.dur[i] > 0 ? duration(trace.dur[i]) : "", outcome(script, i, known)].filter(Boolean).join(", ");
  const line = `${"  ".repeat(script.level[i])}- ${code(oneLine(label))}${words ? ` (${words})` : ""}`;
  const lines = known?.edit?.hunks.flatMap((hunk) => hunk.lines.map(({ op, text }) => op + text)) ?? [];
  const output = known?.message != null ? known.texts.find((one) => one.part === "output" || one.part === "error")?.text ?? known.message : "";
  if (lines.length) return `${line}\n\n${fenced(lines.join("\n"), "diff")}`;
  return output ? `${line}\n\n${fenced(output, "")}` : line;
}

/** @param {string} text */
const oneLine = (text) => text.replace(/\s+/g, " ").trim();

/** @param {string} text */
const quoted = (text) => text.split("\n").map((line) => `> ${line}`.trimEnd()).join("\n");

/** The longest run of backticks in a text. @param {string} text */
const ticks = (text) => Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length));

/** A text between fences that it does not contain. @param {string} text @param {string} lang */
function fenced(text, lang) {
  const fence = "`".repeat(Math.max(3, ticks(text) + 1));
  return `${fence}${lang}\n${text.replace(/\n$/, "")}\n${fence}`;
}

/** @param {string} text */
function code(text) {
  const fence = "`".repeat(ticks(text) + 1);
  const pad = text.startsWith("`") || text.endsWith("`") ? " " : "";
  return `${fence}${pad}${text}${pad}${fence}`;
}
