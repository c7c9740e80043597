// Searches the text of all sessions; without words it lists spans that match the filters. The address holds the query.
/** @import { SearchHit, SpanRow } from "../../types/answers" */
/** @import { PageProps } from "../../types/app" */
import { html, useEffect, useLayoutEffect, useRef, useState } from "../ui/html.js";
import { enc, get } from "../net/api.js";
import { bind } from "../ui/keys.js";
import { duration, plural } from "../format/quantity.js";
import { inUtc } from "../format/local-days.js";
import { date } from "../format/time.js";
import { pieces } from "../format/marks.js";
import { visible } from "../format/text.js";
import { useRows } from "../ui/chosen-row.js";
import { Field, onTick, useQuery } from "../ui/fields.js";
import { Place } from "../ui/labels.js";
import { Limits, OF_SESSION } from "../ui/limits.js";
import { Loading, Trouble, useTitle } from "../ui/page.js";
import { useAnswer } from "../ui/use-answer.js";
import { sheet } from "../ui/sheet.js";

await sheet("pages");

const KINDS = ["", "turn", "shell", "tools", "mcp", "edits", "thinking", "response", "subagent"];
const FIELDS = ["", "prompt", "response", "thought", "input", "output", "task", "result", "error"];
const FILTERS = ["project", "model", "tool", "kind", "status", "min_us", "max_us", "from_us", "to_us"];
const PAGE = 50;

/**
 * Hits loaded by the button, and the first page that they follow.
 * @typedef {{ items: (SearchHit | SpanRow)[], next: string | null | undefined, of: unknown }} More
 * @param {PageProps} props
 */
export function Search({ query, go }) {
  const { params, set } = useQuery("/search", query, go);
  const q = params.get("q") ?? "";
  const filtered = FILTERS.some((name) => params.get(name));
  const asked = new URLSearchParams({ limit: String(PAGE) });
  for (const name of FILTERS) {
    const value = params.get(name);
    if (value) asked.set(name, value);
  }
  if (q) asked.set("q", inUtc(q));
  const inField = params.get("field");
  if (q && inField) asked.set("field", inField);
  const words = useAnswer(q.trim() ? `search?${asked}` : null);
  const spans = useAnswer(!q.trim() && filtered ? `spans?${asked}` : null);
  const path = q.trim() ? `search?${asked}` : filtered ? `spans?${asked}` : null;
  const found = q.trim() ? words.data : null;
  const { data, error, reload } = q.trim() ? words : spans;
  const [more, setMore] = useState(/** @type {More} */ ({ items: [], next: undefined, of: null }));
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useTitle(q ? `Search: ${q}` : "Search");
  useEffect(() => { if (!q && !filtered) field.current?.focus(); }, []);
  const extra = more.of === data ? more : { items: [], next: undefined };
  const items = path && data ? [...data.items, ...extra.items] : [];
  const next = extra.next === undefined ? data?.next : extra.next;
  const { at, list, move, keys } = useRows(items.length);
  useLayoutEffect(() => bind({
    ...keys, n: () => move(1), N: () => move(-1),
    Enter: () => items[at] && go(items[at].url), "/": () => field.current?.focus(),
    ...(path ? { Escape: () => go("/search", { replace: true }) } : {}),
  }), [data, at, items.length]);
  const load = async () => {
    const cursor = enc(next ?? "");
    const page = await (q.trim() ? get(`search?${asked}&cursor=${cursor}`) : get(`spans?${asked}&cursor=${cursor}`));
    setMore({ items: [...extra.items, ...page.items], next: page.next, of: data });
  };
  /** @param {Event} event */
  const ask = (event) => {
    event.preventDefault();
    set("q", field.current?.value.trim() ?? "");
  };
  const total = found?.total ?? (next ? null : items.length);
  return html`<div class="page">
    <header class="bar search-bar"><h1>Search</h1>
      <form class="filters" role="search" onSubmit=${ask}>
        <input class="grow" ref=${field} type="search" aria-label="Search prompts, commands, paths and output" value=${q}
          placeholder='/ words, "a phrase", kind:shell, status:error, tool:Shell, project:api' onSearch=${ask} />
        <button type="submit">Search</button>
        <${Field} name="kind" params=${params} set=${set} options=${KINDS} />
        <${Field} name="field" label="in" params=${params} set=${set} options=${FIELDS} />
        <${Field} name="project" params=${params} set=${set} size="8" />
        <label class="field"><input type="checkbox" checked=${params.get("status") === "error"} onChange=${onTick((ticked) => set("status", ticked ? "error" : ""))} /> failed</label>
      </form></header>
    <${Limits} params=${params} set=${set} names=${["model", "tool", ...OF_SESSION]} />
    <p class="sr" role="status">${path && data ? `${total ?? "more than 50"} hits` : ""}</p>
    ${error && html`<${Trouble} error=${error} reload=${reload} />`}
    ${path && !data && !error && html`<${Loading} />`}
    ${!path && html`<${Hints} />`}
    ${path && data && html`<div class="scroll">
      <p class="dim found-line"><span class="num">${total === null ? `${items.length}+` : `${total}${found?.total_is_more ? "+" : ""}`}</span> ${q.trim() ? (total === 1 ? "hit" : "hits") : "spans"}
        ${found && found.lag > 0 && html` · <span class="warn">the index is ${plural(found.lag, "change")} behind</span>`}</p>
      ${items.length === 0 && html`<p class="dim pad-y">Nothing found. ${filtered ? "Remove a filter, or use" : "Use"} fewer or shorter words: all of them must be in the same text.</p>`}
      <ul class="plain hits" ref=${list}>${items.map((hit, i) => html`<${Hit} key=${`${hit.url} ${"field" in hit ? hit.field : ""} ${i}`} hit=${hit} chosen=${i === at} />`)}</ul>
      ${next && html`<button type="button" class="more" onClick=${load}>More</button>`}</div>`}
  </div>`;
}

