// Files, Time and cost, Compare, the phone and notices, against the real collector.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { Collector, noCollector } from "./collector.mjs";
import { HOSTILE, jsonl, Talk } from "./hooks.mjs";
import { ask, axe, becomes, chromium, eventually, matches, missing } from "./support.mjs";

const skip = await missing(noCollector);
const MINUTE = 60_000;
const ago = (ms) => Date.now() - ms;
/** When this day began, in the zone of the browser, which is that of this process. */
const midnight = () => new Date().setHours(0, 0, 0, 0);
/** Today, and not before midnight however early it is. */
const today = (ms) => Math.max(ago(ms), midnight() + 1_000);
let collector;
let browser;

/** What an agent did to one file on two days, and another agent. */
function touched() {
  const root = "/home/dev/src/harbour";
  const one = new Talk({ at: midnight() - 120 * MINUTE, project: "harbour", seed: 71 }).start("add a guard for the routes");
  one.tool("Read", { file_path: `${root}/src/guard.rs` }, 9).wait(900);
  one.tool("StrReplace", { file_path: `${root}/src/guard.rs`, old_string: "a\nb\n", new_string: "a\nc\nd\n" }, 14).wait(500);
  one.tool("Read", { file_path: `${root}/src/claims.rs` }, 7);
  one.tool("StrReplace", { file_path: `${root}/src/guard.rs`, old_string: "x", new_string: "y\nz" }, 9, { failed: "no match" }).end();
  const other = new Talk({ at: today(50 * MINUTE), project: "harbour", seed: 72, model: "opus-9" }).start("bump axum and fix what breaks");
  other.tool("Read", { file_path: `${root}/src/guard.rs` }, 8).tool("Read", { file_path: "/etc/hosts" }, 3).shell("cargo test", 4_000).end();
  const hostile = new Talk({ at: today(40 * MINUTE), project: "<b>evil</b>", seed: 73 }).start("odd names");
  for (const text of HOSTILE.slice(0, 4)) hostile.tool("Read", { file_path: `/home/dev/src/<b>evil</b>/${text}` }, 2);
  return jsonl(one, other, hostile.end());
}

before(async () => {
  if (skip) return;
  // A day that ends meanwhile would move what happened today.
  const early = () => ago(midnight()) < MINUTE / 4;
  const late = () => ago(midnight()) > (24 * 60 - 3) * MINUTE;
  while (late() || early()) await new Promise((resolve) => { setTimeout(resolve, 1_000); });
  collector = new Collector().configure('[prices."gpt-5.5*"]\ninput = 2.0\noutput = 10.0\ncache_read = 0.2\n');
  await collector.start();
  await collector.take(touched());
  browser = await chromium(collector.base);
  const first = await browser.page();
  await first.tab.goto(collector.login);
  await eventually("signed in", () => !first.tab.url().includes("/login"));
  await first.tab.close();
});

after(async () => {
  await browser?.close();
  await collector?.close();
});

async function open(path, options) {
  const page = await browser.page(options);
  await page.tab.goto(browser.base + path);
  return page;
}

/** The text of a file that a click saves. */
async function saved(tab, button) {
  const [download] = await Promise.all([tab.waitForEvent("download"), button.click()]);
  return readFileSync(await download.path(), "utf8");
}

test("Files lists what agents read and changed, sorts, filters and saves it", { skip }, async () => {
  const page = await open("/files");
  const { tab } = page;
  const row = (text) => tab.locator("tbody tr", { hasText: text });
  await row("guard.rs").waitFor();
  // Of a failed edit no line counts.
  await matches(() => row("guard.rs").textContent(), /src\/guard\.rsharbour22\+2 −112/);
  await matches(() => row("/etc/hosts").textContent(), /outside1/);
  await becomes(() => axe(browser.context, tab), "[]");
  await tab.getByRole("button", { name: "edits" }).click();
  await eventually("sorted", async () => (await tab.locator("tbody tr a").first().textContent()) === "src/guard.rs");
  const csv = await saved(tab, tab.getByRole("button", { name: "CSV" }));
  assert.match(csv, /^project,path,reads,edits,lines added,lines removed,failed,sessions,last\r\nharbour,src\/guard\.rs,2,2,2,1,1,2,20/);
  await tab.keyboard.press("/");
  await tab.keyboard.type("CLAIMS");
  await tab.keyboard.press("Enter");
  await eventually("one file", async () => (await tab.locator("tbody tr").count()) === 1);
  await matches(() => tab.url(), /q=CLAIMS/);
  await tab.reload();
  await row("claims.rs").waitFor();
  await tab.keyboard.press("j");
  await tab.keyboard.press("Enter");
  await tab.getByRole("heading", { name: "Every touch" }).waitFor();
  await matches(() => tab.url(), /\/file\?project=harbour&path=src%2Fclaims\.rs/);
  await page.close();
});

