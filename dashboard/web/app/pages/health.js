// hookspan's own state.
/** @import { Exporter as Destination, Health as Answer } from "../../types/answers" */
/** @import { Children } from "../../types/app" */
import { html, useEffect } from "../ui/html.js";
import { enc, post } from "../net/api.js";
import { bytes, duration, plural } from "../format/quantity.js";
import { visible } from "../format/text.js";
import { Age } from "../ui/clock.js";
import { Page, useTitle } from "../ui/page.js";
import { useAnswer } from "../ui/use-answer.js";
import { sheet } from "../ui/sheet.js";

await sheet("pages");

const POLL_MS = 3_000;

export function Health() {
  const { data, error, reload } = useAnswer("health", (event) => event === "health");
  useTitle("Health");
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && reload(), POLL_MS);
    return () => clearInterval(timer);
  }, []);
  return html`<${Page} title="Health" error=${error} reload=${reload} ready=${data}>${() => data && html`
    ${!data.token_required && html`<p class="warning" role="note">▲ Started with --no-token: every account on this machine can read this port.</p>`}
    <${Shim} shim=${data.shim} versions=${data.versions} />
    <${Spool} data=${data} />
    <h2>Destinations</h2>
    ${data.exporters.length === 0 ? html`<p class="dim">None configured: nothing leaves this machine.</p>` : html`
    <table class="list"><thead><tr><th>name</th><th>endpoint</th><th>state</th><th class="r">last ok</th><th class="r">delivered</th><th class="r">queued</th><th class="r">lost</th><th class="wide">last error</th><th><span class="sr">action</span></th></tr></thead>
      <tbody>${data.exporters.map((one) => html`<${Exporter} key=${one.name} one=${one} reload=${reload} />`)}</tbody></table>`}
    <${Unknown} title="Events hookspan does not know" list=${data.unknown_events} />
    <${Unknown} title="Fields hookspan does not know" list=${data.unknown_fields} />
    <${Unknown} title="Values hookspan does not know" list=${data.unknown_values} />
    <${Drift} report=${data.drift_report} />
    <h2>Counters</h2>
    ${Object.keys(data.counters).length === 0 && html`<p class="dim">None yet.</p>`}
    <dl class="counters">${Object.entries(data.counters).map(([name, n]) => html`<div><dt>${visible(name)}</dt><dd class="num">${n.toLocaleString("en")}</dd></div>`)}</dl>`}<//>`;
}

/** @param {{ name: string, note?: Children, tone?: string, children?: Children }} props */
function Tile({ name, note, tone, children }) {
  return html`<div><dt>${name}</dt><dd class=${tone ?? ""}>${children}${note && html` <small class="dim">${note}</small>`}</dd></div>`;
}

