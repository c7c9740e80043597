// Groups of failures that look alike, most frequent first.
/** @import { Answer, ErrorGroup } from "../../types/answers" */
/** @import { PageProps } from "../../types/app" */
import { html, useLayoutEffect, useState } from "../ui/html.js";
import { enc, get } from "../net/api.js";
import { bind } from "../ui/keys.js";
import { plural } from "../format/quantity.js";
import { visible } from "../format/text.js";
import { useRows } from "../ui/chosen-row.js";
import { Age } from "../ui/clock.js";
import { iso, saveCsv } from "../ui/csv.js";
import { Field, useQuery } from "../ui/fields.js";
import { Limits, OF_SESSION, pass } from "../ui/limits.js";
import { Page, useTitle } from "../ui/page.js";
import { Saved } from "../ui/saved.js";
import { useRange } from "../ui/range.js";
import { useAnswer } from "../ui/use-answer.js";
import { sheet } from "../ui/sheet.js";

await sheet("pages");

/**
 * Groups loaded by the button, and the first page that they follow.
 * @typedef {{ items: ErrorGroup[], next: string | null | undefined, of: Answer<"errors"> | null }} More
 */

const KINDS = ["", "shell", "tools", "mcp", "edits", "subagent", "turn"];

/** @param {PageProps} props */
export function Errors({ query, go }) {
  const { params, set } = useQuery("/errors", query, go);
  const range = useRange({ params, set }, { first: 0, all: true });
  const asked = new URLSearchParams({ limit: "100" });
  pass(params, asked);
  for (const [name, value] of Object.entries(range.asked)) asked.set(name, value);
  const { data, error, reload } = useAnswer(`errors?${asked}`, (event) => event === "spans" || event === "resync", 3_000);
  const [open, setOpen] = useState(/** @type {string | null} */ (null));
  const [more, setMore] = useState(/** @type {More} */ ({ items: [], next: undefined, of: null }));
  const extra = more.of === data ? more : { items: [], next: undefined };
  const rows = data ? [...data.items, ...extra.items] : [];
  const next = extra.next === undefined ? data?.next : extra.next;
  const load = async () => {
    const page = await get(`errors?${asked}&cursor=${enc(next ?? "")}`);
    setMore({ items: [...extra.items, ...page.items], next: page.next, of: data });
  };
  const { at, list, move, keys } = useRows(rows.length);
  useTitle("Errors");
  useLayoutEffect(() => bind({
    ...keys, e: () => move(1), E: () => move(-1),
    ArrowRight: () => rows[at] && setOpen(rows[at].fingerprint), ArrowLeft: () => setOpen(null),
    Enter: () => rows[at] && go(rows[at].url),
  }), [data, at, rows.length]);
  const tools = html`${range.control}<${Field} name="project" params=${params} set=${set} /><${Field} name="tool" params=${params} set=${set} />
    <${Field} name="kind" params=${params} set=${set} options=${KINDS} />
    <span class="dim num">${data ? `${data.more ? "newest " : ""}${plural(data.failures, "failure")} in ${next ? "more than " : ""}${plural(rows.length, "group")}` : ""}</span>
    <button type="button" disabled=${!rows.length} onClick=${() => saveCsv("errors", ["failure", "kind", "message", "count", "sessions", "first", "last"], rows.map((row) => [row.sample_name ?? row.fingerprint, row.kind, row.message, row.count, row.sessions, iso(row.first_us), iso(row.last_us)]))}>CSV</button>`;
  return html`<${Page} title="Errors" tools=${tools} error=${error} reload=${reload} ready=${data}>${() => html`<${Saved} page="errors" params=${params} /><${Limits} params=${range.without(params)} set=${set} names=${["model", ...OF_SESSION]} />${rows.length === 0
    ? html`<p class="calm pad-y">✓ ${params.size ? "No failure matches: take a filter away, or choose a longer period." : "No failure is stored."}</p>`
    : html`<table class="list failures" ref=${list}><thead><tr><th class="wide">failure</th><th class="r">count</th><th class="r">sessions</th><th class="r">first</th><th class="r">last</th></tr></thead>
      <tbody>${rows.map((row, i) => html`<${Group} key=${row.fingerprint} row=${row} chosen=${i === at} open=${open === row.fingerprint}
        onOpen=${() => setOpen(open === row.fingerprint ? null : row.fingerprint)} />`)}</tbody></table>
      ${next && html`<p class="pad-y"><button type="button" onClick=${load}>more groups</button></p>`}`}`}<//>`;
}

/** @param {{ row: ErrorGroup, chosen: boolean, open: boolean, onOpen: () => void }} props */
function Group({ row, chosen, open, onOpen }) {
  const recent = row.recent ?? [];
  const message = row.message ?? "";
  return html`<tr class=${chosen ? "chosen" : ""}>
    <td class="wide"><div class="failure">${recent.length > 1
      ? html`<button type="button" class="twist" aria-expanded=${open} aria-label=${open ? "hide the latest" : "show the latest"} onClick=${onOpen}>${open ? "▾" : "▸"}</button>`
      : html`<span class="twist"></span>`}
      <div><i class=${`dot k-${row.kind ?? "other"}`}></i><a class="blurry" href=${row.url}>${visible(row.sample_name ?? row.fingerprint)}</a>
      ${message && html`<p class="bad blurry message">${visible(message.split("\n")[0])}</p>`}
      ${row.fingerprint !== row.sample_name && html`<p class="dim blurry print">${visible(row.fingerprint)}</p>`}
      ${open && html`<ul class="plain latest">${recent.map((one) => html`<li key=${one.id}><span class="dim num"><${Age} since=${one.at_us} suffix=" ago" /></span> <a class="blurry" href=${one.url}>${visible(one.label)}</a></li>`)}</ul>`}</div></div></td>
    <td class="r num bad">× ${row.count}</td><td class="r num">${row.sessions}</td>
    <td class="r dim"><${Age} since=${row.first_us} /></td><td class="r"><${Age} since=${row.last_us} /></td></tr>`;
}