test("the page of a file has every touch in order, the sessions and the diffs", { skip }, async () => {
  const page = await open("/file?project=harbour&path=src/guard.rs");
  const { tab } = page;
  await tab.locator(".touch").first().waitFor();
  await becomes(() => tab.locator(".touch").count(), 4);
  await becomes(() => tab.locator(".touch-block").count(), 2);
  await matches(() => tab.locator(".touch-gap").textContent(), /^\d+h\d\dm$/);
  await becomes(() => tab.locator(".touch-error").count(), 1);
  await matches(() => tab.locator("section:has(#file-sessions) tbody").textContent(), /bump axum.*add a guard for the routes/s);
  await tab.locator(".hunk .ins", { hasText: "d" }).first().waitFor();
  await matches(() => tab.locator("section:has(#file-beside)").textContent(), /src\/claims\.rs 1 ×/);
  await becomes(() => axe(browser.context, tab), "[]");
  await tab.getByRole("button", { name: "by time" }).click();
  await becomes(() => tab.locator(".touches-time .touch").count(), 4);
  await tab.reload();
  await tab.locator(".touch-block").first().waitFor();
  // Keys choose, and Enter opens the touch in its session.
  await tab.keyboard.press("k");
  await tab.locator(".touch-line", { hasText: "read" }).waitFor();
  await tab.keyboard.press("k");
  await eventually("the failed edit", async () => /edit.*failed.*turn 1/.test(await tab.locator(".touch-line").textContent()));
  await tab.keyboard.press("Enter");
  await eventually("its session", () => /\/s\/.*#[0-9a-f]{16}/.test(tab.url()));
  // The session leads back to the file.
  await tab.goto(tab.url().replace("#", "?view=waterfall#"));
  await tab.locator(".detail a", { hasText: "who read and changed it" }).click();
  await tab.locator(".touch").first().waitFor();
  assert.equal((await ask(tab, "file?project=harbour&path=src%2Fguard.rs")).touches.length, 4);
  await page.close();
});

test("names of files are text, on both pages and in the address", { skip }, async () => {
  const page = await open("/files?project=b%3E");
  const { tab } = page;
  await eventually("all of them", async () => (await tab.locator("tbody tr").count()) === 4);
  await becomes(() => tab.locator("main b, main img, main svg, main script").count(), 0);
  await tab.locator("tbody a").first().click();
  await tab.locator(".touch").first().waitFor();
  await becomes(() => tab.locator("main img, main script").count(), 0);
  await page.close();
});

test("time and cost are stacked by what is chosen, days are the browser's, and a drag narrows", { skip }, async () => {
  const page = await open("/time?days=7");
  const { tab } = page;
  await tab.locator(".column").first().waitFor();
  await becomes(() => tab.locator(".column").count(), 7);
  const answer = await ask(tab, `time?days=7`);
  assert.equal(answer.total.turns, 3);
  // The last column is today in the browser's zone.
  const date = await tab.evaluate(() => { const d = new Date(); return [d.getFullYear(), d.getMonth() + 1, d.getDate()].map((n) => String(n).padStart(2, "0")).join("-"); });
  await matches(() => tab.locator(".column .sr").last().textContent(), new RegExp(`^${date}: `));
  await matches(() => tab.locator(".chart-legend").textContent(), /harbour/);
  await tab.getByRole("button", { name: "model", exact: true }).click();
  await tab.locator(".chart-legend", { hasText: "opus-9" }).waitFor();
  await tab.getByRole("button", { name: "cost", exact: true }).click();
  await tab.locator(".chart-legend", { hasText: "≈" }).waitFor();
  await matches(() => tab.url(), /by=model/);
  await matches(() => tab.url(), /show=cost/);
  // A model without a price is no model of cost 0.
  await matches(() => tab.locator("tr", { hasText: "opus-9" }).textContent(), /–.*sessions$/);
  await tab.getByRole("button", { name: "kind", exact: true }).click();
  await tab.getByText("Tokens are counted per turn").waitFor();
  await tab.getByRole("button", { name: "time", exact: true }).click();
  await tab.locator(".chart-legend", { hasText: "shell" }).waitFor();
  await becomes(() => axe(browser.context, tab), "[]");
  const csv = await saved(tab, tab.getByRole("button", { name: "CSV" }));
  assert.match(csv, new RegExp(`${date},1,`));
  const box = await tab.locator(".columns").boundingBox();
  await tab.mouse.move(box.x + box.width * 0.72, box.y + 60);
  await tab.mouse.down();
  await tab.mouse.move(box.x + box.width * 0.95, box.y + 60, { steps: 4 });
  await tab.mouse.up();
  await eventually("two days", async () => (await tab.locator(".column").count()) === 2);
  await matches(() => tab.url(), /from_us=\d+&to_us=\d+|to_us=\d+.*from_us=\d+/);
  await tab.keyboard.press("<");
  await eventually("the two before", async () => (await tab.locator("#time-total").textContent().catch(() => "")) === "" && (await tab.getByText("No finished turn matches").count()) === 1);
  await tab.keyboard.press("Escape");
  await eventually("the days again", async () => (await tab.locator(".column").count()) > 2);
  await becomes(() => tab.locator(".year-days i").count(), 371);
  await page.close();
});

test("a period goes along to the next page", { skip }, async () => {
  const page = await open("/time?days=7");
  const { tab } = page;
  await tab.locator(".column").first().waitFor();
  await tab.keyboard.press("t");
  await eventually("thirty days", async () => (await tab.locator(".column").count()) === 30);
  await tab.goto(`${browser.base}/files`);
  await tab.locator(".range-pick button[aria-pressed=true]", { hasText: "30 d" }).waitFor();
  await page.close();
});

test("two sessions are compared turn by turn, and by model", { skip }, async () => {
  const talk = (seed, model, more) => {
    const one = new Talk({ at: ago(30 * MINUTE), project: "lamps", seed, model }).start("light the lamp").shell("make lamp", 900).end();
    for (const prompt of more) one.wait(3_000).start(prompt).end();
    return one;
  };
  const [a, b] = [talk(81, "gpt-5.5-high", ["trim the wick of the lamp"]), talk(82, "opus-9", ["count the boats", "please trim the wick of the lamp"])];
  await collector.take(jsonl(a, b));
  const page = await open(`/compare?a=${a.id}&b=${b.id}`);
  const { tab } = page;
  await tab.locator(".aligned tbody tr").first().waitFor();
  const rows = await tab.locator(".aligned tbody tr").evaluateAll((list) => list.map((row) => [...row.querySelectorAll("td.wide")].map((cell) => cell.textContent)));
  assert.deepEqual(rows, [["1. light the lamp", "1. light the lamp"], ["–", "2. count the boats"], ["2. trim the wick of the lamp", "3. please trim the wick of the lamp"]]);
  await matches(() => tab.locator("section", { has: tab.getByRole("heading", { name: "Models" }) }).last().textContent(), /opus-9.*3/s);
  await becomes(() => axe(browser.context, tab), "[]");
  await page.close();
});

test("on a phone the pages are in a bar below, and the rest behind More", { skip }, async () => {
  const page = await open("/now", { viewport: { width: 390, height: 844 } });
  const { tab } = page;
  const rail = tab.locator(".rail");
  await rail.getByRole("link", { name: "Sessions" }).waitFor();
  const box = await rail.boundingBox();
  assert.ok(box.y > 740 && box.width === 390, JSON.stringify(box));
  await becomes(() => rail.getByRole("link", { name: "Privacy" }).isVisible(), false);
  const more = rail.getByRole("button", { name: "More" });
  await more.click();
  await rail.getByRole("link", { name: "Files" }).click();
  await tab.locator("tbody tr").first().waitFor();
  await becomes(() => rail.getByRole("link", { name: "Privacy" }).isVisible(), false, "it closes with the page");
  for (const path of ["/files", "/file?project=harbour&path=src/guard.rs", "/time?days=7", "/now", "/errors", "/sessions"]) {
    await tab.goto(browser.base + path);
    await eventually("drawn", () => tab.evaluate(() => !document.querySelector("main .loading") && document.querySelector("main h1") !== null));
    assert.ok((await tab.evaluate(() => document.documentElement.scrollWidth)) <= 390, path);
    await becomes(() => axe(browser.context, tab), "[]", path);
  }
  await page.close();
});

test("on a phone a session opens with the list of its turns, and a turn opens as conversation", { skip }, async () => {
  const page = await open("/sessions", { viewport: { width: 390, height: 844 } });
  const { tab } = page;
  const { items } = await ask(tab, "sessions?q=guard");
  await tab.goto(browser.base + items[0].url);
  const turn = tab.locator(".turn-list li").first();
  await matches(() => turn.textContent(), /add a guard for the routes.*\d\d:\d\d.*✕ 1/);
  assert.ok((await tab.evaluate(() => document.documentElement.scrollWidth)) <= 390);
  await becomes(() => axe(browser.context, tab), "[]");
  await turn.getByRole("button").click();
  await tab.locator('.cv-row[aria-selected="true"]').waitFor();
  assert.ok((await tab.evaluate(() => document.documentElement.scrollWidth)) <= 390);
  await tab.goBack();
  await turn.waitFor();
  await page.close();
});

test("time compares with as many days before, up to the same time of day, and knows the length of turns", { skip }, async () => {
  const page = await open("/health");
  const { tab } = page;
  const asked = [];
  tab.on("request", (request) => asked.push(request.url()));
  await tab.goto(`${browser.base}/time?days=1`);
  await matches(() => tab.locator("tr", { hasText: "harbour" }).first().textContent(), /harbour\D*[\d.]+m?s.*sessions$/);
  const yesterday = await tab.evaluate(() => { const d = new Date(); return new Date(d.getFullYear(), d.getMonth(), d.getDate() - 1).getTime(); });
  const minutes = (Date.now() - midnight()) / MINUTE;
  const before = await eventually("the day before", async () => asked.map((url) => new URL(url).searchParams).find((query) => query.get("from_us") === `${yesterday * 1_000}` && query.get("by") === "none"));
  assert.ok(Math.abs(Number(before.get("columns")) - minutes) <= 16, before.get("columns"));
  // A period that has ended is compared with a whole one. Nothing happened before yesterday, so nothing is said.
  await tab.goto(`${browser.base}/time?from_us=${yesterday * 1_000}&to_us=${midnight() * 1_000}`);
  await matches(() => tab.locator(".time-total h2").textContent(), /in 1 turn$/);
  await page.close();
});

test("a notice is asked for by a click, per kind, and holds no content", { skip }, async () => {
  const page = await browser.page();
  const { tab } = page;
  await tab.addInitScript(() => {
    window.asked = 0;
    window.told = [];
    window.Notification = class {
      static permission = "default";
      static async requestPermission() {
        window.asked += 1;
        window.Notification.permission = "granted";
        return "granted";
      }
      constructor(title, options) { window.told.push({ title, ...options }); }
    };
    Object.defineProperty(document, "hidden", { get: () => window.away === true });
  });
  await tab.goto(`${browser.base}/now`);
  const button = tab.getByRole("button", { name: "notify: needs you" });
  await button.waitFor();
  await becomes(() => tab.evaluate(() => window.asked), 0, "not without a click");
  await button.click();
  await eventually("on", async () => (await button.getAttribute("aria-pressed")) === "true");
  await tab.evaluate(() => { window.away = true; });
  const secret = "which port does the lighthouse use";
  await collector.take(jsonl(new Talk({ at: ago(4_000), project: "secret-project", seed: 91 }).start("x").open("AskQuestion", { question: secret })));
  await eventually("told", () => tab.evaluate(() => window.told.length > 0));
  await collector.take(jsonl(new Talk({ at: ago(3_000), project: "secret-project", seed: 92 }).start("y").end()));
  await tab.locator(".agent", { hasText: "turn ended" }).first().waitFor();
  const told = await tab.evaluate(() => window.told);
  assert.deepEqual(told, [{ title: "hookspan: needs you", body: "1 in all", tag: "hookspan needs you" }]);
  await tab.evaluate(() => { window.away = false; });
  await button.click();
  await eventually("off", async () => (await button.getAttribute("aria-pressed")) === "false");
  await page.close();
});
