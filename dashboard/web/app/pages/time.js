// Where the time went, and what it cost: finished turns by day, project, model and kind.
/** @import { TimeAnswer, TimeSums } from "../../types/answers" */
/** @import { PageProps } from "../../types/app" */
import { html, useLayoutEffect } from "../ui/html.js";
import { cost, count, duration, plural, tokenTotal } from "../format/quantity.js";
import { columns, day, daysBetween, midnight } from "../format/local-days.js";
import { mix, share, sums } from "../trace/time-parts.js";
import { visible } from "../format/text.js";
import { saveCsv } from "../ui/csv.js";
import { Choice, useQuery } from "../ui/fields.js";
import { bind } from "../ui/keys.js";
import { Legend } from "../ui/labels.js";
import { Limits, WORDS } from "../ui/limits.js";
import { Page, useTitle } from "../ui/page.js";
import { useRange } from "../ui/range.js";
import { sheet } from "../ui/sheet.js";
import { useAnswer } from "../ui/use-answer.js";
import { Calendar } from "./calendar.js";
import { Columns } from "./sum-chart.js";
import { METRICS, NAMES, stack } from "./sums.js";

await sheet("pages");
await sheet("charts");

const BY = ["project", "model", "kind"];
/** More columns than these are drawn as weeks. */
const DAYS_MAX = 92;
const WORDS_HERE = ["project", "model", "status"];

/** @param {PageProps} props */
export function Time({ query, go }) {
  const { params, set } = useQuery("/time", query, go);
  const range = useRange({ params, set });
  const width = range.days > DAYS_MAX ? 7 : 1;
  const by = BY.find((one) => one === params.get("by")) ?? "project";
  const metric = METRICS.find((one) => one === params.get("show")) ?? "time";
  const asked = new URLSearchParams({ ...range.asked, columns: columns(range.from, range.to, width), by: by === "kind" ? "none" : by });
  for (const word of WORDS_HERE) if (params.get(word)) asked.set(word, params.get(word) ?? "");
  const { data, error, reload } = useAnswer(`time?${asked}`, (event) => event === "session" || event === "resync", 5_000);
  const then = useAnswer(`time?${before(range, asked)}`, (event) => event === "resync", 60_000).data;
  useTitle("Time and cost");
  /** @param {number} from @param {number} to */
  const narrow = (from, to) => set({ days: "", from_us: String(from), to_us: String(to) });
  useLayoutEffect(() => bind({ Escape: () => params.get("from_us") && set({ days: "", from_us: "", to_us: "" }) }), [query]);
  const tools = html`${range.control}<button type="button" disabled=${!data} onClick=${() => data && save(data)}>CSV</button>`;
  return html`<${Page} title="Time and cost" tools=${tools} error=${error} reload=${reload} ready=${data}>${() => data && html`<${Limits} params=${range.without(params)} set=${set} names=${WORDS_HERE} />
    ${data.items.length === 0
    ? html`<p class="dim pad-y">${WORDS.some((word) => params.get(word)) ? "No finished turn matches in this period. Remove a filter, or choose a longer period." : "No turn has finished in this period."}</p>`
    : html`<${Total} data=${data} then=${then} project=${params.get("project")} clear=${() => set("project", "")} />
      <div class="time-halves"><section aria-labelledby="time-days"><h2 id="time-days">${width === 1 ? "By day" : "By week"}
          <${Choice} name="show" values=${METRICS} now=${metric} choose=${(/** @type {string} */ value) => set("show", value === "time" ? "" : value)} word=${(/** @type {string} */ one) => NAMES[one]} />
          <span class="dim">by</span> <${Choice} name="by" values=${BY} now=${by} choose=${(/** @type {string} */ value) => set("by", value === "project" ? "" : value)} /></h2>
          <${Columns} chart=${stack(data, by, metric)} onNarrow=${narrow} /></section>
        <${Year} metric=${metric} narrowed=${WORDS_HERE.map((word) => [word, params.get(word)])} from=${range.from} to=${range.to} onNarrow=${narrow} /></div>
      <${Names} title="By project" name="project" asked=${asked} rows=${data.items.map((one) => ({ ...one, name: one.project, then: then?.items.find((old) => old.project === one.project) }))} none="no workspace" chosen=${data.project} set=${set} />
      <${Names} title="By model" name="model" asked=${asked} rows=${data.models.map((one) => ({ ...one, name: one.model, then: then?.models.find((old) => old.model === one.model) }))} none="not named" chosen=${data.model} set=${set} />`}`}<//>`;
}

