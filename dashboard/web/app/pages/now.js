// A card per agent: what it does now, and whether it probably waits for a person. Cards keep their places.
/** @import { Agent, Strip } from "../../types/answers" */
/** @import { PageProps } from "../../types/app" */
import { html, useLayoutEffect, useState } from "../ui/html.js";
import { cost, count, duration, plural, tokenTotal } from "../format/quantity.js";
import { clock, date } from "../format/time.js";
import { visible } from "../format/text.js";
import { Age, useNow } from "../ui/clock.js";
import { bind } from "../ui/keys.js";
import { Page, useTitle } from "../ui/page.js";
import { KINDS, toggle, wanted } from "../ui/alerts.js";
import { isMuted, mute } from "../ui/muted.js";
import { endedWords, needWords } from "../ui/needs.js";
import { notify } from "../ui/notify.js";
import { sheet } from "../ui/sheet.js";
import { useAnswer, useLive } from "../ui/use-answer.js";
import { gauge, stack } from "./now-cards.js";
import { Waiting } from "./waiting.js";

await sheet("pages");
await sheet("now");

/** @type {Record<string, [icon: string, word: string]>} */
const STATUS = {
  running: ["●", "running"], slow: ["●", "slow"], approval_likely: ["▲", "approval likely"], question: ["?", "question"],
  stalled: ["–", "stalled"], failed: ["✕", "failed"], turn_ended: ["✓", "turn ended"],
};
/** The strip moves even if no hook arrives. */
const AGAIN_MS = 10_000;

/** @param {Pick<PageProps, "go">} props */
export function Now({ go }) {
  const { data, error, reload } = useAnswer("now", (event) => event === "session" || event === "spans" || event === "resync", 1_000);
  const [, drawn] = useState(0);
  const tick = Math.floor(useNow() / (AGAIN_MS * 1_000));
  useLayoutEffect(() => { if (data && !document.hidden) reload(); }, [tick]);
  useLive((event, now) => event === "state" && now === "connected" && reload(), []);
  useTitle("Now");
  const agents = data?.agents ?? [];
  const needing = agents.filter((one) => one.alarm && !mutes(one));
  const hidden = agents.filter(mutes).length;
  /** @param {Agent | undefined} one */
  const turn = (one) => {
    if (!one) return notify("choose a card: Tab goes through them");
    mute(alarmOf(one), !mutes(one));
    notify(mutes(one) ? "muted until something else happens" : "not muted");
    return drawn((n) => n + 1);
  };
  useLayoutEffect(() => bind({
    ...Object.fromEntries(agents.slice(0, 9).map((one, i) => [String(i + 1), () => go(urlOf(one))])),
    m: () => turn(agents[at()] ?? needing[0]),
    j: () => focus(at() + 1), k: () => focus(at() - 1),
  }), [data]);
  return html`<${Page} title="Now" tools=${data && html`<${Facts} agents=${agents} needing=${needing} need=${data.counts.need_you - hidden} ended=${data.counts.turn_ended} now=${data.now_us} />`} error=${error} reload=${reload} ready=${data}>${() => data && (agents.length === 0
    ? html`<${Quiet} />`
    : html`<ul class="agents">${agents.map((one, i) => html`<${Card} key=${one.session.id} agent=${one} number=${i < 9 ? i + 1 : null} muted=${mutes(one)} onMute=${() => turn(one)} />`)}</ul>
      ${data.more && html`<p class="dim">More agents run than are shown. <a href="/sessions?state=running">All that run</a></p>`}`)}<//>`;
}

/** @param {Agent} one */
const alarmOf = (one) => ({ session: one.session.id, status: one.status, since: one.since_us });
/** @param {Agent} one */
const mutes = (one) => one.alarm && isMuted(alarmOf(one));
/** @param {Agent} one */
const urlOf = (one) => one.call?.url ?? one.session.url;
const links = () => /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".agent-title")]);
/** The card that has the focus, or -1. */
const at = () => links().findIndex((one) => one.closest(".agent")?.contains(document.activeElement));
/** @param {number} i */
const focus = (i) => links()[Math.max(0, Math.min(links().length - 1, i))]?.focus();

/** The same two numbers as on Overview. @param {{ agents: Agent[], needing: Agent[], need: number, ended: number, now: number }} props */
function Facts({ agents, needing, need, ended, now }) {
  const longest = needing.toSorted((a, b) => a.since_us - b.since_us)[0];
  const [, drawn] = useState(0);
  const on = wanted();
  /** @param {typeof KINDS[number]} kind */
  const choose = (kind) => toggle(kind).then((why) => {
    notify(why ?? (wanted().includes(kind) ? `the browser tells you: ${kind}` : `no notices: ${kind}`));
    drawn((n) => n + 1);
  });
  return html`<span class="dim">${date(now)}</span><b class="num">${plural(agents.length, "agent")}</b>
    <b class=${need ? "warn num" : "dim num"}>${needWords(need)}</b>${ended > 0 && html`<span class="dim num">${endedWords(ended)}</span>`}
    ${longest && html`<span class="dim">waiting longest: <span class="blurry">${visible(longest.session.project ?? longest.session.id)}</span>, <${Age} since=${longest.since_us} /></span>`}
    <span class="choice notices" role="group" aria-label="Notices of the browser, without content">${KINDS.map((kind) => html`<button type="button" aria-pressed=${on.includes(kind)} title="A notice of the browser while this page is not in view; it holds no content" onClick=${() => choose(kind)}>notify: ${kind}</button>`)}</span>`;
}

