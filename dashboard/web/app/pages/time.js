// Where the time went: finished turns by day, by part and by project.
/** @import { TimeAnswer } from "../../types/answers" */
/** @import { PageProps } from "../../types/app" */
import { html } from "../ui/html.js";
import { count, duration, plural } from "../format/quantity.js";
import { LABELS, mix, share, sums } from "../trace/time-parts.js";
import { visible } from "../format/text.js";
import { useDays, useQuery } from "../ui/fields.js";
import { Legend } from "../ui/labels.js";
import { Limits, WORDS, pass } from "../ui/limits.js";
import { Page, useTitle } from "../ui/page.js";
import { useAnswer } from "../ui/use-answer.js";

const DAYS = [7, 30, 90, 365];
/** The day in UTC, because sums are stored by UTC day. @param {number} us */
const day = (us) => new Date(us / 1_000).toISOString().slice(0, 10);

/** @param {PageProps} props */
export function Time({ query, go }) {
  const { params, set } = useQuery("/time", query, go);
  const [days, tools] = useDays(DAYS, { params, set });
  const project = params.get("project");
  const asked = pass(params, new URLSearchParams({ days: String(days) }));
  const { data, error, reload } = useAnswer(`time?${asked}`, (event) => event === "session" || event === "resync", 5_000);
  useTitle("Time");
  return html`<${Page} title="Where the time went" tools=${tools} error=${error} reload=${reload} ready=${data}>${() => data && html`<${Limits} params=${params} set=${set} names=${["model", "status"]} />${data.items.length === 0
    ? html`<p class="dim pad-y">${WORDS.some((word) => params.get(word)) ? "No finished turn matches: take a word away." : "No turn has finished in these days."}</p>`
    : html`<${Total} data=${data} project=${project} clear=${() => set("project", "")} /><${Days} data=${data} />
      <${Projects} items=${data.items} project=${project} set=${set} />`}`}<//>`;
}

/** @param {{ data: TimeAnswer, project: string | null, clear: () => void }} props */
function Total({ data, project, clear }) {
  const { total } = data;
  const us = sums([total.parts]);
  return html`<section class="time-total" aria-labelledby="time-total"><h2 id="time-total"><span class="num">${duration(total.active_us)}</span> in ${plural(total.turns, "turn")}${project && html` · <span class="blurry">${visible(project)}</span> <button type="button" class="link" onClick=${clear}>all projects</button>`}</h2>
    <${Legend} parts=${us} total=${total.active_us} /></section>`;
}

/** @param {TimeAnswer["days"][number]} one @param {number} step */
function words(one, step) {
  const until = step > 86_400e6 ? ` to ${day(one.from_us + step - 86_400e6)}` : "";
  if (!one.turns) return `${day(one.from_us)}${until}: nothing`;
  const most = sums([one.parts]).sort((a, b) => b[1] - a[1]).slice(0, 3);
  return `${day(one.from_us)}${until}: ${duration(one.active_us)}, ${plural(one.turns, "turn")}${one.errors ? `, ${plural(one.errors, "error")}` : ""} (${most.map(([key, us]) => `${LABELS[key]} ${share(us, one.active_us)}`).join(", ")})`;
}

/** One bar per column. About ten of them are labelled with their day. @param {{ data: TimeAnswer }} props */
function Days({ data }) {
  const most = Math.max(1, ...data.days.map((one) => one.active_us));
  const every = Math.ceil(data.days.length / 10);
  return html`<section aria-labelledby="time-days"><h2 id="time-days">By ${data.step_us > 86_400e6 ? `${data.step_us / 86_400e6} days` : "day"} <small class="dim">UTC, highest ${duration(most)}</small></h2>
    <ol class="days">${data.days.map((one, i) => html`<li key=${one.from_us} title=${words(one, data.step_us)}>
      <span class="day" aria-hidden="true"><i style=${{ height: `${(one.active_us / most) * 100}%`, background: mix(one.parts, "0deg") }}></i></span>
      <span class="sr">${words(one, data.step_us)}</span>${i % every === 0 && html`<span class="dim day-name" aria-hidden="true">${day(one.from_us).slice(5)}</span>`}</li>`)}</ol></section>`;
}

/** @param {{ items: TimeAnswer["items"], project: string | null, set: (name: string, value: string) => void }} props */
function Projects({ items, project, set }) {
  const most = Math.max(1, ...items.map((one) => one.active_us));
  return html`<section aria-labelledby="time-projects"><h2 id="time-projects">By project</h2>
    <table class="list numbers"><thead><tr><th>project</th><th class="r">active</th><th class="r">turns</th><th class="r">calls</th><th class="r">errors</th><th class="r">tok in</th><th class="r">tok out</th><th class="wide" aria-hidden="true"></th><th><span class="sr">sessions</span></th></tr></thead>
      <tbody>${items.map((one) => html`<tr key=${one.project} class=${one.project !== null && one.project === project ? "chosen" : ""}>
        <td class="blurry">${one.project === null ? html`<span class="dim">no workspace</span>` : html`<button type="button" class="link" aria-pressed=${one.project === project} onClick=${() => set("project", one.project === project ? "" : one.project ?? "")}>${visible(one.project)}</button>`}</td>
        <td class="r num">${duration(one.active_us)}</td><td class="r num">${count(one.turns)}</td><td class="r num">${count(one.calls)}</td>
        <td class=${`r num ${one.errors ? "bad" : "dim"}`}>${one.errors || "–"}</td>
        <td class="r num">${count(one.input_tokens)}</td><td class="r num">${count(one.output_tokens)}</td>
        <td class="wide" aria-hidden="true"><i class="time-bar" style=${{ width: `${(one.active_us / most) * 100}%`, background: mix(one.parts) }}></i></td>
        <td class="r"><a href=${one.url}>sessions</a></td></tr>`)}</tbody></table></section>`;
}
