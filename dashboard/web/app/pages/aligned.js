// The turns of two sessions beside each other, and what each model did on both sides.
/** @import { Turn } from "../../types/answers" */
import { count, duration } from "../format/quantity.js";
import { visible } from "../format/text.js";
import { enc } from "../net/api.js";
import { mix } from "../trace/time-parts.js";
import { html } from "../ui/html.js";
import { useAnswer } from "../ui/use-answer.js";
import { align, byModel } from "./alignment.js";

/** Turns that are shown. */
const SHOWN = 200;

/** @param {{ a: string, b: string, ratio: (x: number | null | undefined, y: number | null | undefined) => string }} props */
export function Aligned({ a, b, ratio }) {
  const { data: first } = useAnswer(`sessions/${enc(a)}/turns`);
  const { data: second } = useAnswer(`sessions/${enc(b)}/turns`);
  if (!first || !second) return null;
  const pairs = align(first.items, second.items);
  const most = Math.max(1, ...[...first.items, ...second.items].map((one) => one.dur_us ?? 0));
  const models = byModel(first.items, second.items);
  /** @param {Turn | null} one */
  const cells = (one) => (one ? html`<td class="wide"><a class="blurry" href=${one.url}>${one.n}. ${visible((one.prompt ?? "").slice(0, 90))}</a><i class="aligned-bar" aria-hidden="true" style=${{ width: `${((one.dur_us ?? 0) / most) * 100}%`, background: mix(one.parts) }}></i></td>
    <td class="r num">${one.dur_us === null ? (one.end_reason ? "?" : "runs") : duration(one.dur_us)}</td><td class="r num">${one.calls}${one.errors > 0 && html` <span class="bad">✕ ${one.errors}</span>`}</td>` : html`<td class="wide dim">–</td><td></td><td></td>`);
  return html`<section class="aligned"><h2>Turns <span class="aside dim">paired by similar prompts, else by number; all bars have one scale</span></h2>
      <table class="list"><thead><tr><th class="wide">a</th><th class="r">time</th><th class="r">calls</th><th class="wide">b</th><th class="r">time</th><th class="r">calls</th><th class="r">b ÷ a</th></tr></thead>
        <tbody>${pairs.slice(0, SHOWN).map(([x, y], i) => html`<tr key=${i}>${cells(x)}${cells(y)}<td class="r num dim">${x && y ? ratio(x.dur_us, y.dur_us) : "–"}</td></tr>`)}</tbody></table>
      ${pairs.length > SHOWN && html`<p class="dim">${pairs.length - SHOWN} more turns are not shown.</p>`}</section>
    <section><h2>Models</h2><table class="list"><thead><tr><th>model</th>${["a", "b"].map((side) => html`<th class="r">${side}: turns</th><th class="r">time</th><th class="r">tok in / out</th>`)}</tr></thead>
      <tbody>${models.map(({ name, sides }) => html`<tr key=${name}><td>${name === null ? html`<span class="dim">not named</span>` : visible(name)}</td>${sides.map((one) => html`<td class="r num">${one.turns || "–"}</td><td class="r num">${one.turns ? (one.us === null ? "?" : duration(one.us)) : ""}</td><td class="r num">${one.turns ? `${count(one.input)} / ${count(one.output)}` : ""}</td>`)}</tr>`)}</tbody></table></section>`;
}
