// The pane beside the waterfall: one span in full.
/** @import { DetailProps } from "../../types/session" */
/** @import { PathStep, SpanDetail } from "../../types/answers" */
/** @import { Act } from "../ui/value.js" */
import { html, useEffect, useState } from "../ui/html.js";
import { bytes, duration } from "../format/quantity.js";
import { clock, date } from "../format/time.js";
import { safeLink, visible } from "../format/text.js";
import { Loading, Trouble } from "../ui/page.js";
import { useAnswer } from "../ui/use-answer.js";
import { Value } from "../ui/value.js";
import { enc } from "../net/api.js";
import { Payload } from "./payload.js";

/** @type {Record<string, string>} */
const TIMING = {
  measured: "measured",
  inferred_start: "start inferred",
  inferred_end: "end inferred",
  inferred: "start and end inferred",
};

// Hooks are mentioned if they took more than this share of a call, and more than this time.
const HOOK_SHARE = 0.05;
const HOOK_MIN_US = 5_000;
/** @type {Record<string, string>} */
const STATUS = { ok: "✓ ok", open: "… open", unknown: "? no end seen" };
const RAW = "raw";
const OTLP = "otlp";

/** @param {DetailProps} props */
export function Detail({ span, rev, onGo, onLoaded, onFocus, group, filter }) {
  const { data, error, reload } = useAnswer(span ? `spans/${enc(span)}` : null);
  const [tab, setTab] = useState(/** @type {string | null} */ (null));
  useEffect(() => { if (data && data.dur_us === null) reload(); }, [rev]);
  useEffect(() => {
    if (data && String(data.row) === String(span)) onLoaded(data);
  }, [data]);
  if (!span) return html`<p class="dim pad">Choose a row: its times, attributes and content appear here.</p>`;
  if (error) return html`<${Trouble} error=${error} reload=${reload} />`;
  if (!data) return html`<${Loading} />`;
  const hooks = data.payloads.filter((item) => HOOK.test(item.part));
  const parts = data.payloads.filter((item) => !HOOK.test(item.part));
  const stale = String(data.row) !== String(span);
  const names = [...parts.map((item) => item.part), ...(hooks.length ? [RAW] : []), OTLP];
  // If the call failed, its output says why.
  const telling = data.status === "error" ? names.find((name) => name === "output" || name === "error") : undefined;
  const chosen = names.find((name) => name === tab) ?? telling ?? names[0];
  const item = parts.find((one) => one.part === chosen);
  const link = text(data.attributes["hookspan.subagent.link"]);
  const source = text(data.attributes["hookspan.subagent.link.source"]);
  /** @param {KeyboardEvent} event */
  const move = (event) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step || !(event.currentTarget instanceof HTMLElement)) return;
    event.preventDefault();
    event.stopPropagation();
    const next = names[(names.indexOf(chosen) + step + names.length) % names.length];
    setTab(next);
    /** @type {HTMLElement | null} */
    const button = event.currentTarget.querySelector(`#tab-${CSS.escape(next)}`);
    button?.focus();
  };
  return html`<article class=${stale ? "detail stale" : "detail"} aria-busy=${stale}>
    <${Path} path=${data.path} onGo=${onGo} />
    ${group > 0 && html`<p class="dim group-note">the first of ${group} equal calls; <kbd>→</kbd> shows all</p>`}
    <h2 class="blurry"><i class=${`dot k-${data.kind}`}></i>${visible(data.label)}</h2>
    <dl class="facts">
      <dt>kind</dt><dd><${Value} value=${data.kind} acts=${rowsWith("kind", data.kind, filter)} /></dd>
      <dt>start</dt><dd class="num" title=${date(data.start_us)}>${clock(data.start_us)}</dd>
      <dt>duration</dt><dd class="num">${data.dur_us === null ? (data.end_reason ? "?" : stillOpen(data.kind)) : duration(data.dur_us)}
        ${data.timing && html` <span class="dim">${TIMING[data.timing] ?? "other"}</span>`}</dd>
      ${data.wait_us !== null && data.wait_us > 0 && html`<dt>wait</dt><dd class="num">${duration(data.wait_us)} <span class="dim">derived</span></dd>`}
      ${data.hook_us !== null && html`<dt>hook cost</dt><dd class="num">${duration(data.hook_us)} ${costly(data) && html`<span class="warn">▲ a notable part</span>`}</dd>`}
      ${link && html`<dt>link</dt><dd><span class=${/^(exact|transcript)$/.test(link) ? "" : "warn"}>${visible(link)}</span>${source ? html` <span class="dim">${visible(source)}</span>` : ""}
        <button type="button" class="link" onClick=${() => onFocus(data.id)}>focus subagent (s)</button></dd>`}
      <dt>status</dt><dd><${Value} value=${data.message ?? data.status} acts=${rowsWith("status", data.status, filter)}>${data.status === "error"
        ? html`<span class="bad">✕ error</span> ${visible(data.message ?? data.error_type)}`
        : STATUS[data.status] ?? "other"}<//></dd>
      ${data.end_reason && html`<dt>end</dt><dd>${data.end_reason}</dd>`}
      ${data.file_url && html`<dt>file</dt><dd><a href=${data.file_url}>who read and changed it</a></dd>`}
      ${data.export.length > 0 && html`<dt>export</dt><dd>${data.export.map((one) => html`<span class="chip">${visible(one.destination)} ${visible(one.state)}</span>`)}</dd>`}
    </dl>
    <div class="tabs" role="tablist" aria-label="Content" onKeyDown=${move}>
      ${names.map((name) => {
        const part = parts.find((one) => one.part === name);
        return html`<button type="button" role="tab" id=${`tab-${name}`} tabIndex=${name === chosen ? 0 : -1} aria-selected=${name === chosen} aria-controls="tab-panel" onClick=${() => setTab(name)}>
          ${part ? part.title : name === RAW ? "Raw hooks" : "OTLP"}${part && part.bytes > 1_023 && html`<span class="dim"> ${bytes(part.bytes)}</span>`}${name === RAW && hooks.length > 1 && html`<span class="dim"> ${hooks.length}</span>`}</button>`;
      })}
    </div>
    <div id="tab-panel" role="tabpanel" aria-labelledby=${`tab-${chosen}`}>
      ${item && html`<${Payload} key=${`${data.id} ${item.part}`} span=${data.id} item=${item} />`}
      ${chosen === RAW && hooks.map((hook, i) => html`<details class="hook" open=${i === hooks.length - 1} key=${hook.part}><summary>hook ${HOOK.exec(hook.part)?.[1]} <span class="dim">${bytes(hook.bytes)}</span></summary>
        <${Payload} key=${`${data.id} ${hook.part}`} span=${data.id} item=${hook} /></details>`)}
      ${chosen === OTLP && html`<${Attributes} data=${data} filter=${filter} />`}
    </div>
  </article>`;
}

