// The content of a span. Only text nodes are made from it.
/** @import { PayloadItem } from "../../types/answers" */
/** @import { Failure, View } from "../../types/app" */
import { html, useEffect, useMemo, useState } from "../ui/html.js";
import { get, enc } from "../net/api.js";
import { runs } from "../format/ansi.js";
import { bytes } from "../format/quantity.js";
import { visible } from "../format/text.js";
import { copyText } from "../ui/notify.js";
import { Loading, Trouble } from "../ui/page.js";

const DEPTH_MAX = 32;
const NODES_MAX = 2_000;

/**
 * The part of a payload that was read so far.
 * @typedef {{ text: string, next: number | string | null, total: number | null, loading?: boolean, redacted?: boolean, kind?: string, error?: Failure }} Piece
 * @param {{ span: string, item: PayloadItem }} props
 */
export function Payload({ span, item }) {
  const [state, set] = useState(/** @type {Piece} */ ({ text: "", next: 0, total: 0, loading: true }));
  const [plain, setPlain] = useState(false);
  /** @param {number | string} offset @param {string} before */
  const more = (offset, before) => get(`spans/${enc(span)}/payload/${enc(item.part)}?offset=${offset}`).then(
    (piece) => set({ text: before + (piece.text ?? ""), next: piece.next, total: piece.total, redacted: piece.redacted, kind: piece.kind }),
    (error) => set((old) => ({ ...old, error, loading: false })),
  );
  useEffect(() => { more(0, ""); }, [span, item.part]);
  if (state.error) return html`<${Trouble} error=${state.error} />`;
  if (state.loading) return html`<${Loading} />`;
  if (state.redacted) return html`<p class="dim">Not stored.</p>`;
  const copy = () => copyText(state.text, state.next ? "copied what is shown" : undefined);
  return html`<div class="payload">
    <div class="payload-tools">${item.truncated && html`<span class="warn">▲ cut when it was stored</span>`}<button type="button" class="link" onClick=${() => setPlain(!plain)} hidden=${state.kind !== "json" || Boolean(state.next)} aria-pressed=${plain}>as text</button><button type="button" class="link" onClick=${copy}>copy</button></div>
    <div class="blurry"><${Content} text=${state.text} kind=${state.next || plain ? "text" : state.kind} /></div>
    ${state.next && html`<button type="button" class="more" onClick=${() => more(state.next ?? 0, state.text)}>
      more (${bytes(Number(state.next))} of ${bytes(state.total)})</button>`}
  </div>`;
}

/** @param {{ text: string, kind: string | undefined }} props */
function Content({ text, kind }) {
  const tree = useMemo(() => (kind === "json" ? parsed(text) : null), [text, kind]);
  if (tree) return html`<div class="json" role="group"><${Value} value=${tree.value} depth=${0} budget=${{ left: NODES_MAX }} /></div>`;
  return html`<pre class="text" tabIndex="0">${text === "" ? html`<span class="dim">empty</span>` : lines(text)}</pre>`;
}

/** The JSON of a text, if it is an object or a list. @param {string} text @returns {{ value: object } | null} */
function parsed(text) {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object" ? { value } : null;
  } catch {
    return null;
  }
}

/** Text with its colours. @param {string} text @returns {(string | View)[]} */
function lines(text) {
  return runs(text).map(({ text: part, bold, color }) => {
    if (!bold && color === null) return part;
    return html`<span class=${`${bold ? "b " : ""}${color === null ? "" : `c${color}`}`}>${part}</span>`;
  });
}

/** @param {{ value: unknown, depth: number, budget: { left: number } }} props `budget` is shared by all levels */
function Value({ value, depth, budget }) {
  budget.left -= 1;
  if (budget.left < 0) return html`<span class="dim">… the raw hook has the rest</span>`;
  if (typeof value === "string") return html`<${Text} text=${value} />`;
  if (value === null || typeof value !== "object") return html`<span class="lit">${String(value)}</span>`;
  const entries = Object.entries(value);
  if (!entries.length) return html`<span class="dim">${Array.isArray(value) ? "[]" : "{}"}</span>`;
  if (depth >= DEPTH_MAX) return html`<span class="dim">… deeper than ${DEPTH_MAX} levels</span>`;
  const shown = entries.slice(0, Math.max(0, Math.min(entries.length, budget.left)));
  return html`<dl>${shown.map(([key, below]) => html`<div class=${nests(below) ? "nest" : ""}>
    <dt>${visible(key)}</dt><dd><${Value} value=${below} depth=${depth + 1} budget=${budget} /></dd></div>`)}
    ${shown.length < entries.length && html`<div class="dim">… ${entries.length - shown.length} more</div>`}</dl>`;
}

/** @param {unknown} value */
function nests(value) {
  return value !== null && typeof value === "object" && Object.keys(value).length > 0;
}

/** @param {{ text: string }} props */
function Text({ text }) {
  if (text.includes("\n") || text.length > 120) return html`<pre class="text" tabIndex="0">${lines(text)}</pre>`;
  return html`<span class="str">${text === "" ? html`<span class="dim">""</span>` : lines(text)}</span>`;
}
