// One file: who read it, who changed it, in order.
/** @import { FileAnswer, FileTouch } from "../../types/answers" */
/** @import { PageProps } from "../../types/app" */
import { html, useLayoutEffect, useMemo, useState } from "../ui/html.js";
import { enc } from "../net/api.js";
import { duration, plural } from "../format/quantity.js";
import { clock, date } from "../format/time.js";
import { visible } from "../format/text.js";
import { Change } from "../ui/change.js";
import { iso, saveCsv } from "../ui/csv.js";
import { Choice, useQuery } from "../ui/fields.js";
import { bind } from "../ui/keys.js";
import { Lines } from "../ui/lines.js";
import { notify } from "../ui/notify.js";
import { Page, useTitle } from "../ui/page.js";
import { useRange } from "../ui/range.js";
import { sheet } from "../ui/sheet.js";
import { useAnswer } from "../ui/use-answer.js";
import { blocks } from "./file-blocks.js";
import { withRange } from "./files.js";

await sheet("pages");
await sheet("files");

/** Diffs that are shown at first. */
const DIFFS = 4;

/** @param {PageProps} props */
export function File({ query, go }) {
  const { params, set } = useQuery("/file", query, go);
  const range = useRange({ params, set }, { first: 30 });
  const [project, path] = [params.get("project"), params.get("path") ?? ""];
  const asked = new URLSearchParams({ ...(project ? { project } : {}), path, ...range.asked });
  const { data, error, reload } = useAnswer(path ? `file?${asked}` : null, (event) => event === "spans" || event === "resync", 3_000);
  const [chosen, choose] = useState(/** @type {string | null} */ (null));
  const name = path.slice(path.lastIndexOf("/") + 1);
  useTitle(name || "File");
  const touches = useMemo(() => (data?.touches ?? []).toReversed(), [data]);
  const at = touches.findIndex((one) => one.id === chosen);
  /** @param {number} step */
  const move = (step) => touches.length && choose(touches[Math.max(0, Math.min(touches.length - 1, at < 0 ? touches.length - 1 : at + step))].id);
  useLayoutEffect(() => bind({
    j: () => move(1), k: () => move(-1), ArrowRight: () => move(1), ArrowLeft: () => move(-1),
    Enter: () => touches[at] && go(touches[at].url), Escape: () => (chosen ? choose(null) : go(withRange("/files?", params).replace("?&", "?"))),
  }), [data, chosen, query]);
  const copy = () => navigator.clipboard?.writeText(path).then(() => notify("path copied"), () => notify("the browser did not allow copying"));
  const tools = html`<span class="blurry file-path">${project && html`<a href=${`/files?project=${enc(project)}`}>${visible(project)}</a> / `}<span class="dim">${visible(path.slice(0, -name.length))}</span><b>${visible(name)}</b></span>
    <button type="button" onClick=${copy}>copy path</button>${range.control}
    <button type="button" disabled=${!touches.length} onClick=${() => save(name, touches)}>CSV</button>`;
  return html`<${Page} title="File" tools=${tools} error=${error} reload=${reload} ready=${data || !path}>${() => (!data ? html`<p class="dim pad-y">Choose a file from <a href="/files">Files</a>.</p>` : touches.length === 0
    ? html`<p class="dim pad-y">No agent read or changed this file in this period. <button type="button" class="link" onClick=${() => set({ days: "365", from_us: "", to_us: "" })}>Show a year</button></p>`
    : html`<${Sums} data=${data} /><${Strip} touches=${touches} sessions=${data.sessions} chosen=${touches[at] ?? null} choose=${choose} />
      <div class="file-halves"><div><${Sessions} data=${data} chosen=${touches[at] ?? null} /><${Beside} data=${data} params=${params} /></div><${Edits} touches=${touches} /></div>`)}<//>`;
}

/** @param {{ data: FileAnswer }} props */
function Sums({ data: { sums, sessions, more } }) {
  /** @param {"reads" | "edits"} key */
  const within = (key) => plural(sessions.filter((one) => one[key] > 0).length, "session");
  const last = sessions.find((one) => one.edits > 0);
  return html`<dl class="tiles">
    <div><dt>read</dt><dd>${sums.reads} × <small class="dim">in ${within("reads")}</small></dd></div>
    <div><dt>edited</dt><dd>${sums.edits} × <small class="dim">in ${within("edits")}</small></dd></div>
    <div><dt>lines</dt><dd><${Lines} of=${sums} /></dd></div>
    <div><dt>failed calls</dt><dd class=${sums.errors ? "bad" : ""}>${sums.errors}</dd></div>
    <div><dt>last touch</dt><dd>${date(sums.last_us)}${last?.branch && html` <small class="dim blurry">${visible(last.branch)}</small>`}</dd></div></dl>
    ${more && html`<p class="warn">Older touches in this period are left out of all numbers: choose a shorter period.</p>`}`;
}

/** Every touch in order, or by time. A block is one session at work.
 * @param {{ touches: FileTouch[], sessions: FileAnswer["sessions"], chosen: FileTouch | null, choose: (id: string | null) => void }} props */