/** The text of an attribute; empty if it is missing or not text. @param {unknown} value */
const text = (value) => (typeof value === "string" ? value : "");

/** @param {string} kind */
function stillOpen(kind) {
  return kind === "turn" || kind === "session" ? "still running" : "still open: running or waiting for approval";
}

const HOOK = /^hook-(\d+)$/;

/** @param {{ path: PathStep[], onGo: (row: number) => void }} props */
function Path({ path, onGo }) {
  if (!path.length) return null;
  return html`<nav class="path blurry" aria-label="Path">${path.map((step) => html`
    <button type="button" class="link" onClick=${() => onGo(step.row)}>${visible(step.label)}</button><span aria-hidden="true"> › </span>`)}</nav>`;
}

/** The actions for a value by which rows can be filtered. @param {string} name @param {string} value @param {DetailProps["filter"]} filter @returns {Act[]} */
function rowsWith(name, value, filter) {
  if (/\s/.test(value)) return [];
  return [["only this", "=", () => filter(`${name}:${value}`)], ["without", "-", () => filter(`-${name}:${value}`)]];
}

/** Attributes by which sessions are filtered, with the filter's word. @type {Record<string, string>} */
const SESSIONS = { "gen_ai.request.model": "model", "vcs.ref.head.name": "branch" };

/** @param {string} key @param {string} value @param {DetailProps["filter"]} filter @returns {Act[]} */
function actsOf(key, value, filter) {
  if (key === "gen_ai.tool.name") return [...rowsWith("tool", value, filter), ["sessions", "", `/sessions?tool=${enc(value)}`]];
  return SESSIONS[key] ? [["sessions", "", `/sessions?${SESSIONS[key]}=${enc(value)}`]] : [];
}

/** @param {{ data: SpanDetail, filter: DetailProps["filter"] }} props */
function Attributes({ data, filter }) {
  const list = [["name", data.name], ["span id", data.id], ["trace id", data.trace_id], ...Object.entries(data.attributes)];
  return html`<div class="payload">
    <dl class="attributes">
      ${list.map(([key, value]) => [key, Array.isArray(value) ? value.join(", ") : String(value)]).map(([key, value]) => html`<dt>${visible(key)}</dt><dd><${Value} value=${value} acts=${actsOf(key, value, filter)} /></dd>`)}
    </dl>
    ${elsewhere(data).length > 0 && html`<h3>open in</h3><ul class="plain">${elsewhere(data).map(({ name, url }) => html`<li><a href=${url} target="_blank" rel="noopener noreferrer" title=${url}>${visible(name)}</a></li>`)}</ul>`}
    ${data.events.length > 0 && html`<h3>events</h3><ul class="plain">${data.events.map((event) => html`<li><span class="num dim">${clock(event.at_us)}</span> ${visible(event.name)}</li>`)}</ul>`}
    ${data.received.length > 0 && html`<h3>received over OTLP</h3><ul class="plain">${data.received.map((one) => html`<li class="blurry" title=${`${visible(one.service)}, joined by ${one.joined}`}>${"\u2003".repeat(Math.min(one.depth, 8))}${one.failed ? "✗ " : ""}${visible(one.name)} <span class="num dim">${duration(one.dur_us)}</span></li>`)}</ul>`}
    ${data.links.length > 0 && html`<h3>links</h3><ul class="plain">${data.links.map((link) => html`<li>${visible(link.type)} <a class="num" href=${link.url}>${link.id}</a></li>`)}</ul>`}
  </div>`;
}

/** Links to other viewers, as configured. Only web addresses become links. @param {SpanDetail} data */
function elsewhere(data) {
  return data.open_in.map(({ name, url }) => ({ name, url: safeLink(url) })).filter(({ url }) => url !== null);
}

/** Whether hooks took a notable part of a call. @param {SpanDetail} span */
function costly({ hook_us: hook, dur_us: whole }) {
  return hook !== null && whole !== null && hook > HOOK_MIN_US && whole > 0 && hook / whole > HOOK_SHARE;
}
