// What a frame costs in a long session: CPU of the page's main thread, not frames per second.
//
// HOOKSPAN_PERF_TURNS sets how long the invented session is (200 turns are about 20,000 spans), HOOKSPAN_PERF_FACTOR
// widens the budgets on a slow host.
import { missing, world } from "./ui/support.mjs";

const FACTOR = Number(process.env.HOOKSPAN_PERF_FACTOR ?? 1);
const TURNS = process.env.HOOKSPAN_PERF_TURNS ?? "200";
const BUDGET = { scroll_ms: 8, zoom_ms: 8, nodes: 1_000, heap_mb: 16, json_mb: TURNS === "200" ? 0.8 : Infinity };

if (await missing()) process.exit(0);
const dashboard = await world({ turns: TURNS });
const { tab } = await dashboard.page();
const debug = await dashboard.context.newCDPSession(tab);
await tab.goto(dashboard.login);
const list = await tab.evaluate(() => fetch("/api/v1/sessions?limit=50").then((answer) => answer.json()));
const session = list.items.toSorted((a, b) => b.calls - a.calls)[0];
const json = await tab.evaluate((id) => fetch(`/api/v1/sessions/${id}/spans`).then((a) => a.text()).then((text) => [text.length, JSON.parse(text).n]), session.id);
const start = performance.now();
await tab.goto(dashboard.base + session.url);
await tab.locator(".wf-row").first().waitFor();
const ready = performance.now() - start;
await tab.keyboard.press("0");
await debug.send("Performance.enable", { timeDomain: "threadTicks" });

const cpu = async () => {
  const { metrics } = await debug.send("Performance.getMetrics");
  return metrics.find((one) => one.name === "TaskDuration").value * 1_000;
};

/** CPU per frame, milliseconds, of `frames` frames in which `step` runs. */
async function perFrame(frames, step) {
  const runs = [];
  for (let run = 0; run < 3; run += 1) {
    const before = await cpu();
    await tab.evaluate(step, frames);
    runs.push(((await cpu()) - before) / frames);
  }
  return runs.sort((a, b) => a - b)[1];
}

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
const { usedSize } = await debug.send("Runtime.getHeapUsage");
const found = { scroll_ms: scroll, zoom_ms: zoom, nodes, heap_mb: usedSize / 1e6, json_mb: json[0] / 1e6 };
console.log(`${json[1]} spans, rows ready after ${Math.round(ready)} ms`);
let over = false;
for (const [name, value] of Object.entries(found)) {
  const limit = BUDGET[name] * FACTOR;
  over ||= value > limit;
  console.log(`${name.padEnd(10)} ${value.toFixed(2).padStart(9)}  budget ${limit}${value > limit ? "  OVER" : ""}`);
}
await dashboard.close();
process.exit(over ? 1 : 0);
