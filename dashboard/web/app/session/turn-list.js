// The turns of a session as a list: what was asked, where the time went, what it cost. The first view on a phone.
/** @import { Turn } from "../../types/answers" */
/** @import { Trace } from "../../types/trace" */
import { cost, count, duration, tokenTotal } from "../format/quantity.js";
import { date } from "../format/time.js";
import { visible } from "../format/text.js";
import { mix } from "../trace/time-parts.js";
import { turnsByRow } from "../trace/turns.js";
import { useNow } from "../ui/clock.js";
import { html } from "../ui/html.js";

/** Prompts are cut, as they fill at most a few lines. */
const PROMPT = 240;

/** @param {{ trace: Trace | null, turns: Turn[], chosen: string | null, read: (row: number) => void }} props */
export function TurnList({ trace, turns, chosen, read }) {
  const now = useNow(turns.some((turn) => turn.dur_us === null));
  if (!trace) return null;
  const rows = [...turnsByRow(trace, turns)];
  const most = Math.max(1, ...turns.map((turn) => turn.dur_us ?? now - turn.start_us));
  return html`<ol class="plain scroll turn-list" aria-label="Turns">${rows.map(([i, turn]) => html`<li key=${turn.n} aria-current=${String(trace.row[i]) === chosen ? "true" : null}>
    <button type="button" onClick=${() => read(trace.row[i])}><b class="num dim">${turn.n}</b>
      <span class="blurry">${visible((turn.prompt ?? "no prompt was recorded").slice(0, PROMPT))}</span>
      <i aria-hidden="true" style=${{ width: `${((turn.dur_us ?? now - turn.start_us) / most) * 100}%`, background: mix(turn.parts) }}></i>
      <small class="num dim"><time dateTime=${new Date(turn.start_us / 1_000).toISOString()}>${date(turn.start_us).slice(11, 16)}</time>
        <span>${turn.dur_us === null ? html`<b class="calm">running ${duration(now - turn.start_us)}</b>` : duration(turn.dur_us)}</span>
        ${turn.tokens && html`<span>${count(tokenTotal(turn.tokens))} tok</span>`}
        ${turn.cost && (turn.cost.estimated > 0 || !turn.cost.unpriced_tokens) && html`<span>${visible(cost({ ...turn.cost, unpriced_tokens: 0 }))}</span>`}
        ${turn.errors > 0 && html`<span class="bad">✕ ${turn.errors}</span>`}</small></button></li>`)}</ol>`;
}
