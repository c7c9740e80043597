// The row of a prompt: its time, where the turn's time went, and the ruler for the turn's bars.
/** @import { Turn } from "../../types/answers" */
/** @import { Step } from "../../types/conversation" */
/** @import { Script } from "./script.js" */
import { cost, count, duration, plural, tokenTotal } from "../format/quantity.js";
import { clock, date } from "../format/time.js";
import { visible } from "../format/text.js";
import { endOf } from "../trace/rows.js";
import { LABELS, mix, share, sums } from "../trace/time-parts.js";
import { axis, ticks } from "../waterfall/axis.js";
import { make, setHidden, setText } from "../waterfall/dom.js";

/** Parts that the legend names. */
const LEGEND_MAX = 3;
const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/** `Fri 2026-11-28 14:31:06` @param {number} us */
export function moment(us) {
  return `${DAYS[new Date(us / 1_000).getDay()]} ${date(us).slice(0, 10)} ${clock(us).slice(0, 8)}`;
}

/**
 * Fills the row of a turn. A row without a turn (a single subagent) is an ordinary row.
 * @param {Step} step @param {Script} script @param {number} i @param {{ turn: Turn | undefined, of: number, width: number }} about
 */
export function fillPrompt(step, script, i, { turn, of, width }) {
  const { trace } = script;
  setText(step.label, "You");
  const words = [moment(trace.start[i] + trace.t0)];
  if (turn) words.push(`turn ${turn.n} of ${of}`, plural(turn.calls, "call"));
  if (turn?.model) words.push(visible(turn.model));
  setText(step.subject, words.join(" · "));
  const whole = endOf(trace, i, script.now) - trace.start[i];
  const key = `${trace.row[i]} ${whole} ${width} ${turn?.calls} ${turn?.errors} ${turn?.end_reason} ${turn?.parts.other_us}`;
  if (step.sum.dataset.key === key) return;
  step.sum.dataset.key = key;
  step.sum.replaceChildren(summary(turn, whole), ruler(whole, trace.start[i] + trace.t0, width));
}

/** @param {Step} step */
export function clearPrompt(step) {
  setHidden(step.sum, true);
  if (step.sum.dataset.key === "") return;
  step.sum.dataset.key = "";
  step.sum.replaceChildren();
}

/** @param {Turn | undefined} turn @param {number} whole */
function summary(turn, whole) {
  const box = make("div", "cv-sum");
  const line = make("p", "cv-sum-line");
  const words = [
    [`${turn?.end_reason === null ? "running " : ""}${duration(whole)}`, "b num"],
    [turn?.errors ? `✕ ${plural(turn.errors, "error")}` : "", "bad num"],
    [turn?.repository?.commits.length ? plural(turn.repository.commits.length, "commit") : "", "dim num"],
    [turn?.tokens ? `${count(tokenTotal(turn.tokens))} tok${cached(turn)}` : "", "dim num"],
    [turn?.cost ? cost(turn.cost) : "", "dim num"],
  ];
  for (const [text, name] of words) if (text) line.append(word(text, name));
  box.append(line);
  if (!turn) return box;
  const parts = sums([turn.parts]).sort((a, b) => b[1] - a[1]);
  const total = parts.reduce((all, [, us]) => all + us, 0);
  const bar = make("div", "cv-stack");
  bar.style.background = mix(turn.parts) ?? "";
  const legend = make("p", "cv-legend");
  for (const [name, us] of parts.slice(0, LEGEND_MAX)) {
    const part = word("", "num");
    part.append(make("i", `dot k-${name}`), `${LABELS[name]} ${duration(us)} `, word(share(us, total), "dim"));
    legend.append(part);
  }
  box.append(bar, legend);
  return box;
}

/** @param {Turn} turn */
function cached({ tokens }) {
  return tokens?.cache_read != null && tokens.input ? `, ${Math.round((tokens.cache_read / tokens.input) * 100)}% cached` : "";
}

/** @param {string} text @param {string} name */
function word(text, name) {
  const made = make("span", name);
  made.textContent = text;
  return made;
}

/** @param {number} whole @param {number} start @param {number} width pixels */
export function ruler(whole, start, width) {
  const strip = make("div", "cv-ruler");
  strip.setAttribute("aria-hidden", "true");
  const scale = axis(0, Math.max(1_000, whole), Math.max(80, width));
  for (const { t, x } of ticks(scale).ticks) {
    const tick = word(t === 0 ? clock(start).slice(0, 8) : `+${duration(t)}`, "cv-tick");
    tick.style.left = `${((x / scale.width) * 100).toFixed(2)}%`;
    strip.append(tick);
  }
  return strip;
}