/** The question about as many days before, up to the same time of day if the period has not ended. Sums are of quarters of an hour.
 * @param {{ from: number, to: number, days: number }} range @param {URLSearchParams} asked */
function before({ from, to, days }, asked) {
  const now = Date.now() * 1_000;
  const begin = midnight(from, -days);
  const end = to > now ? midnight(now, -days) + now - midnight(now) : from;
  const minutes = Math.max(15, Math.round((end - begin) / 900e6) * 15);
  const then = new URLSearchParams(asked);
  for (const [name, value] of [["from_us", begin], ["to_us", end - 1], ["columns", minutes], ["by", "none"]]) then.set(`${name}`, `${value}`);
  return then;
}

/** How much more or less than before: `+11 %`. Nothing where there was nothing.
 * @param {{ now: number, then: number | null | undefined }} props */
function Change({ now, then }) {
  if (!then) return null;
  const part = Math.round((now / then - 1) * 100);
  return html`<small class="dim num" title="against as many days before, up to the same time of day"> ${part < 0 ? "−" : "+"}${Math.abs(part)} %</small>`;
}

/** @param {{ data: TimeAnswer, then: TimeAnswer | null, project: string | null, clear: () => void }} props */
function Total({ data, then, project, clear }) {
  const old = then?.total;
  const { total } = data;
  const tokens = tokenTotal({ input: total.input_tokens, output: total.output_tokens });
  const cached = total.cached_tokens !== null && total.input_tokens ? share(total.cached_tokens, total.input_tokens) : null;
  return html`<section class="time-total" aria-labelledby="time-total"><h2 id="time-total"><span class="num">${duration(total.active_us)}</span><${Change} now=${total.active_us} then=${old?.active_us} /> in ${plural(total.turns, "turn")}<${Change} now=${total.turns} then=${old?.turns} />${project && html` · <span class="blurry">${visible(project)}</span> <button type="button" class="link" onClick=${clear}>all projects</button>`}</h2>
    <dl class="tiles"><div><dt>waiting (derived)</dt><dd>${duration(total.parts.wait_us)}<${Change} now=${total.parts.wait_us} then=${old?.parts.wait_us} /></dd></div>
      <div><dt>tokens in + out</dt><dd>${count(tokens)}<${Change} now=${tokens ?? 0} then=${old && tokenTotal({ input: old.input_tokens, output: old.output_tokens })} />${cached && html` <small class="dim">${cached} of the input cached</small>`}</dd></div>
      <div><dt>cost, estimated</dt><dd title="by the prices in the configuration, not a bill">${total.cost ? html`${visible(cost(total.cost))}<${Change} now=${total.cost.estimated} then=${old?.cost?.estimated} />` : html`– <small class="dim">${tokens === null ? "no tokens known" : "no prices set"}</small>`}</dd></div>
      <div><dt>calls</dt><dd>${count(total.calls)}<${Change} now=${total.calls} then=${old?.calls} /></dd></div>
      <div><dt>errors</dt><dd class=${total.errors ? "bad" : ""}>${count(total.errors)}<${Change} now=${total.errors} then=${old?.errors} /></dd></div></dl>
    <${Legend} parts=${sums([total.parts])} total=${total.active_us} /></section>`;
}

/** @param {{ metric: string, narrowed: (string | null)[][], from: number, to: number, onNarrow: (from: number, to: number) => void }} props */
function Year({ metric, narrowed, from, to, onNarrow }) {
  const now = Date.now() * 1_000;
  // Whole weeks, Monday first, the present one last.
  const end = midnight(now, 8 - (new Date().getDay() || 7));
  const begin = midnight(end, -53 * 7);
  const asked = new URLSearchParams({ from_us: String(begin), to_us: String(end - 1), columns: columns(begin, end) });
  for (const [word, value] of narrowed) if (word && value) asked.set(word, value);
  const { data, error } = useAnswer(`time?${asked}`, (event) => event === "resync", 60_000);
  return html`<section aria-labelledby="time-year"><h2 id="time-year">A year by day <span class="aside dim">${NAMES[metric]}, darker = more; a click shows the day</span></h2>
    ${error && html`<p class="dim">${error.detail}</p>`}${data && html`<${Calendar} days=${data.days} metric=${metric} from=${from} to=${to} onNarrow=${onNarrow} />`}</section>`;
}

