// Two sessions, or two turns of them, side by side.
/** @import { Answer, Comparison } from "../../types/answers" */
/** @import { PageProps } from "../../types/app" */
import { onText } from "../ui/fields.js";
import { html, useMemo, useState } from "../ui/html.js";
import { enc } from "../net/api.js";
import { count, duration } from "../format/quantity.js";
import { date } from "../format/time.js";
import { LABELS, PARTS, partUs } from "../trace/time-parts.js";
import { visible } from "../format/text.js";
import { Loading, Trouble, useTitle } from "../ui/page.js";
import { useAnswer } from "../ui/use-answer.js";
import { Aligned } from "./aligned.js";
import { sheet } from "../ui/sheet.js";

await sheet("pages");

const FILES_MAX = 200;

/** @param {PageProps} props */
export function Compare({ query, go }) {
  const params = useMemo(() => new URLSearchParams(query), [query]);
  const [a, b] = [params.get("a"), params.get("b")];
  const { data, error, reload } = useAnswer(a && b ? `compare?a=${enc(a)}&b=${enc(b)}` : null);
  const { data: list } = useAnswer("sessions?limit=100");
  useTitle("Compare");
  /** @param {"a" | "b"} side @param {string} value */
  const choose = (side, value) => {
    const changed = new URLSearchParams(query);
    changed.set(side, value);
    go(`/compare?${changed}`, { replace: true });
  };
  return html`<div class="page"><header class="bar"><h1>Compare</h1><div class="tools">
      <${Side} side="a" chosen=${a} list=${list} choose=${choose} /><${Side} side="b" chosen=${b} list=${list} choose=${choose} />
      ${a && b && html`<button type="button" onClick=${() => go(`/compare?a=${enc(b)}&b=${enc(a)}`, { replace: true })}>swap</button>`}</div></header>
    ${error && html`<${Trouble} error=${error} reload=${reload} />`}
    ${a && b ? (data ? html`<div class="scroll"><${Tables} data=${data} />${data.a.turn === null && data.b.turn === null && html`<${Aligned} a=${data.a.session} b=${data.b.session} ratio=${ratio} />`}</div>` : !error && html`<${Loading} />`)
    : html`<p class="dim pad pad-y">Choose two sessions, or a turn of each.</p>`}</div>`;
}

/** One side: a session, or one turn of it (`session:number`).
 * @param {{ side: "a" | "b", chosen: string | null, list: Answer<"sessions"> | null, choose: (side: "a" | "b", value: string) => void }} props */
function Side({ side, chosen, list, choose }) {
  const [session, turn] = useMemo(() => {
    const [, id, n] = /^(.*):(\d+)$/.exec(chosen ?? "") ?? [null, chosen, ""];
    return [id ?? "", n];
  }, [chosen]);
  const { data: turns } = useAnswer(session ? `sessions/${enc(session)}/turns` : null);
  const rows = list?.items ?? [];
  return html`<label class="field">${side} <select class="blurry" value=${session} onChange=${onText((id) => choose(side, id))}>
      <option value="">choose a session</option>
      ${session && !rows.some((row) => row.id === session) && html`<option value=${session}>${visible(session)}</option>`}
      ${rows.map((row) => html`<option value=${row.id}>${`${visible(row.first_prompt ?? row.id).slice(0, 50)} · ${date(row.start_us)}`}</option>`)}</select></label>
    ${session && html`<label class="field"><span class="sr">turn of ${side}</span><select class="blurry" value=${turn} onChange=${onText((n) => choose(side, n ? `${session}:${n}` : session))}>
      <option value="">all turns</option>${(turns?.items ?? []).map((one) => html`<option value=${String(one.n)}>${`turn ${one.n} ${visible(one.prompt ?? "").slice(0, 40)}`}</option>`)}</select></label>`}`;
}

