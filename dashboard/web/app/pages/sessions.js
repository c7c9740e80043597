// All sessions, newest activity first. The address holds the filter and the page.
/** @import { SessionRow } from "../../types/answers" */
/** @import { Go, PageProps, QueryParams } from "../../types/app" */
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../ui/html.js";
import { enc, get } from "../net/api.js";
import { bind } from "../ui/keys.js";
import { cost, count, duration } from "../format/quantity.js";
import { visible } from "../format/text.js";
import { throttle } from "../net/throttle.js";
import { useRows } from "../ui/chosen-row.js";
import { Age } from "../ui/clock.js";
import { Field, onText, onTick, useQuery, useSort } from "../ui/fields.js";
import { State } from "../ui/labels.js";
import { mark, Star, Tag } from "../ui/marks.js";
import { Loading, Trouble, useTitle } from "../ui/page.js";
import { Saved } from "../ui/saved.js";
import { useScrollPlace } from "../ui/scroll.js";
import { useAnswer, useLive } from "../ui/use-answer.js";
import { Value } from "../ui/value.js";
import { barText, readBar } from "./session-filter.js";
import { Waiting } from "./waiting.js";
import { sheet } from "../ui/sheet.js";

await sheet("pages");

/** @type {Record<string, string>} */
const OUTCOMES = { tests_failed: "tests failed", tests_passed: "tests passed", pull_request: "PR", committed: "committed", left_open: "not committed", unchanged: "nothing changed" };
const STATES = ["", "running", "tool_open", "your_turn", "errored", "done", "stale"];

/** @param {PageProps} props */
export function Sessions({ query, go }) {
  const { params, set } = useQuery("/sessions", query, go);
  const { data, error, reload } = useAnswer(`sessions?${params}`);
  const [rows, setRows] = useState(/** @type {SessionRow[] | null} */ (null));
  const [next, setNext] = useState(/** @type {string | null} */ (null));
  const filter = useRef(/** @type {HTMLInputElement | null} */ (null));
  const { at, list, keys } = useRows(rows?.length);
  const [picked, setPicked] = useState(/** @type {string[]} */ ([]));
  const { sort, order, head } = useSort({ params, set }, "last");
  useTitle("Sessions");
  useEffect(() => {
    if (!data) return;
    setRows(data.items);
    setNext(data.next);
  }, [data]);
  /** @param {string} text */
  const ask = (text) => {
    const changed = readBar(text, new URLSearchParams(location.search));
    go(`/sessions${changed.size ? `?${changed}` : ""}`, { replace: true });
  };
  /** @param {string} id */
  const pick = (id) => setPicked((old) => (old.includes(id) ? old.filter((one) => one !== id) : [...old, id].slice(-2)));
  /** @param {string} id @param {SessionRow["marks"]} marks */
  const marked = (id, marks) => setRows((old) => old && old.map((row) => (row.id === id ? { ...row, marks } : row)));
  const refresh = useMemo(() => throttle(reload, 1_000), [query]);
  useLive((event, session) => {
    if (event === "resync") reload();
    if (event !== "session") return;
    setRows((old) => {
      const found = old?.some((row) => row.id === session.id) ?? false;
      // A filtered list cannot decide itself whether a session still matches.
      if (!found || params.size) refresh();
      if (!old || !found) return old;
      return old.map((row) => (row.id === session.id ? { cost: row.cost, marks: row.marks, ...session } : row)).sort((a, b) => sort === "last" ? (b.last_us - a.last_us) * (order === "asc" ? -1 : 1) : 0);
    });
  }, [query]);
  const more = async () => {
    const page = new URLSearchParams(query);
    page.set("cursor", next ?? "");
    const answer = await get(`sessions?${page}`);
    setRows((old) => [...old ?? [], ...answer.items.filter((item) => !old?.some((row) => row.id === item.id))]);
    setNext(answer.next);
  };
  const scroller = useScrollPlace(`/sessions${query}`, rows?.length ?? 0, next ? more : null);
  useLayoutEffect(() => bind({
    ...keys,
    Enter: () => rows?.[at] && go(rows[at].url),
    "/": () => filter.current?.focus(),
    "*": () => rows?.[at] && mark(rows[at].id, { starred: !rows[at].marks.starred }, (marks) => marked(rows[at].id, marks)),
  }), [rows, at]);
  return html`<div class="page">
    <header class="bar"><h1>Sessions</h1>
      <form class="filters" role="search" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
        <${Field} name="state" params=${params} set=${set} options=${STATES} />
        <${Field} name="project" params=${params} set=${set} />
        <${Field} name="model" params=${params} set=${set} />
        <${Field} name="outcome" params=${params} set=${set} options=${["", ...Object.keys(OUTCOMES), "none"]} />
        <label class="field"><input type="checkbox" checked=${params.get("status") === "error"} onChange=${onTick((ticked) => set("status", ticked ? "error" : ""))} /> with errors</label>
        <input class="grow" ref=${filter} type="search" placeholder="/ first prompt, project or id   project:api   outcome:left_open   tag:later   starred:yes   dur>2s" aria-label="Filter by first prompt, project or id, project:, model:, branch:, outcome:, tag:, starred:yes, state:, status:, tool:, kind:, dur>"
          value=${barText(params)} onChange=${onText(ask)} />
        ${picked.length === 2 && html`<a class="button" href=${`/compare?a=${enc(picked[0])}&b=${enc(picked[1])}`}>compare the two</a>`}
      </form><${Saved} page="sessions" params=${params} /></header>
    ${error && html`<${Trouble} error=${error} reload=${reload} />`}
    ${!rows && !error && html`<${Loading} />`}
    ${rows && !rows.length && (params.size > 0
      ? html`<section class="card narrow"><h2>No session matches</h2><p>Remove a filter. <a href="/sessions">Show all</a></p></section>`
      : html`<${Waiting} />`)}
    ${rows && rows.length > 0 && html`<div class="scroll" ref=${scroller}><table class="list" ref=${list}>
      <thead><tr><th><span class="sr">compare</span></th><th>state</th><th>project</th><th class="wide">first prompt</th><th>model</th><th class="r">turns</th>${head("calls")}${head("errors")}${head("active", "active / wall")}${head("tokens", "tokens in / out")}${head("last")}</tr></thead>
      <tbody>${rows.map((row, i) => html`<${Row} key=${row.id} row=${row} chosen=${i === at} go=${go} picked=${picked.includes(row.id)} pick=${pick} marked=${marked} set=${set} />`)}</tbody>
    </table>${next && html`<button type="button" class="more" onClick=${more}>More sessions</button>`}</div>`}
  </div>`;
}