/** @param {{ title: string, name: string, asked: URLSearchParams, rows: (TimeSums & { name: string | null, url: string, then?: TimeSums })[], none: string, chosen: string | null, set: (name: string, value: string) => void }} props */
function Names({ title, name, asked, rows, none, chosen, set }) {
  const turns = new URLSearchParams({ group: name });
  for (const word of ["from_us", "to_us", "status"]) if (asked.get(word)) turns.set(word, asked.get(word) ?? "");
  const usual = useAnswer(`latency?${turns}`, (event) => event === "resync", 60_000).data?.items;
  /** @param {string | null} of @param {"p50_us" | "p95_us"} share */
  const length = (of, share) => {
    const us = usual?.find((one) => one.name === of)?.[share];
    return us == null ? "–" : duration(us);
  };
  const most = Math.max(1, ...rows.map((one) => one.active_us));
  const is = (/** @type {string | null} */ one) => one !== null && one.toLowerCase() === chosen?.toLowerCase();
  return html`<section aria-labelledby=${`time-${name}s`}><h2 id=${`time-${name}s`}>${title}</h2>
    <table class="list numbers"><thead><tr><th>${name}</th><th class="r">active</th><th class="r">turns</th><th class="r" title="of a turn">p50</th><th class="r" title="of a turn">p95</th><th class="r">calls</th><th class="r">errors</th><th class="r">tok in</th><th class="r">cached</th><th class="r">tok out</th><th class="r">cost est.</th><th class="wide" aria-hidden="true"></th><th><span class="sr">sessions</span></th></tr></thead>
      <tbody>${rows.map((one) => html`<tr key=${one.name} class=${is(one.name) ? "chosen" : ""}>
        <td class="blurry">${one.name === null ? html`<span class="dim">${none}</span>` : html`<button type="button" class="link" aria-pressed=${is(one.name)} onClick=${() => set(name, is(one.name) ? "" : one.name ?? "")}>${visible(one.name)}</button>`}</td>
        <td class="r num">${duration(one.active_us)}<${Change} now=${one.active_us} then=${one.then?.active_us} /></td><td class="r num">${count(one.turns)}</td><td class="r num">${length(one.name, "p50_us")}</td><td class="r num">${length(one.name, "p95_us")}</td><td class="r num">${count(one.calls)}</td>
        <td class=${`r num ${one.errors ? "bad" : "dim"}`}>${one.errors || "–"}</td>
        <td class="r num">${count(one.input_tokens)}</td><td class="r num dim">${one.cached_tokens !== null && one.input_tokens ? share(one.cached_tokens, one.input_tokens) : "–"}</td>
        <td class="r num">${count(one.output_tokens)}</td><td class="r num" title=${one.cost ? visible(cost(one.cost)) : null}>${one.cost && (one.cost.estimated > 0 || !one.cost.unpriced_tokens) ? `≈ ${one.cost.estimated.toFixed(2)}` : "–"}</td>
        <td class="wide" aria-hidden="true"><i class="time-bar" style=${{ width: `${(one.active_us / most) * 100}%`, background: mix(one.parts) }}></i></td>
        <td class="r"><a href=${one.url}>sessions</a></td></tr>`)}</tbody></table></section>`;
}

/** Each column by project or model, as it is shown. @param {TimeAnswer} data */
function save(data) {
  const names = data.items.map((one) => one.project);
  const models = data.models.map((one) => one.model);
  const byModel = data.days.some((one) => one.shares.length) && new URLSearchParams(location.search).get("by") === "model";
  const list = byModel ? models : names;
  const rows = data.days.flatMap((one) => (one.shares.length ? one.shares : [{ of: undefined, active_us: one.active_us, turns: one.turns, tokens: tokenTotal({ input: one.input_tokens, output: one.output_tokens }), cost: one.cost?.estimated ?? null }])
    .map((part) => [day(one.from_us), daysBetween(one.from_us, one.to_us), part.of === undefined ? "all" : part.of === null ? "others" : list[part.of], part.active_us / 1e6, part.turns, part.tokens, part.cost]));
  saveCsv("time", ["day", "days", byModel ? "model" : "project", "active seconds", "turns", "tokens", `cost estimate${data.total.cost ? ` (${data.total.cost.currency})` : ""}`], rows);
}
