// The pane beside the waterfall: one span in full.
import { html, useEffect, useState } from "../html.js";
import { bytes, clock, date, duration } from "../format.js";
import { visible } from "../text.js";
import { Loading, Trouble, useAnswer } from "../ui.js";
import { Payload } from "./payload.js";

const TIMING = {
  measured: "measured",
  inferred_start: "start inferred",
  inferred_end: "end inferred",
  inferred: "start and end inferred",
};

export function Detail({ span, rev, onGo, onLoaded }) {
  const { data, error, reload } = useAnswer(span ? `spans/${span}` : null);
  const [tab, setTab] = useState(null);
  useEffect(() => { if (data && data.dur_us === null) reload(); }, [rev]);
  useEffect(() => {
    if (data && String(data.row) === String(span)) onLoaded(data);
  }, [data]);
  if (!span) return html`<p class="dim pad">Choose a row: its times, attributes and content appear here.</p>`;
  if (error) return html`<${Trouble} error=${error} reload=${reload} />`;
  if (!data) return html`<${Loading} />`;
  const stale = String(data.row) !== String(span);
  const tabs = data.payloads;
  const names = [...tabs.map((item) => item.part), "attributes"];
  const chosen = names.includes(tab) ? tab : names[0];
  const item = tabs.find((one) => one.part === chosen);
  return html`<article class=${stale ? "detail stale" : "detail"} aria-busy=${stale}>
    <${Path} path=${data.path} onGo=${onGo} />
    <h2 class="blurry"><i class=${`dot k-${data.kind}`}></i>${visible(data.label)}</h2>
    <dl class="facts">
      <dt>kind</dt><dd>${data.kind}</dd>
      <dt>start</dt><dd class="num" title=${date(data.start_us)}>${clock(data.start_us)}</dd>
      <dt>duration</dt><dd class="num">${data.dur_us === null ? stillOpen(data.kind) : duration(data.dur_us)}
        <span class="dim"> ${TIMING[data.timing] ?? ""}</span></dd>
      ${data.wait_us > 0 && html`<dt>wait</dt><dd class="num">${duration(data.wait_us)} <span class="dim">derived</span></dd>`}
      ${data.hook_us !== null && html`<dt>hook cost</dt><dd class="num">${duration(data.hook_us)}</dd>`}
      <dt>status</dt><dd>${data.status === "error"
        ? html`<span class="bad">✕ error</span> ${visible(data.message ?? data.error_type)}`
        : { ok: "✓ ok", open: "… open", unknown: "? no end seen" }[data.status] ?? "other"}</dd>
      ${data.end_reason && html`<dt>end</dt><dd>${data.end_reason}</dd>`}
      ${data.export.length > 0 && html`<dt>export</dt><dd>${data.export.map((one) => html`<span class="chip">${visible(one.destination)} ${visible(one.state)}</span>`)}</dd>`}
    </dl>
    <div class="tabs" role="tablist" aria-label="Content">
      ${names.map((name) => {
        const part = tabs.find((one) => one.part === name);
        return html`<button type="button" role="tab" id=${`tab-${name}`} aria-selected=${name === chosen} aria-controls="tab-panel" onClick=${() => setTab(name)}>
          ${tabTitle(part)}${part && part.bytes > 1_023 && html`<span class="dim"> ${bytes(part.bytes)}</span>`}</button>`;
      })}
    </div>
    <div id="tab-panel" role="tabpanel" aria-labelledby=${`tab-${chosen}`}>
      ${item ? html`<${Payload} key=${`${data.id} ${item.part}`} span=${data.id} item=${item} />` : html`<${Attributes} data=${data} />`}
    </div>
  </article>`;
}

function stillOpen(kind) {
  return kind === "turn" || kind === "session" ? "still running" : "still open: running or waiting for approval";
}

function tabTitle(part) {
  if (!part) return "Attributes";
  const hook = /^hook-(\d+)$/.exec(part.part)?.[1];
  return hook ? `Hook ${hook}` : part.title;
}

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
    ${data.events.length > 0 && html`<h3>events</h3><ul class="plain">${data.events.map((event) => html`<li><span class="num dim">${clock(event.at_us)}</span> ${visible(event.name)}</li>`)}</ul>`}
    ${data.links.length > 0 && html`<h3>links</h3><ul class="plain">${data.links.map((link) => html`<li>${visible(link.type)} <a class="num" href=${link.url}>${link.id}</a></li>`)}</ul>`}
  </div>`;
}
