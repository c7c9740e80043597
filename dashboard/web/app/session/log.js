// The session as a log: one line per span, in the order of time.
/** @import { Trace } from "../../types/trace" */
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../ui/html.js";
import { ERROR, OPEN, UNKNOWN, UNKNOWN_LENGTH } from "../trace/columns.js";
import { matches, parse } from "../trace/filter.js";
import { duration } from "../format/quantity.js";
import { clock } from "../format/time.js";
import { bind } from "../ui/keys.js";
import { visible } from "../format/text.js";

const PAGE = 500;
/** @type {Record<number, string>} */
const WORDS = { [ERROR]: "✕ failed", [OPEN]: "… open", [UNKNOWN]: "? no end" };

/** @param {{ trace: Trace | null, chosen: string | null, go: (row: number) => void, search: string }} props */
export function Log({ trace, chosen, go, search }) {
  const rows = useMemo(() => {
    if (!trace) return [];
    const query = parse(search);
    const hit = query ? matches(trace, query).hit : null;
    /** @type {number[]} */
    const list = [];
    for (let i = 0; i < trace.n; i += 1) if (trace.kinds[trace.kind[i]] !== "session" && (!hit || hit[i])) list.push(i);
    return list.sort((a, b) => trace.start[a] - trace.start[b] || a - b);
  }, [trace, search]);
  if (!trace) return null;
  return html`<${Lines} trace=${trace} rows=${rows} chosen=${chosen} go=${go} />`;
}

/** @param {{ trace: Trace, rows: number[], chosen: string | null, go: (row: number) => void }} props */
function Lines({ trace, rows, chosen, go }) {
  const [shown, setShown] = useState(PAGE);
  const body = useRef(/** @type {HTMLElement | null} */ (null));
  const at = rows.findIndex((i) => String(trace.row[i]) === chosen);
  /** @param {number} step @param {(i: number) => boolean} [test] */
  const move = (step, test = () => true) => {
    for (let k = at < 0 && step < 0 ? rows.length - 1 : at + step; k >= 0 && k < rows.length; k += step) {
      if (!test(rows[k])) continue;
      setShown((n) => Math.max(n, Math.ceil((k + 1) / PAGE) * PAGE));
      return go(trace.row[rows[k]]);
    }
    return undefined;
  };
  /** @param {number} i */
  const failed = (i) => trace.status[i] === ERROR;
  /** @param {number} i */
  const turn = (i) => trace.kinds[trace.kind[i]] === "turn";
  useLayoutEffect(() => bind({
    j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1), e: () => move(1, failed), E: () => move(-1, failed),
    n: () => move(1), N: () => move(-1), "[": () => move(-1, turn), "]": () => move(1, turn),
  }), [rows, at]);
  useEffect(() => body.current?.querySelector("tr.chosen")?.scrollIntoView({ block: "nearest" }), [chosen, shown]);
  /** @param {number} i */
  const word = (i) => WORDS[trace.status[i]] ?? "";
  return html`<section class="log" aria-label="Log"><table class="list"><thead><tr><th>time</th><th>kind</th><th class="wide">span</th><th class="r">duration</th><th>status</th></tr></thead>
    <tbody ref=${body}>${rows.slice(0, shown).map((i) => html`<tr key=${trace.row[i]} class=${`${String(trace.row[i]) === chosen ? "chosen" : ""}${turn(i) ? " log-turn" : ""}`} onClick=${() => go(trace.row[i])}>
      <td class="num dim">${clock(trace.start[i] + trace.t0)}</td><td><i class=${`dot k-${trace.kinds[trace.kind[i]]}`}></i>${trace.kinds[trace.kind[i]]}</td>
      <td class="wide"><button type="button" class="plain-button blurry" aria-pressed=${String(trace.row[i]) === chosen}>${visible(trace.strs[trace.label[i]])}</button></td>
      <td class="r num">${trace.dur[i] < 0 ? "…" : trace.flags[i] & UNKNOWN_LENGTH ? "?" : duration(trace.dur[i])}</td><td class=${failed(i) ? "bad" : "dim"}>${word(i)}</td></tr>`)}</tbody></table>
    ${rows.length === 0 && html`<p class="dim pad-y">No row matches the filter.</p>`}
    ${shown < rows.length && html`<button type="button" class="more" onClick=${() => setShown(shown + PAGE)}>${Math.min(PAGE, rows.length - shown)} more of ${rows.length - shown}</button>`}</section>`;
}
