// The pane beside the waterfall: one span in full.
import { html, useEffect, useState } from "../ui/html.js";
import { safeLink } from "../format/text.js";
import { bytes, clock, date, duration } from "../format/quantity.js";
import { visible } from "../format/text.js";
import { Loading, Trouble, useAnswer } from "../ui/pieces.js";
import { Payload } from "./payload.js";

const TIMING = {
  measured: "measured",
  inferred_start: "start inferred",
  inferred_end: "end inferred",
  inferred: "start and end inferred",
};

// Hooks that took this share of a call, and more than this, are pointed out.
const HOOK_SHARE = 0.05;
const HOOK_MIN_US = 5_000;
const RAW = "raw";
const OTLP = "otlp";

export function Detail({ span, rev, onGo, onLoaded, onFocus, group }) {
  const { data, error, reload } = useAnswer(span ? `spans/${span}` : null);
  const [tab, setTab] = useState(null);
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
  const chosen = names.includes(tab) ? tab : names[0];
  const item = parts.find((one) => one.part === chosen);
  const link = data.attributes["hookspan.subagent.link"];
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const next = names[(names.indexOf(chosen) + step + names.length) % names.length];
    setTab(next);
    event.currentTarget.querySelector(`#tab-${CSS.escape(next)}`)?.focus();
  };
  return html`<article class=${stale ? "detail stale" : "detail"} aria-busy=${stale}>
    <${Path} path=${data.path} onGo=${onGo} />
    ${group > 0 && html`<p class="dim group-note">the first of ${group} equal calls; <kbd>→</kbd> shows all</p>`}
    <h2 class="blurry"><i class=${`dot k-${data.kind}`}></i>${visible(data.label)}</h2>
    <dl class="facts">
      <dt>kind</dt><dd>${data.kind}</dd>
      <dt>start</dt><dd class="num" title=${date(data.start_us)}>${clock(data.start_us)}</dd>
      <dt>duration</dt><dd class="num">${data.dur_us === null ? stillOpen(data.kind) : duration(data.dur_us)}
        ${data.timing && html` <span class="dim">${TIMING[data.timing] ?? "other"}</span>`}</dd>
      ${data.wait_us > 0 && html`<dt>wait</dt><dd class="num">${duration(data.wait_us)} <span class="dim">derived</span></dd>`}
      ${data.hook_us !== null && html`<dt>hook cost</dt><dd class="num">${duration(data.hook_us)} ${costly(data) && html`<span class="warn">▲ a notable part</span>`}</dd>`}
      ${link && html`<dt>link</dt><dd><span class=${/^(exact|transcript)$/.test(link) ? "" : "warn"}>${visible(link)}</span>${data.attributes["hookspan.subagent.link.source"] ? html` <span class="dim">${visible(data.attributes["hookspan.subagent.link.source"])}</span>` : ""}
        <button type="button" class="link" onClick=${() => onFocus(data.id)}>this subagent alone (s)</button></dd>`}
      <dt>status</dt><dd>${data.status === "error"
        ? html`<span class="bad">✕ error</span> ${visible(data.message ?? data.error_type)}`
        : { ok: "✓ ok", open: "… open", unknown: "? no end seen" }[data.status] ?? "other"}</dd>
      ${data.end_reason && html`<dt>end</dt><dd>${data.end_reason}</dd>`}
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
      ${chosen === RAW && hooks.map((hook, i) => html`<details class="hook" open=${i === hooks.length - 1} key=${hook.part}><summary>hook ${HOOK.exec(hook.part)[1]} <span class="dim">${bytes(hook.bytes)}</span></summary>
        <${Payload} key=${`${data.id} ${hook.part}`} span=${data.id} item=${hook} /></details>`)}
      ${chosen === OTLP && html`<${Attributes} data=${data} />`}
    </div>
  </article>`;
}

function stillOpen(kind) {
  return kind === "turn" || kind === "session" ? "still running" : "still open: running or waiting for approval";
}

const HOOK = /^hook-(\d+)$/;

function Path({ path, onGo }) {
  if (!path.length) return null;
  return html`<nav class="path blurry" aria-label="Path">${path.map((step) => html`
    <button type="button" class="link" onClick=${() => onGo(step.row)}>${visible(step.label)}</button><span aria-hidden="true"> › </span>`)}</nav>`;
}

function Attributes({ data }) {
  const list = Object.entries(data.attributes);
  return html`<div class="payload">
    <dl class="attributes">
      <dt>name</dt><dd class="blurry">${visible(data.name)}</dd>
      <dt>span id</dt><dd class="num">${data.id}</dd>
      <dt>trace id</dt><dd class="num">${data.trace_id}</dd>
      ${list.map(([key, value]) => html`<dt>${visible(key)}</dt><dd class="blurry">${visible(Array.isArray(value) ? value.join(", ") : value)}</dd>`)}
    </dl>
    ${elsewhere(data).length > 0 && html`<h3>look at it elsewhere</h3><ul class="plain">${elsewhere(data).map(({ name, url }) => html`<li><a href=${url} target="_blank" rel="noopener noreferrer" title=${url}>${visible(name)}</a></li>`)}</ul>`}
    ${data.events.length > 0 && html`<h3>events</h3><ul class="plain">${data.events.map((event) => html`<li><span class="num dim">${clock(event.at_us)}</span> ${visible(event.name)}</li>`)}</ul>`}
    ${data.links.length > 0 && html`<h3>links</h3><ul class="plain">${data.links.map((link) => html`<li>${visible(link.type)} <a class="num" href=${link.url}>${link.id}</a></li>`)}</ul>`}
  </div>`;
}

// Addresses of other viewers, which the configuration names; only what is a web address becomes a link.
function elsewhere(data) {
  return (data.open_in ?? []).map(({ name, url }) => ({ name, url: safeLink(url) })).filter(({ url }) => url !== null);
}

function costly({ hook_us: hook, dur_us: whole }) {
  return hook > HOOK_MIN_US && whole > 0 && hook / whole > HOOK_SHARE;
}