/** Without agents: links to other pages. */
function Quiet() {
  const { data } = useAnswer("sessions?limit=1");
  if (data && !data.items.length) return html`<${Waiting} />`;
  return html`<section class="card narrow"><h2>No agent runs</h2><p>No turn ended within the last hour. <a href="/sessions">All sessions</a></p></section>`;
}

/** @param {{ agent: Agent, number: number | null, muted: boolean, onMute: () => unknown }} props */
function Card({ agent, number, muted, onMute }) {
  const { session, call, said } = agent;
  const [icon, word] = STATUS[agent.status] ?? ["?", "other"];
  const running = agent.status === "running" || agent.status === "slow";
  const tone = muted ? "muted" : agent.alarm ? "alarm" : agent.status;
  return html`<li class=${`agent agent-${tone}`}>
    <p class="agent-head"><span class="agent-status"><span aria-hidden="true">${icon}</span> ${word}${muted && " (muted)"}</span>
      <span class="dim num">turn ${agent.turn}${running && agent.turn_us !== null && html` · <${Age} since=${agent.turn_us} />`}</span>
      ${!running && html`<b class="since num"><${Age} since=${agent.since_us} /></b>`}${number && html`<kbd>${number}</kbd>`}</p>
    <h2><a class="agent-title blurry" href=${urlOf(agent)}>${visible(agent.prompt ?? session.id)}</a></h2>
    <p class="agent-place blurry"><b>${visible(session.project ?? "–")}</b> ${session.repository?.branch && html`<span class="dim">${visible(session.repository.branch)}</span>`}</p>
    ${call ? html`<${Call} call=${call} />` : html`<p class="agent-call dim">${running ? "no call is open" : `${plural(session.calls, "call")}, ${plural(session.errors, "error")}`}</p>`}
    <p class="agent-reason dim">${agent.reason}${agent.status === "approval_likely" && ". Likely: no hook reports an approval"}${agent.alarm && html` <button type="button" class="link" onClick=${onMute}>${muted ? "unmute" : "mute"} (m)</button>`}</p>
    <p class="agent-said blurry" title=${said ? clock(said.at_us).slice(0, 8) : null}>${said ? visible(said.text) : html`<span class="dim">no text of this agent is stored</span>`}</p>
    <${Ten} strip=${agent.strip} />
    <p class="agent-foot num"><span title="input and output tokens of the finished turns">${session.tokens ? `${count(tokenTotal(session.tokens))} tok` : "– tok"}</span>
      ${agent.cost && html`<span class="dim">${visible(cost(agent.cost))}</span>`}
      <span class=${session.errors ? "bad" : "dim"}>${session.errors ? `✕ ${session.errors}` : "no errors"}</span></p></li>`;
}

/** The running call on a scale with the usual times. @param {{ call: NonNullable<Agent["call"]> }} props */
function Call({ call }) {
  const took = useNow() - call.since_us;
  const marks = gauge(took, call.p50_us, call.p95_us);
  const usual = call.p50_us === null || call.p95_us === null ? "no usual time yet" : `p50 ${duration(call.p50_us)} · p95 ${duration(call.p95_us)} · ${plural(call.runs, "run")} of ${visible(call.tool)}`;
  return html`<div class="agent-call"><p><i class=${`dot k-${call.kind}`}></i> <span class="blurry">${visible(call.label)}</span> <b class="num"><${Age} since=${call.since_us} /></b></p>
    <div class=${`gauge k-${call.kind}`} role="img" aria-label=${`open for ${duration(took)}; ${usual}`}><i class="gauge-fill" style=${{ width: `${marks.took}%` }}></i>
      ${marks.p50 !== null && html`<i class="gauge-p50" style=${{ left: `${marks.p50}%` }}></i><i class="gauge-p95" style=${{ left: `${marks.p95}%` }}></i>`}</div>
    <p class="dim num">${usual}</p></div>`;
}

/** The last ten minutes by kind. @param {{ strip: Strip }} props */
function Ten({ strip }) {
  const columns = stack(strip);
  const busy = columns.filter((one) => one.height > 0).length;
  return html`<div class="ten" role="img" aria-label=${`the last ten minutes: busy in ${busy} of ${columns.length} columns of ten seconds${strip.lanes.length ? `, with ${strip.lanes.map((lane) => lane.kind).join(", ")}` : ""}`}>
    ${columns.map((one, i) => html`<i key=${i} title=${one.words ? `${clock(strip.from_us + i * strip.step_us).slice(0, 8)} ${one.words}` : null} style=${{ height: `${one.height}%`, background: one.paint }}></i>`)}</div>
    <p class="ten-ends dim" aria-hidden="true"><span>10 min ago</span><span>now</span></p>`;
}
