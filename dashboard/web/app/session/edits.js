// Which files a session changed, with a diff of each change. Hooks carry no position, so line numbers are relative.
/** @import { EditedFile, Hunk } from "../../types/answers" */
/** @import { Go } from "../../types/app" */
import { html, useEffect, useLayoutEffect, useState } from "../ui/html.js";
import { enc } from "../net/api.js";
import { bytes, plural } from "../format/quantity.js";
import { clock } from "../format/time.js";
import { bind } from "../ui/keys.js";
import { visible } from "../format/text.js";
import { Loading, Trouble } from "../ui/page.js";
import { useAnswer } from "../ui/use-answer.js";

const LINES_MAX = 2_000;

/** @param {{ id: string, query: string, go: Go, rev: number }} props */
export function Edits({ id, query, go, rev }) {
  const { data, error, reload } = useAnswer(`sessions/${enc(id)}/edits`);
  useEffect(() => { if (data) reload(); }, [rev]);
  const items = data?.items ?? [];
  const asked = new URLSearchParams(query).get("file");
  const at = Math.max(0, items.findIndex((item) => item.path === asked));
  const file = items[at];
  /** @param {string} path */
  const choose = (path) => {
    const url = new URL(location.href);
    url.searchParams.set("file", path);
    go(url.href, { replace: true });
  };
  /** @param {number} step */
  const move = (step) => items[at + step] && choose(items[at + step].path);
  useLayoutEffect(() => bind({ j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1) }), [data, at]);
  if (error) return html`<section class="edits" aria-label="Edits"><${Trouble} error=${error} reload=${reload} /></section>`;
  if (!data) return html`<section class="edits" aria-label="Edits"><${Loading} /></section>`;
  if (!items.length) return html`<section class="edits" aria-label="Edits"><p class="dim pad pad-y">No file was edited in this session.</p></section>`;
  /** @param {"added" | "removed"} key */
  const sum = (key) => items.reduce((all, item) => all + item[key], 0);
  return html`<section class="edits" aria-label="Edits">
    <div class="edits-files"><p class="dim num">${plural(items.length, "file")} <span class="good">+${sum("added")}</span> <span class="bad">−${sum("removed")}</span></p>
      <ul class="plain">${items.map((item) => html`<li key=${item.path}><button type="button" class="plain-button" aria-pressed=${item === file} onClick=${() => choose(item.path)}>
        <span class="blurry file">${visible(item.path)}</span><span class="num good">+${item.added}</span><span class="num bad">−${item.removed}</span>
        <span class="dim num">${item.turns.length ? `turn ${item.turns.join(", ")}` : ""}${item.errors ? ` · ${item.errors} failed` : ""}</span></button></li>`)}</ul></div>
    <div class="edits-diffs" tabIndex="0" role="region" aria-label="Changes of the file"><h2 class="blurry">${visible(file.path)}</h2>
      <p class="dim">Line numbers are relative to the text of each change.</p>
      ${file.spans.map((span) => html`<${Change} key=${span.id} span=${span} />`)}</div></section>`;
}

/** @param {{ span: EditedFile["spans"][number] }} props */
function Change({ span }) {
  const { data, error } = useAnswer(`spans/${enc(span.id)}/diff`);
  const [all, setAll] = useState(false);
  const head = html`<p class="change-head"><a href=${span.url}>${span.turn == null ? "" : `turn ${span.turn} · `}${clock(span.at_us)}</a>
    <span class="good num">+${data?.added ?? span.added}</span> <span class="bad num">−${data?.removed ?? span.removed}</span> ${span.failed && html`<span class="bad">✕ failed: nothing changed</span>`}</p>`;
  return html`<article class="change">${head}${error && html`<p class="dim">${error.status === 404 ? "The text of this change is not known." : error.message}</p>`}
    ${data?.redacted && html`<p class="dim">The text is not stored.</p>`}
    ${data?.summary && html`<p class="dim">Too large to compare (${bytes(data.bytes)}): ${data.added} lines in, ${data.removed} lines out.</p>`}
    ${data && !data.redacted && !data.summary && data.hunks.length === 0 && html`<p class="dim">No line differs.</p>`}
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