/** @param {{ shim: Answer["shim"], versions: Answer["versions"] }} props */
function Shim({ shim, versions }) {
  const installed = versions.shim;
  return html`<h2>Hook program</h2><div class="shim"><dl class="tiles">
    ${shim && html`<${Tile} name="hook to collector, p50">${duration(shim.p50_us)}<//><${Tile} name="p99">${duration(shim.p99_us)}<//><${Tile} name="slowest">${duration(shim.max_us)}<//>
      <${Tile} name="over 5 ms" tone=${shim.over_budget ? "warn" : ""}>${shim.over_budget.toLocaleString("en")}<//>`}
    <${Tile} name="collector">${visible(versions.collector)}<//>
    ${installed ? html`<${Tile} name="hook program" tone=${installed === versions.collector ? "" : "warn"} note=${installed === versions.collector ? "same version" : "differs: hookspan install"}>${visible(installed)}<//>`
    : html`<${Tile} name="hook program" tone="dim" note="hookspan install">not installed<//>`}
    </dl>${shim && shim.hist.length > 0 && html`<${Histogram} hist=${shim.hist} />`}</div>
    ${!shim && html`<p class="dim">No hook has arrived in the last day.</p>`}`;
}

/** Bars of upper edges (µs) and counts. @param {{ hist: number[][] }} props */
function Histogram({ hist }) {
  const most = Math.max(1, ...hist.map(([, n]) => n));
  return html`<ol class="hist" aria-label="Time until hooks arrive: upper bound and count">${hist.map(([edge, n]) => html`
    <li title=${`up to ${duration(edge)}: ${n}`}><i style=${{ height: `${n ? Math.max(4, (n / most) * 100) : 0}%` }}></i><span class="sr">up to ${duration(edge)}: ${n}</span></li>`)}</ol>`;
}

/** @param {{ data: Answer }} props */
function Spool({ data }) {
  const { spool, queue, db } = data;
  const lost = Object.entries(data.lost).filter(([, n]) => n > 0);
  return html`<h2>Store</h2><dl class="tiles">
    <${Tile} name="journal, unread" tone=${spool.behind > 1_048_576 ? "warn" : ""} note=${spool.oldest_us ? html`<${Age} since=${spool.oldest_us} suffix=" old" />` : null}>${bytes(spool.behind)}<//>
    <${Tile} name="journal" note=${plural(spool.segments, "segment")}>${bytes(spool.bytes)}<//>
    ${queue.cap > 0 && html`<${Tile} name="queue" note=${`of ${queue.cap.toLocaleString("en")}`}>${queue.len.toLocaleString("en")}<//>`}
    <${Tile} name="lost" tone=${lost.length ? "bad" : "good"} note=${lost.map(([why, n]) => `${why} ${n}`).join(", ")}>${lost.reduce((sum, [, n]) => sum + n, 0).toLocaleString("en")}<//>
    <${Tile} name="malformed" tone=${data.parse_errors ? "warn" : ""}>${data.parse_errors.toLocaleString("en")}<//>
    <${Tile} name="database">${bytes(db.bytes)}<//><${Tile} name="write-ahead log">${bytes(db.wal)}<//>
    <${Tile} name="search index" note=${data.search.lag ? `${data.search.lag} not indexed yet` : null}>${bytes(db.fts)}<//>
  </dl>`;
}

/** @param {{ title: string, list: { name: string, n: number }[] }} props */
function Unknown({ title, list }) {
  if (!list?.length) return null;
  return html`<h2>${title}</h2><p class="dim">They are stored unchanged. A newer hookspan may understand them.</p>
    <dl class="counters">${list.map(({ name, n }) => html`<div><dt>${visible(name)}</dt><dd class="num">${n.toLocaleString("en")}</dd></div>`)}</dl>`;
}

/** Everything unknown, as a text to send. @param {{ report: string | null }} props */
function Drift({ report }) {
  if (!report) return null;
  return html`<details><summary>Report to send</summary>
    <p class="dim">Names, shapes and counts only: no content of any hook.</p><pre class="text">${visible(report)}</pre></details>`;
}

/** @type {Record<string, [icon: string, tone: string]>} */
const EXPORTER = { ok: ["✓", "good"], retry: ["↻", "warn"], paused: ["‖", "bad"], off: ["–", "dim"] };

/** @param {{ one: Destination, reload: () => void }} props */
function Exporter({ one, reload }) {
  const [icon, tone] = EXPORTER[one.state] ?? ["?", "dim"];
  const lost = Object.entries(one.lost).filter(([, n]) => n > 0);
  const metrics = one.metrics && one.metrics.state !== "ok" ? one.metrics : null;
  const words = [
    one.last_error, one.advice, one.losing && one.last_loss,
    metrics && `Metrics ${metrics.state}: ${metrics.last_error ?? ""} ${metrics.advice ?? ""}`,
  ].filter(Boolean).join(" ");
  return html`<tr class=${tone === "bad" || tone === "warn" || one.losing || metrics ? "row-bad" : ""}><td>${visible(one.name)}</td><td class="dim">${visible(one.endpoint_host)}</td>
    <td class=${tone}>${icon} ${visible(one.state)}</td><td class="r">${one.last_ok_us === null ? "never" : html`<${Age} since=${one.last_ok_us} suffix=" ago" />`}</td>
    <td class="r num">${one.delivered.toLocaleString("en")}</td><td class="r num">${one.queued.toLocaleString("en")}</td>
    <td class=${lost.length ? "r num bad" : "r dim"}>${lost.length ? lost.map(([name, n]) => `${name} ${n}`).join(", ") : "0"}</td>
    <td class="wide">${visible(words)}</td>
    <td>${(one.state === "paused" || one.state === "retry") && html`<button type="button" aria-label=${`retry ${visible(one.name)}`} onClick=${() => post(`exporters/${enc(one.name)}/retry`, {}).then(reload)}>retry</button>`}</td></tr>`;
}