function Strip({ touches, sessions, chosen, choose }) {
  const [how, set] = useState("in order");
  const most = Math.max(1, ...touches.map((one) => Math.max(one.added ?? 0, one.removed ?? 0)));
  const titles = new Map(sessions.map((one) => [one.session, one.title ?? one.session]));
  const list = blocks(touches);
  const span = Math.max(1, touches[touches.length - 1].at_us - touches[0].at_us);
  /** @param {FileTouch} one */
  const mark = (one) => html`<button type="button" key=${one.id} class=${`touch touch-${one.what}${one.status === "error" ? " touch-error" : ""}${one === chosen ? " touch-chosen" : ""}`}
    title=${words(one)} aria-label=${words(one)} aria-pressed=${one === chosen} onClick=${() => choose(one === chosen ? null : one.id)}
    style=${how === "by time" ? { left: `${((one.at_us - touches[0].at_us) / span) * 98}%` } : null}>
    <i class="touch-added" style=${{ height: `${Math.sqrt((one.added ?? 0) / most) * 46}px` }}></i><i class="touch-dot"></i><i class="touch-removed" style=${{ height: `${Math.sqrt((one.removed ?? 0) / most) * 46}px` }}></i></button>`;
  return html`<section aria-labelledby="touches"><h2 id="touches">Every touch <${Choice} name="axis" values=${["in order", "by time"]} now=${how} choose=${set} />
      <span class="aside dim">${how === "in order" ? "each block is one session; pauses between blocks are shown as text" : `${date(touches[0].at_us)} to ${date(touches[touches.length - 1].at_us)}`}</span></h2>
    ${how === "by time" ? html`<div class="touches touches-time">${touches.map(mark)}</div>`
    : html`<div class="touches" tabIndex="0" role="region" aria-label="Touches, oldest first">${list.map((block) => html`${block.gap_us !== null && html`<span class="touch-gap dim num">${duration(block.gap_us)}</span>`}
      <div class="touch-block" key=${block.touches[0].id}><p class="dim num">${date(block.touches[0].at_us).slice(5)}</p><p class="blurry touch-title">${visible(titles.get(block.session))}</p><div class="touch-marks">${block.touches.map(mark)}</div></div>`)}</div>`}
    <p class="touch-line num">${chosen ? html`${words(chosen)} · <a href=${chosen.url}>open it in its session</a>` : html`<span class="dim">● read · bars: lines added and removed · red: failed · j k choose, Enter opens</span>`}</p></section>`;
}

/** @param {FileTouch} one */
function words(one) {
  const lines = one.what === "edit" && (one.added !== null || one.removed !== null) ? ` +${one.added ?? 0} −${one.removed ?? 0}` : "";
  const state = one.status === "error" ? ", failed" : one.status === "open" ? ", running" : "";
  return `${one.what}${lines}${state}, ${date(one.at_us)}${one.turn === null ? "" : `, turn ${one.turn}`}${one.dur_us === null ? "" : `, ${duration(one.dur_us)}`}`;
}

/** @param {{ data: FileAnswer, chosen: FileTouch | null }} props */
function Sessions({ data, chosen }) {
  return html`<section aria-labelledby="file-sessions"><h2 id="file-sessions">Sessions</h2>
    <table class="list numbers"><thead><tr><th class="wide">title</th><th>branch</th><th class="r">first</th><th class="r">reads</th><th class="r">edits</th><th class="r">lines</th><th class="r">failed</th></tr></thead>
      <tbody>${data.sessions.map((one) => html`<tr key=${one.session} class=${chosen?.session === one.session ? "chosen" : ""}>
        <td class="wide"><a class="blurry" href=${one.url}>${visible(one.title ?? one.session)}</a></td><td class="dim blurry">${visible(one.branch ?? "–")}</td>
        <td class="r dim num">${date(one.first_us)}</td><td class="r num">${one.reads || "–"}</td><td class="r num">${one.edits || "–"}</td>
        <td class="r num"><${Lines} of=${one} /></td><td class=${`r num ${one.errors ? "bad" : "dim"}`}>${one.errors || "–"}</td></tr>`)}</tbody></table></section>`;
}

/** @param {{ data: FileAnswer, params: URLSearchParams }} props */
function Beside({ data, params }) {
  if (!data.beside.length) return null;
  return html`<section aria-labelledby="file-beside"><h2 id="file-beside">Often touched together with it</h2>
    <ul class="plain file-beside">${data.beside.map((one) => html`<li key=${one.url}><a class="blurry" href=${withRange(one.url, params)}>${visible(one.path)}</a> <span class="dim num" title="number of the sessions above that touched it">${one.sessions} ×</span></li>`)}</ul></section>`;
}

/** @param {{ touches: FileTouch[] }} props */
function Edits({ touches }) {
  const [shown, show] = useState(DIFFS);
  const edits = useMemo(() => touches.filter((one) => one.what === "edit").toReversed(), [touches]);
  return html`<section class="file-edits" aria-labelledby="file-edits"><h2 id="file-edits">Edits by agents <span class="aside dim">newest first; line numbers are relative to the text of each change</span></h2>
    ${edits.length === 0 && html`<p class="dim">No agent changed it in this period.</p>`}
    ${edits.slice(0, shown).map((one) => html`<${Change} key=${one.id} span=${{ ...one, added: one.added ?? 0, removed: one.removed ?? 0, failed: one.status === "error" }} day=${date(one.at_us).slice(0, 10)} />`)}
    ${edits.length > shown && html`<button type="button" class="more" onClick=${() => show(shown + 10)}>${edits.length - shown} older edits</button>`}</section>`;
}

/** @param {string} name @param {FileTouch[]} touches */
function save(name, touches) {
  saveCsv(`file-${name.replace(/[^\w.-]+/g, "_")}`, ["at", "what", "status", "session", "turn", "lines added", "lines removed", "ms"],
    touches.map((one) => [iso(one.at_us), one.what, one.status, one.session, one.turn, one.added, one.removed, one.dur_us === null ? null : one.dur_us / 1_000]));
}
