// The turns of a session side by side: how long each took, how it ended, what it used.
/** @import { Turn } from "../../types/answers" */
import { count, duration, tokenTotal } from "../format/quantity.js";
import { visible } from "../format/text.js";
import { html } from "../ui/html.js";

/** With more turns, only bars are shown. */
const WORDS_MAX = 12;
/** With more turns, only those around the chosen one are shown. */
const BARS_MAX = 40;
/** Height of the tallest bar, above and below the line. */
const UP_PX = 28;
const DOWN_PX = 14;

/** The turns to show: all, or those around the chosen one. @template T @param {T[]} turns @param {number} at */
export function around(turns, at) {
  const from = Math.max(0, Math.min(turns.length - BARS_MAX, at - BARS_MAX / 2));
  return { from, shown: turns.slice(from, from + BARS_MAX), after: Math.max(0, turns.length - from - BARS_MAX) };
}

/**
 * @param {object} props
 * @param {Turn[]} props.turns
 * @param {number} props.at place of the chosen turn, -1 for none
 * @param {number} props.now microseconds since the epoch
 * @param {(at: number) => void} props.go
 */
export function Strip({ turns, at, now, go }) {
  if (!turns.length) return null;
  const { from, shown, after } = around(turns, at);
  /** @param {Turn} turn */
  const us = (turn) => turn.dur_us ?? (turn.end_reason ? 0 : now - turn.start_us);
  const longest = Math.max(1, ...shown.map(us));
  const most = Math.max(1, ...shown.map((turn) => (turn.tokens ? tokenTotal(turn.tokens) ?? 0 : 0)));
  const words = turns.length <= WORDS_MAX;
  return html`<nav class=${words ? "cv-strip" : "cv-strip cv-bars"} aria-label="Turns">
    ${from > 0 && html`<button type="button" class="cv-further" onClick=${() => go(from - 1)} title="earlier turns">‹ ${from}</button>`}
    ${shown.map((turn, k) => html`<${One} key=${turn.id} turn=${turn} chosen=${from + k === at} words=${words} up=${us(turn) / longest} us=${us(turn)} most=${most} go=${() => go(from + k)} />`)}
    ${after > 0 && html`<button type="button" class="cv-further" onClick=${() => go(from + shown.length)} title="later turns">${after} ›</button>`}
  </nav>`;
}

/** @param {{ turn: Turn, chosen: boolean, words: boolean, up: number, us: number, most: number, go: () => void }} props */
function One({ turn, chosen, words, up, us, most, go }) {
  const total = turn.tokens ? tokenTotal(turn.tokens) ?? 0 : 0;
  const fresh = total && turn.tokens?.cache_read != null ? Math.max(0, total - turn.tokens.cache_read) / total : 0;
  const running = turn.end_reason === null;
  const facts = [running ? `running ${duration(us)}` : duration(us), turn.tokens ? `${count(total)} tok` : ""].filter(Boolean).join(" · ");
  const prompt = visible((turn.prompt ?? "").slice(0, 160));
  const down = (total / most) * DOWN_PX;
  return html`<button type="button" class=${`cv-turn${turn.errors ? " cv-turn-bad" : ""}${running ? " cv-turn-runs" : ""}`} aria-current=${chosen ? "true" : null}
    aria-label=${words || chosen ? null : `turn ${turn.n}: ${facts}${turn.errors ? `, ${turn.errors} failed` : ""}`} title=${words ? null : `${turn.n}  ${facts}`} onClick=${go}>
    <span class="cv-turn-bar" aria-hidden="true"><i class="cv-up" style=${{ height: `${Math.max(2, up * UP_PX)}px` }}></i><i class="cv-down" style=${{ height: `${down}px` }}><i style=${{ height: `${down * fresh}px` }}></i></i></span>
    ${(words || chosen) && html`<span class="cv-turn-words"><span class="cv-turn-prompt"><b>${turn.n}</b> <span class="blurry">${prompt}</span></span>
      <span class="cv-turn-facts num">${facts}${turn.errors > 0 && html` <span class="bad">✕ ${turn.errors}</span>`}</span></span>`}
  </button>`;
}