/** @param {{ hit: SearchHit | SpanRow, chosen: boolean }} props */
function Hit({ hit, chosen }) {
  const text = "span" in hit ? hit : null;
  const span = "span" in hit ? hit.span : hit;
  const parts = text?.text == null ? null : pieces(text.text, text.marks);
  return html`<li class=${chosen ? "row hit chosen" : "row hit"}><a href=${hit.url}>
    <span class="hit-head"><i class=${`dot k-${span.kind}`}></i><b class="blurry">${visible(span.label)}</b>
      ${span.status === "error" && html`<span class="bad">✕ failed</span>`}
      ${text?.field && html`<span class="chip">${visible(text.field)}</span>`}
      <span class="dim num hit-when">${span.dur_us === null ? span.status === "open" ? "open" : "?" : duration(span.dur_us)} · ${date(span.start_us)}</span></span>
    ${text && html`<span class="dim blurry hit-place"><${Place} project=${text.project ?? "–"} turn=${text.turn} />${text.title && ` · ${visible(text.title)}`}</span>`}
    ${parts && html`<span class="hit-text blurry">${parts.map((one) => (one.marked ? html`<mark>${one.text}</mark>` : one.text))}</span>`}</a></li>`;
}

function Hints() {
  const examples = [["cargo test", "both words in the same text"], ['"connection refused"', "a phrase"], ["kind:shell status:error", "failed commands"], ["tool:Read lib.rs", "reads of a file"]];
  return html`<section class="card narrow"><h2>Search everything that was said and done</h2>
    <p>Prompts, commands, paths and output of all sessions. Secrets were redacted first.</p>
    <dl class="attributes">${examples.map(([text, what]) => html`<dt><a href=${`/search?q=${encodeURIComponent(text)}`}>${text}</a></dt><dd class="dim">${what}</dd>`)}</dl></section>`;
}
