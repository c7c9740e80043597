// Insights into a session: findings with evidence, where its time went, exports, and deleting it.
/** @import { Finding, Session, Turn as TurnItem } from "../../types/answers" */
/** @import { Failure } from "../../types/app" */
/** @import { Trace } from "../../types/trace" */
import { onText } from "../ui/fields.js";
import { html, useEffect, useMemo, useState } from "../ui/html.js";
import { enc, post, save } from "../net/api.js";
import { criticalPath } from "../trace/critical-path.js";
import { count, duration } from "../format/quantity.js";
import { clock } from "../format/time.js";
import { byTool } from "../trace/tool-totals.js";
import { turnsByRow } from "../trace/turns.js";
import { visible } from "../format/text.js";
import { Trouble } from "../ui/page.js";
import { useAnswer } from "../ui/use-answer.js";

const FORMATS = [
  ["html", "one page to read anywhere"], ["jsonl", "the raw hooks"], ["otlp-json", "spans as OTLP"], ["chrome-trace", "for Perfetto"],
];
const SHOWN = 6;
/** Findings of one kind that are shown at first. */
const OF_KIND = 3;

/** @typedef {TurnItem & { dur_us: number }} FinishedTurn */
/** @param {TurnItem} turn @returns {turn is FinishedTurn} */
const finished = (turn) => Boolean(turn.dur_us);

/** @param {{ id: string, trace: Trace | null, rev: number, turns: TurnItem[], session: Session | null, show: (row: number) => void, leave: () => void }} props */
export function Insights({ id, trace, rev, turns, session, show, leave }) {
  const { data, error, reload } = useAnswer(`sessions/${enc(id)}/lints`);
  useEffect(() => { if (data) reload(); }, [rev]);
  const tools = useMemo(() => (trace ? byTool(trace, Date.now() * 1_000 - trace.t0).slice(0, 12) : []), [trace, rev]);
  const slow = useMemo(() => turns.filter(finished).toSorted((a, b) => b.dur_us - a.dur_us).slice(0, 3), [turns]);
  if (!trace || !session) return html`<section class="insights"></section>`;
  return html`<section class="insights" aria-label="Insights">
    <div><h2>Findings</h2>
      ${error && html`<${Trouble} error=${error} reload=${reload} />`}
      ${data?.items.length === 0 && html`<p class="calm">✓ Nothing stands out.</p>`}
      ${byKind(data?.items ?? []).map(([kind, remarks]) => html`<${Kind} key=${kind} remarks=${remarks} trace=${trace} show=${show} />`)}
      ${slow.length > 0 && html`<h2>What the longest turns waited for</h2>${slow.map((turn) => html`<${Turn} key=${turn.id} turn=${turn} trace=${trace} show=${show} />`)}`}</div>
    <div><h2>By tool</h2>
      <table class="list"><thead><tr><th class="wide">tool</th><th class="r">calls</th><th class="r">failed</th><th class="r">time</th></tr></thead>
        <tbody>${tools.map((row) => html`<tr key=${row.name}><td class="wide"><i class=${`dot k-${row.kind}`}></i>${visible(row.name)}</td><td class="r num">${count(row.n)}</td>
          <td class=${row.errors ? "r num bad" : "r dim"}>${row.errors || "–"}</td><td class="r num">${row.us === null ? "?" : duration(row.us)}</td></tr>`)}</tbody></table>
      <h2>Compare</h2><p><a href=${`/compare?a=${enc(id)}`}>Compare with…</a></p>
      <${Files} id=${id} />
      <${Remove} id=${id} leave=${leave} /></div></section>`;
}

/** Findings by kind, each list with the costliest first. @param {Finding[]} items @returns {[string, Finding[]][]} */
function byKind(items) {
  const kinds = [...new Set(items.map((one) => one.kind))];
  return kinds.map((kind) => /** @type {[string, Finding[]]} */ ([kind, items.filter((one) => one.kind === kind)])).map(([kind, list]) => [kind, list.toSorted((a, b) => b.cost_us - a.cost_us || b.count - a.count)]);
}

/** The first findings of one kind, and a button for the others. @param {{ remarks: Finding[], trace: Trace, show: (row: number) => void }} props */
function Kind({ remarks, trace, show }) {
  const [all, setAll] = useState(false);
  const rows = all ? remarks : remarks.slice(0, OF_KIND);
  return html`${rows.map((remark) => html`<${Remark} key=${remark.url + remark.title} remark=${remark} trace=${trace} show=${show} />`)}
    ${rows.length < remarks.length && html`<p><button type="button" class="link" onClick=${() => setAll(true)}>${remarks.length - rows.length} more of this kind</button></p>`}`;
}