/** @param {{ row: SessionRow, chosen: boolean, go: Go, picked: boolean, pick: (id: string) => void, marked: (id: string, marks: SessionRow["marks"]) => void, set: QueryParams["set"] }} props */
function Row({ row, chosen, go, picked, pick, marked, set }) {
  /** @param {Event} event */
  const open = (event) => {
    if (event.target instanceof Element && event.target.closest("a, input, label, button")) return;
    go(row.url);
  };
  return html`<tr class=${chosen ? "chosen" : ""} onClick=${open}>
    <td class="pick"><input type="checkbox" checked=${picked} aria-label=${`compare ${visible(row.first_prompt ?? row.id).slice(0, 60)}`} onChange=${() => pick(row.id)} /><${Star} id=${row.id} marks=${row.marks} done=${(/** @type {SessionRow["marks"]} */ marks) => marked(row.id, marks)} /></td>
    <td><${State} state=${row.state} /></td>
    <td><${Only} name="project" value=${row.project} set=${set} /></td>
    <td class="wide"><a href=${row.url} class="blurry">${visible(row.first_prompt ?? row.id)}</a>
      ${row.state === "errored" && row.last_error && html` <span class="bad">${visible(row.last_error)}</span>`}
      ${row.marks.note && html` <span class="dim" role="img" aria-label="has a note" title=${visible(row.marks.note)}>✎</span>`}
      <span class="row-tags">${row.marks.tags.map((tag) => html`<span class="chip" key=${tag}><${Tag} tag=${tag} /></span>`)}
      ${row.repository?.branch && html`<a class="chip dim blurry" title="branch" href=${`/sessions?branch=${enc(row.repository.branch)}`}>⎇ ${visible(row.repository.branch)}</a>`}
      ${row.outcome.words.map((word) => html`<a class=${`chip ${word === "tests_failed" ? "bad" : word === "left_open" ? "warn" : "dim"}`} key=${word} href=${`/sessions?outcome=${word}`}>${OUTCOMES[word] ?? visible(word)}</a>`)}</span></td>
    <td class="dim"><${Only} name="model" value=${row.model} set=${set} /></td>
    <td class="r num">${row.turns}</td>
    <td class="r num">${row.calls}${row.subagents > 0 && html`<span class="dim" title="subagents"> +${row.subagents}</span>`}</td>
    <td class=${`r num ${row.errors ? "bad" : "dim"}`}>${row.errors || "–"}</td>
    <td class="r num">${duration(row.active_us)} <span class="dim">/ ${duration(row.wall_us)}</span></td>
    <td class="r num">${row.tokens ? html`${count(row.tokens.input)} <span class="dim">/ ${count(row.tokens.output)}</span>` : "–"}${row.cost && (row.cost.estimated > 0 || !row.cost.unpriced_tokens) && html`<br /><small class="dim" title=${visible(cost(row.cost))}>${visible(cost({ ...row.cost, unpriced_tokens: 0 }))}</small>`}</td>
    <td class="r dim"><${Age} since=${row.last_us} /></td>
  </tr>`;
}

/** A value of a cell; where there is none, the sessions without any can be listed.
 * @param {{ name: string, value: string | null, set: QueryParams["set"] }} props */
function Only({ name, value, set }) {
  return html`<${Value} value=${value ?? "none"} acts=${[["only this", "=", () => set(name, value ?? "none")]]}>${visible(value ?? "–")}<//>`;
}