/** @param {{ data: Comparison }} props */
function Tables({ data: { a, b, tools, files } }) {
  /** @type {[string, (one: typeof a | typeof b) => string | number, ("active_us" | "turns" | "calls" | "errors")?][]} */
  const facts = [
    ["started", (one) => date(one.start_us)], ["active", (one) => duration(one.active_us), "active_us"],
    ["turns", (one) => one.turns, "turns"], ["calls", (one) => one.calls, "calls"], ["errors", (one) => one.errors, "errors"],
  ];
  const tokens = /** @type {const} */ (["input", "output", "cache_read", "cache_write"]);
  const parts = PARTS.map((key) => ({ key, x: partUs(a.parts, key), y: partUs(b.parts, key) })).filter(({ x, y }) => x || y);
  const most = Math.max(1, ...parts.flatMap(({ x, y }) => [x, y]));
  /** @param {string} name */
  const head = (name) => html`<thead><tr><th>${name}</th><th class="r">a</th><th class="r">b</th><th class="r">b ÷ a</th></tr></thead>`;
  /** @param {string} key @param {number} us */
  const bar = (key, us) => html`<div class="part-bar" aria-hidden="true"><i class=${`k-${key}`} style=${{ width: `${(us / most) * 100}%` }}></i></div>`;
  /** @param {typeof tools[number]["a"]} sum */
  const used = (sum) => (sum.calls ? html`${sum.calls} × <span class="dim">${sum.dur_us === null ? "?" : duration(sum.dur_us)}</span>${sum.errors ? html` <span class="bad">${sum.errors} failed</span>` : ""}` : "–");
  return html`<div class="compare">
    <section><h2>Facts</h2><table class="list"><thead><tr><th>fact</th>${[a, b].map((one) => html`<th class="r"><a class="blurry" href=${one.url}>${visible(one.label || one.session).slice(0, 44)}</a></th>`)}<th class="r">b ÷ a</th></tr></thead>
      <tbody>${facts.map(([name, text, key]) => html`<tr key=${name}><td class="dim">${name}</td><td class="r num">${text(a)}</td><td class="r num">${text(b)}</td><td class="r num dim">${key ? ratio(a[key], b[key]) : ""}</td></tr>`)}
        ${tokens.map((key) => html`<tr key=${key}><td class="dim">tokens, ${key.replace("_", " ")}</td><td class="r num">${count(a.tokens?.[key])}</td><td class="r num">${count(b.tokens?.[key])}</td><td class="r num dim">${ratio(a.tokens?.[key], b.tokens?.[key])}</td></tr>`)}</tbody></table></section>
    <section><h2>Where the time went</h2><table class="list">${head("part")}<tbody>${parts.map(({ key, x, y }) => html`<tr key=${key}>
      <td><i class=${`dot k-${key}`}></i>${LABELS[key]}</td><td class="r num">${duration(x)}${bar(key, x)}</td><td class="r num">${duration(y)}${bar(key, y)}</td><td class="r num dim">${ratio(x, y)}</td></tr>`)}</tbody></table></section>
    <section><h2>Tools</h2><table class="list">${head("tool")}<tbody>${tools.map((row) => html`<tr key=${row.name}><td>${visible(row.name)}</td><td class="r num">${used(row.a)}</td><td class="r num">${used(row.b)}</td><td class="r num dim">${ratio(row.a.dur_us, row.b.dur_us)}</td></tr>`)}</tbody></table></section>
    <section><h2>Files that were edited</h2>${[{ name: "in both", list: files.both }, { name: "only in a", list: files.only_a }, { name: "only in b", list: files.only_b }].map((one) => html`<${Paths} key=${one.name} ...${one} />`)}</section></div>`;
}

/** @param {{ name: string, list: string[] }} props */
function Paths({ name, list }) {
  const [all, setAll] = useState(false);
  if (!list.length) return null;
  const shown = all ? list : list.slice(0, FILES_MAX);
  return html`<h3>${name} <span class="num">${list.length}</span></h3><ul class="plain blurry">${shown.map((path) => html`<li key=${path}>${visible(path)}</li>`)}</ul>
    ${shown.length < list.length && html`<button type="button" class="link" onClick=${() => setAll(true)}>${list.length - shown.length} more</button>`}`;
}

/** `× 2.1`, or a dash if there is nothing to compare. @param {number | null | undefined} x @param {number | null | undefined} y */
function ratio(x, y) {
  if (x == null || y == null || !(x > 0) || !(y >= 0)) return "–";
  return `× ${(y / x).toFixed(y / x < 10 ? 2 : 0)}`;
}
