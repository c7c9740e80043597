// What a row shows below its line: an answer, a diff, a tool's input and output. Payload text only becomes text nodes.
/** @import { StepEdit, StepItem, StepText } from "../../types/conversation" */
/** @import { Script } from "./script.js" */
import { runs } from "../format/ansi.js";
import { bytes, plural } from "../format/quantity.js";
import { visible } from "../format/text.js";
import { make } from "../waterfall/dom.js";
import { rendered } from "./markdown-dom.js";
import { readableInput } from "./words.js";

/** Lines of a failed call shown at first. */
const BRIEF_LINES = 8;
/** Characters of one line that are drawn. */
const LINE_MAX = 2_000;

/** The body of a row; null if there is nothing to show. @param {Script} script @param {number} i @param {StepItem | undefined} step */
export function bodyOf(script, i, step) {
  const form = script.form(i);
  if (!step) return form === "prompt" || form === "answer" ? waiting(script, i) : note("…");
  const failed = step.message !== null;
  const whole = script.isWhole(i);
  const box = make("div", "cv-body");
  const texts = step.texts.filter((text) => isOf(form, text.part, whole, failed));
  if (step.edit) box.append(...changes(step.edit, whole));
  // A shell's output tells more than the message made from its exit code.
  const told = texts.some((text) => text.text && (text.part === "output" || text.part === "error"));
  if (failed && !told) box.append(failure(step.message ?? "failed"));
  for (const text of texts) box.append(...content(text, form, failed && !whole));
  if (!box.childNodes.length) box.append(note("nothing more is stored"));
  if (step.file_url) box.append(page(step.file_url));
  return box;
}

/** The way to the page of the file. @param {string} url */
function page(url) {
  const link = /** @type {HTMLAnchorElement} */ (make("a", "cv-file"));
  link.href = url;
  link.textContent = "who read and changed this file";
  return link;
}

/**
 * Whether a row's body shows this part. A prompt's row shows only the prompt, because the answer has a row of its own. A subagent's
 * task is in its line already. The input of a failed call is shown only on request.
 * @param {string} form @param {string} part @param {boolean} whole @param {boolean} failed
 */
function isOf(form, part, whole, failed) {
  if (form === "prompt") return part === "prompt";
  if (form === "agent") return whole || part !== "task";
  return whole || form !== "call" || !failed || part !== "input";
}

/** Shown until the text arrives: what the row knows already. @param {Script} script @param {number} i */
function waiting(script, i) {
  const box = make("div", "cv-body cv-waiting blurry");
  box.textContent = script.form(i) === "prompt" ? visible(script.trace.strs[script.trace.label[i]]) : "…";
  return box;
}

/** @param {string} text */
function note(text) {
  const line = make("p", "dim cv-note");
  line.textContent = text;
  return line;
}

/** @param {string} message */
function failure(message) {
  const box = make("pre", "cv-text cv-failed blurry");
  box.textContent = visible(message);
  return box;
}

/** @param {StepText} text @param {string} form @param {boolean} brief @returns {HTMLElement[]} */
function content(text, form, brief) {
  if (text.text === null) return [note(`${text.title.toLowerCase()}: not stored`)];
  if (text.text === "") return form === "call" && !brief ? [note(`${text.title.toLowerCase()}: empty`)] : [];
  if (form === "prompt") return [plain(text, "cv-say"), ...rest(text, text.text)];
  if (form === "answer" || form === "thought" || form === "agent") return [rendered(text.text), ...rest(text, text.text)];
  if (text.part === "input") return [plain({ ...text, text: readableInput(text.text) }, "cv-text cv-input"), ...rest(text, text.text)];
  const lines = text.text.split("\n").map((line) => line.slice(0, LINE_MAX));
  const shown = brief ? lines.slice(0, BRIEF_LINES) : lines;
  const box = make("pre", brief ? "cv-text cv-failed blurry" : "cv-text blurry");
  for (const { text: part, bold, color } of runs(shown.join("\n").trimEnd())) {
    const run = make("span", `${bold ? "b " : ""}${color === null ? "" : `c${color}`}`);
    run.textContent = part;
    box.append(run);
  }
  return [box, ...rest(text, shown.join("\n"))];
}

/** @param {StepText} text @param {string} name */
function plain(text, name) {
  const box = make("pre", `${name} blurry`);
  box.textContent = visible(text.text ?? "");
  return box;
}

/** How much of a text is hidden, and where the rest is. @param {StepText} text @param {string} shown @returns {HTMLElement[]} */
function rest(text, shown) {
  const lines = shown.split("\n").length;
  if (!text.cut && lines >= text.lines) return [];
  const more = /** @type {HTMLButtonElement} */ (make("button", "link cv-more"));
  more.type = "button";
  more.textContent = text.lines > lines ? `all ${plural(text.lines, "line")}` : `all ${bytes(text.bytes)}`;
  if (text.before > 0) more.textContent += `; ${plural(text.before, "line")} before`;
  return [more];
}

/** @param {StepEdit} edit @param {boolean} whole @returns {HTMLElement[]} */
function changes({ hunks, left, summary, redacted, added, removed }, whole) {
  if (redacted) return [note("the text of this change is not stored")];
  if (summary) return [note(`too large to compare: ${added} lines in, ${removed} lines out`)];
  if (!hunks.length) return [note("no lines differ")];
  const box = make("div", "cv-diff blurry");
  box.title = "Line numbers are relative to the text of the change";
  for (const hunk of hunks) {
    if (box.childNodes.length) box.append(make("div", "cv-gap"));
    box.append(...hunkLines(hunk, whole));
  }
  return left ? [box, note(`${plural(left, "line")} more`)] : [box];
}

/** @param {StepEdit["hunks"][number]} hunk @param {boolean} whole with the lines around the change */
function hunkLines(hunk, whole) {
  let old = hunk.old_line;
  let now = hunk.new_line;
  const out = [];
  for (const { op, text } of hunk.lines) {
    const number = op === "-" ? old : now;
    if (op !== "+") old += 1;
    if (op !== "-") now += 1;
    if (op === " " && !whole) continue;
    const line = make("div", op === "+" ? "ins" : op === "-" ? "del" : "same");
    const at = make("span", "cv-line");
    at.textContent = String(number);
    const mark = make("span", op === "+" ? "good" : "bad");
    mark.textContent = op === "-" ? "−" : op;
    const words = make("span", "");
    words.textContent = visible(text.slice(0, LINE_MAX));
    line.append(at, mark, words);
    out.push(line);
  }
  return out;
}
