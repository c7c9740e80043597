// One change of a file, with its diff. Hooks carry no position, so line numbers are relative.
/** @import { EditedFile, Hunk } from "../../types/answers" */
import { bytes } from "../format/quantity.js";
import { clock } from "../format/time.js";
import { visible } from "../format/text.js";
import { enc } from "../net/api.js";
import { html, useState } from "./html.js";
import { useAnswer } from "./use-answer.js";

const LINES_MAX = 2_000;

/** One change with its diff. `day` stands before its time. @param {{ span: Omit<EditedFile["spans"][number], "row">, day?: string }} props */
export function Change({ span, day = "" }) {
  const { data, error } = useAnswer(`spans/${enc(span.id)}/diff`);
  const [all, setAll] = useState(false);
  const head = html`<p class="change-head"><a href=${span.url}>${span.turn == null ? "" : `turn ${span.turn} · `}${day && `${day} `}${clock(span.at_us)}</a>
    <span class="good num">+${data?.added ?? span.added}</span> <span class="bad num">−${data?.removed ?? span.removed}</span> ${span.failed && html`<span class="bad">✕ failed: nothing changed</span>`}</p>`;
  return html`<article class="change">${head}${error && html`<p class="dim">${error.status === 404 ? "The text of this change is not known." : error.message}</p>`}
    ${data?.redacted && html`<p class="dim">The text is not stored.</p>`}
    ${data?.summary && html`<p class="dim">Too large to compare (${bytes(data.bytes)}): ${data.added} lines in, ${data.removed} lines out.</p>`}
    ${data && !data.redacted && !data.summary && data.hunks.length === 0 && html`<p class="dim">No lines differ.</p>`}
    ${data && html`<${Hunks} hunks=${data.hunks} all=${all} onAll=${() => setAll(true)} />`}</article>`;
}

/** @param {{ hunks: Hunk[], all: boolean, onAll: () => void }} props */
function Hunks({ hunks, all, onAll }) {
  let left = all ? Infinity : LINES_MAX;
  const rest = hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0) - LINES_MAX;
  return html`${hunks.map((hunk) => {
    const lines = hunk.lines.slice(0, Math.max(0, left));
    left -= lines.length;
    return lines.length > 0 && html`<div class="hunk blurry"><div class="hunk-head num">@@ −${hunk.old_line} +${hunk.new_line} @@</div>
      <pre tabIndex="0">${lines.map((line) => html`<span class=${line.op === "+" ? "ins" : line.op === "-" ? "del" : "same"}>${`${line.op === "-" ? "−" : line.op} ${visible(line.text)}\n`}</span>`)}</pre></div>`;
  })}
    ${!all && rest > 0 && html`<button type="button" class="more" onClick=${onAll}>${rest} more lines</button>`}`;
}
