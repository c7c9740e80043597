// Measures what long sessions cost in the browser, against the budgets: CPU time of the page's main thread per frame,
// times, sizes.
//
//
// cargo build --release -p hookspan-dashboard --example demo
// HOOKSPAN_DEMO=target/release/examples/demo chrt -r 1 node dashboard/web/tests/perf.mjs
//
// Without HOOKSPAN_URL, the crate's example invents the sessions. HOOKSPAN_PERF_TURNS lists their numbers of turns,
// separated by commas: 200 turns are about 20,000 spans, 1,000 about 100,000. HOOKSPAN_PERF_FACTOR multiplies the
// budgets on a slow or busy machine. Prints a table.
import { ask, eventually, missing, world } from "./ui/support.mjs";

const FACTOR = Number(process.env.HOOKSPAN_PERF_FACTOR ?? 1);
const TURNS = process.env.HOOKSPAN_URL ? ["stored"] : (process.env.HOOKSPAN_PERF_TURNS ?? "200,1000").split(",");
const RUNS = 3;
const ROWS = [
  ["talk", "CPU per frame, scroll of the conversation", "ms", 8], ["talkReady", "conversation ready", "ms", 1_000], ["talkNodes", "DOM nodes, conversation", "", 1_500],
  ["scroll", "CPU per frame, scroll", "ms", 8], ["zoom", "CPU per frame, zoom", "ms", 8], ["paint", "first paint", "ms", 300], ["ready", "rows ready", "ms", 1_000],
  ["search", "search in the trace", "ms", 20], ["json", "trace JSON", "MB", null], ["nodes", "DOM nodes", "", 800], ["heap", "JS heap", "MB", 12],
];
/** Budget of the reference session of 20,000 spans. Larger sessions have no budget. */
const JSON_MB = 0.6;
/** The same as in `dashboard/tests/assets.rs`. */
const CODE_KB = 124;

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
if (await missing()) process.exit(0);

const columns = [];
for (const turns of TURNS) columns.push(await measure(turns));
let over = false;
const cell = (value, limit) => {
  const bad = limit !== null && value > limit * FACTOR;
  over ||= bad;
  return `${value < 10 ? value.toFixed(1) : Math.round(value)}${bad ? " **over**" : ""}`;
};
console.log(`| what | ${columns.map(({ spans }) => `${spans.toLocaleString("en")} spans`).join(" | ")} | budget |\n|---|${columns.map(() => "---|").join("")}---|`);
for (const [key, name, unit, budget] of ROWS) {
  const limits = columns.map(({ spans }) => (key === "json" ? (spans < 30_000 ? JSON_MB : null) : budget));
  console.log(`| ${name}${unit ? `, ${unit}` : ""} | ${columns.map((one, i) => cell(one[key], limits[i])).join(" | ")} | ${key === "json" ? `<= ${JSON_MB} at 20,000` : `<= ${budget}`} |`);
}
console.log(`| our JS and CSS as sent, KB | ${columns.map(({ code }) => cell(code / 1_024, CODE_KB)).join(" | ")} | <= ${CODE_KB} |`);
console.log(`\nframes per second, not judged: ${columns.map(({ fps }) => Math.round(fps)).join(", ")}; factor ${FACTOR}`);
process.exit(over ? 1 : 0);