/** @param {{ remark: Finding, trace: Trace, show: (row: number) => void }} props */
function Remark({ remark, trace, show }) {
  const [all, setAll] = useState(false);
  const rows = all ? remark.evidence : remark.evidence.slice(0, SHOWN);
  return html`<article class="card remark"><h3><span class="warn">▲</span> <span class="blurry">${visible(remark.title)}</span> <span class="dim num">${remark.count} ×${remark.cost_us > 0 ? ` · ${duration(remark.cost_us)}` : ""}</span></h3>
    <p class="dim">${visible(remark.explanation)}</p>
    <p class="evidence">${rows.map((one) => html`<button type="button" class="chip" key=${one.id} title=${visible(one.label)} onClick=${() => show(one.row)}>${turnOf(trace, one.row)} <span class="num dim">${clock(one.at_us).slice(0, 8)}</span></button>`)}
      ${!all && remark.evidence.length > SHOWN && html`<button type="button" class="link" onClick=${() => setAll(true)}>${remark.evidence.length - SHOWN} more</button>`}</p></article>`;
}

/** The turn that holds a row. Its label begins "turn" and its number. @param {Trace} trace @param {number} row */
function turnOf(trace, row) {
  const kind = trace.kinds.indexOf("turn");
  let at = trace.index.get(row) ?? -1;
  while (at >= 0 && trace.kind[at] !== kind) at = trace.parent[at];
  return at < 0 ? "show" : visible(trace.strs[trace.label[at]].split(" ").slice(0, 2).join(" "));
}

/** @param {{ turn: FinishedTurn, trace: Trace, show: (row: number) => void }} props */
function Turn({ turn, trace, show }) {
  const top = useMemo(() => {
    for (const [i, one] of turnsByRow(trace, [turn])) if (one === turn) return i;
    return -1;
  }, [trace, turn.n]);
  const path = useMemo(() => (top < 0 ? null : criticalPath(trace, top, trace.start[top] + turn.dur_us)), [trace, top]);
  if (!path) return null;
  const steps = path.steps.toSorted((a, b) => b.us - a.us).slice(0, 5);
  /** @param {number} us */
  const share = (us) => `${Math.round((us / turn.dur_us) * 100)}%`;
  return html`<article class="card remark"><h3><button type="button" class="link" onClick=${() => show(trace.row[top])}>turn ${turn.n}</button> <span class="num">${duration(turn.dur_us)}</span> <span class="dim blurry">${visible((turn.prompt ?? "").slice(0, 90))}</span></h3>
    <ul class="plain path-steps">${steps.map(({ i, us }) => html`<li key=${i}><span class="num r">${share(us)}</span><span class="num r">${duration(us)}</span><button type="button" class="plain-button blurry" onClick=${() => show(trace.row[i])}><i class=${`dot k-${trace.kinds[trace.kind[i]]}`}></i>${visible(trace.strs[trace.label[i]])}</button></li>`)}
      <li><span class="num r">${share(path.own)}</span><span class="num r">${duration(path.own)}</span><span class="dim"><i class="dot k-other"></i>model time</span></li></ul></article>`;
}

/** @param {{ id: string }} props */
function Files({ id }) {
  const [content, setContent] = useState("metadata");
  return html`<h2>Export</h2><p><label class="field">content <select value=${content} onChange=${onText(setContent)}>
      <option value="off">none</option><option value="metadata">names and sizes</option><option value="full">everything</option></select></label></p>
    <ul class="plain files">${FORMATS.map(([format, what]) => html`<li><button type="button" class="link" onClick=${() => save(`sessions/${enc(id)}/export?format=${format}&content=${content}`)}>${format}</button> <span class="dim">${what}</span></li>`)}</ul>`;
}

/** @param {{ id: string, leave: () => void }} props */
function Remove({ id, leave }) {
  const [sure, setSure] = useState(false);
  const [error, setError] = useState(/** @type {Failure | null} */ (null));
  const [busy, setBusy] = useState(false);
  const remove = () => {
    setBusy(true);
    post(`sessions/${enc(id)}/delete`, { confirm: id }).then(leave, setError).finally(() => setBusy(false));
  };
  return html`<h2>Delete</h2><p class="dim">Deletes rows, search index, raw hooks, and spans that wait to be sent. Spans already sent stay there.</p>
    ${sure ? html`<p><button type="button" class="danger" disabled=${busy} onClick=${remove}>Delete this session for good</button> <button type="button" onClick=${() => setSure(false)}>keep it</button></p>`
    : html`<p><button type="button" onClick=${() => setSure(true)}>Delete this session …</button></p>`}
    ${error && html`<${Trouble} error=${error} />`}`;
}