async function measure(turns) {
  const dashboard = await world({ turns });
  const { tab } = await dashboard.page();
  const debug = await dashboard.context.newCDPSession(tab);
  await tab.goto(dashboard.login);
  await tab.locator(".rail").waitFor();
  const list = await ask(tab, "sessions?limit=50&sort=calls");
  const session = list.items.toSorted((a, b) => b.calls - a.calls)[0];
  const [bytes, spans] = await ask(tab, `sessions/${encodeURIComponent(session.id)}/spans`).then((answer) => [JSON.stringify(answer).length, answer.n]);
  const [paints, readies] = [[], []];
  for (let run = 0; run < RUNS; run += 1) {
    await tab.goto("about:blank");
    await tab.goto(`${dashboard.base}${session.url}?view=waterfall`, { waitUntil: "commit" });
    await tab.locator(".wf-row").first().waitFor();
    // Both times count from the start of the navigation, by the browser's own clock.
    const [paint, ready] = await tab.evaluate(() => [performance.getEntriesByName("first-paint")[0]?.startTime ?? 0, performance.now()]);
    paints.push(paint);
    readies.push(ready);
  }
  await tab.keyboard.press("0");
  await debug.send("Performance.enable", { timeDomain: "threadTicks" });
  const cpu = async () => {
    const { metrics } = await debug.send("Performance.getMetrics");
    return metrics.find((one) => one.name === "TaskDuration").value * 1_000;
  };
  let fps = 0;
  /** CPU time per frame over `frames` frames, each after a call of `step`. The median of three runs. */
  const perFrame = async (frames, step) => {
    const runs = [];
    for (let run = 0; run < RUNS; run += 1) {
      const before = await cpu();
      const start = performance.now();
      await tab.evaluate(step, frames);
      runs.push(((await cpu()) - before) / frames);
      fps = (frames * 1_000) / (performance.now() - start);
    }
    return median(runs);
  };
  const scroll = await perFrame(180, (frames) => new Promise((done) => {
    const scroller = document.querySelector(".wf-scroll");
    scroller.scrollTop = 0;
    let left = frames;
    const step = () => {
      scroller.scrollTop += 110;
      if (left-- > 0) requestAnimationFrame(step);
      else done();
    };
    requestAnimationFrame(step);
  }));
  const zoom = await perFrame(90, (frames) => new Promise((done) => {
    let left = frames;
    const step = () => {
      document.dispatchEvent(new KeyboardEvent("keydown", { key: left % 30 < 15 ? "+" : "-", bubbles: true }));
      if (left-- > 0) requestAnimationFrame(step);
      else done();
    };
    requestAnimationFrame(step);
  }));
  const nodes = await tab.evaluate(() => document.querySelectorAll("*").length);
  await debug.send("HeapProfiler.collectGarbage");
  const { usedSize } = await debug.send("Runtime.getHeapUsage");
  const search = await searchTime(tab);
  const talk = await conversation(tab, `${dashboard.base}${session.url}?view=conversation`, perFrame);
  const code = await codeSize(tab);
  await dashboard.close();
  return { ...talk, spans, code, scroll, zoom, paint: median(paints), ready: median(readies), search, json: bytes / 1e6, nodes, heap: usedSize / 1e6, fps };
}

/**
 * Measures the conversation: the time from the navigation to its rows, and frames in which rows of unequal height
 * scroll past while their texts arrive.
 */
async function conversation(tab, url, perFrame) {
  const readies = [];
  for (let run = 0; run < RUNS; run += 1) {
    await tab.goto("about:blank");
    await tab.goto(url, { waitUntil: "commit" });
    await tab.locator(".cv-row:not([hidden])").first().waitFor();
    readies.push(await tab.evaluate(() => performance.now()));
  }
  const talk = await perFrame(180, (frames) => new Promise((done) => {
    const scroller = document.querySelector(".cv-scroll");
    scroller.scrollTop = scroller.scrollHeight / 3;
    let left = frames;
    const step = () => {
      scroller.scrollTop += 110;
      if (left-- > 0) requestAnimationFrame(step);
      else done();
    };
    requestAnimationFrame(step);
  }));
  return { talk, talkReady: median(readies), talkNodes: await tab.evaluate(() => document.querySelectorAll("*").length) };
}

/** Time from a keystroke in the filter until the matching rows are drawn. */
async function searchTime(tab) {
  const times = [];
  for (const word of ["cargo", "read", "zzz", "deliver", "status:error", "dur>2s", "kind:shell"]) {
    times.push(await tab.evaluate((text) => {
      const field = document.querySelector(".views input");
      field.value = text;
      return new Promise((done) => {
        const seen = new MutationObserver(() => {
          seen.disconnect();
          done(performance.now() - start);
        });
        seen.observe(document.querySelector(".wf-scroll"), { attributes: true, attributeFilter: ["aria-rowcount"] });
        const start = performance.now();
        field.dispatchEvent(new InputEvent("input", { bubbles: true }));
      });
    }, word));
    await eventually("counted", async () => /\d/.test(await tab.locator(".found").textContent()));
  }
  return median(times);
}

// Size of our scripts and styles as sent, compressed.
function codeSize(tab) {
  return tab.evaluate(() => performance.getEntriesByType("resource")
    .filter(({ name }) => /^\/a\/[0-9a-f]+\/app\/.*\.(js|css)$/.test(new URL(name).pathname))
    .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0));
}
