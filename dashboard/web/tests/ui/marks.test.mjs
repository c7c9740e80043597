// Stars, tags, notes, kept filters, filters by outcome, menus of values and following, against the real collector.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Collector, noCollector } from "./collector.mjs";
import { jsonl, Talk } from "./hooks.mjs";
import { ask, axe, becomes, chromium, eventually, matches, missing } from "./support.mjs";

const skip = await missing(noCollector);
const MINUTE = 60_000;
const ago = (ms) => Date.now() - ms;
let collector;
let browser;
let tested;
let quiet;
let running;

before(async () => {
  if (skip) return;
  collector = await new Collector().start();
  tested = new Talk({ at: ago(50 * MINUTE), project: "harbour", seed: 81 }).start("make the tests pass");
  tested.tool("Read", { file_path: "/home/dev/src/harbour/src/a.rs" }, 9).wait(200).shell("cargo test", 4_000, { output: "2 failed", exit: 101 });
  tested.tool("StrReplace", { file_path: "/home/dev/src/harbour/src/a.rs", old_string: "a", new_string: "b" }, 7).end();
  quiet = new Talk({ at: ago(40 * MINUTE), project: "lighthouse", seed: 82, model: "opus-9" }).start("what does this do?").tool("Read", { file_path: "/home/dev/src/lighthouse/b.rs" }, 5).end();
  running = new Talk({ at: ago(4 * MINUTE), project: "pier", seed: 83 }).start("a long one");
  for (let k = 0; k < 60; k += 1) running.shell(`make part${k}`, 400).wait(150);
  running.open("Shell", { command: "make the rest", cwd: "", timeout: 30_000 });
  await collector.take(jsonl(tested, quiet, running));
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

const row = (tab, text) => tab.locator("tbody tr", { hasText: text });

test("a star, tags and a note are set on the list and in the session, and filter the list", { skip }, async () => {
  const page = await open("/sessions");
  const { tab } = page;
  const star = (text) => row(tab, text).getByRole("button", { name: "star" });
  await star("make the tests pass").click();
  await becomes(() => star("make the tests pass").getAttribute("aria-pressed"), "true");
  await becomes(() => new URL(tab.url()).pathname, "/sessions");
  await tab.goto(`${browser.base}/s/${tested.id}`);
  const marks = tab.locator(".marks");
  await marks.getByLabel("Add a tag").fill("#flaky");
  await tab.keyboard.press("Enter");
  await marks.getByRole("link", { name: "#flaky" }).waitFor();
  // A value that an address could misread is found again, also after a reload.
  const odd = "a|b:100%&x=1#z";
  await marks.getByLabel("Add a tag").fill(odd);
  await tab.keyboard.press("Enter");
  await marks.getByRole("link", { name: `#${odd}` }).click();
  await row(tab, "make the tests pass").waitFor();
  await becomes(() => tab.locator("tbody tr").count(), 1);
  await tab.reload();
  await becomes(() => tab.getByRole("searchbox").inputValue(), `tag:${odd}`);
  await becomes(() => tab.locator("tbody tr").count(), 1);
  await tab.goto(`${browser.base}/s/${tested.id}`);
  await marks.getByRole("button", { name: `remove the tag ${odd}` }).click();
  await becomes(() => marks.getByRole("link", { name: `#${odd}` }).count(), 0);
  // What cannot be a tag is not sent.
  await marks.getByLabel("Add a tag").fill("two words");
  await tab.keyboard.press("Enter");
  await becomes(() => marks.getByLabel("Add a tag").evaluate((field) => field.validity.patternMismatch), true);
  await marks.getByLabel("Add a tag").fill("");
  await marks.getByRole("button", { name: "+ note" }).click();
  await marks.getByLabel("Note").fill("<b>the lock</b>\nis taken twice");
  await marks.getByRole("button", { name: "save" }).click();
  await marks.getByRole("button", { name: "the lock" }).waitFor();
  await becomes(() => axe(browser.context, tab), "[]");
  await tab.reload();
  await marks.getByRole("button", { name: "✎ <b>the lock</b>" }).waitFor();
  // The tag leads to the sessions with it.
  await marks.getByRole("link", { name: "#flaky" }).click();
  await row(tab, "make the tests pass").waitFor();
  await becomes(() => tab.locator("tbody tr").count(), 1);
  await becomes(() => tab.getByRole("searchbox").inputValue(), "tag:flaky");
  await tab.getByRole("searchbox").fill("tag:none");
  await tab.keyboard.press("Enter");
  await row(tab, "what does this do?").waitFor();
  await becomes(() => row(tab, "make the tests pass").count(), 0);
  await tab.getByRole("searchbox").fill("starred:yes");
  await tab.keyboard.press("Enter");
  await becomes(() => tab.locator("tbody tr").count(), 1);
  await becomes(() => axe(browser.context, tab), "[]");
  // A key takes the star.
  await tab.goto(`${browser.base}/s/${tested.id}`);
  await marks.waitFor();
  await tab.locator(".cv-row:not([hidden])").first().waitFor();
  await tab.keyboard.press("*");
  await becomes(() => marks.getByRole("button", { name: "star" }).getAttribute("aria-pressed"), "false");
  await eventually("stored", async () => !(await ask(tab, `sessions/${tested.id}`)).marks.starred);
  await page.close();
});

test("a filter is kept by name, for any browser, and forgotten again", { skip }, async () => {
  const page = await open("/sessions?project=harbour");
  const { tab } = page;
  await tab.getByRole("button", { name: "keep this filter" }).click();
  await tab.getByLabel("Name of this filter").fill("mine");
  await tab.keyboard.press("Enter");
  const chip = tab.getByRole("navigation", { name: "Kept filters" }).getByRole("link", { name: "mine" });
  await chip.waitFor();
  await becomes(() => chip.getAttribute("aria-current"), "true");
  // Another browser has no storage of this one.
  const other = await chromium(collector.base);
  const second = await other.page();
  await second.tab.goto(collector.login);
  await eventually("signed in", () => !second.tab.url().includes("/login"));
  await second.tab.goto(`${other.base}/sessions`);
  await second.tab.getByRole("link", { name: "mine" }).click();
  await row(second.tab, "make the tests pass").waitFor();
  await becomes(() => second.tab.locator("tbody tr").count(), 1);
  await second.tab.getByRole("button", { name: "forget the filter mine" }).click();
  await becomes(() => second.tab.getByRole("link", { name: "mine" }).count(), 0);
  await second.close();
  await other.close();
  // Each page has its own.
  for (const path of ["/errors?tool=Shell", "/files?q=a.rs"]) {
    await tab.goto(browser.base + path);
    await tab.getByRole("button", { name: "keep this filter" }).click();
    await tab.getByLabel("Name of this filter").fill("here");
    await tab.keyboard.press("Enter");
    await tab.getByRole("link", { name: "here" }).waitFor();
    await becomes(() => axe(browser.context, tab), "[]");
  }
  await becomes(async () => (await ask(tab, "filters")).items.map(({ page: of, name }) => `${of} ${name}`), ["errors here", "files here"]);
  await page.close();
});

test("sessions are filtered by what came of them, and by what they lack, in the same words everywhere", { skip }, async () => {
  const page = await open("/sessions");
  const { tab } = page;
  await row(tab, "make the tests pass").getByRole("link", { name: "tests failed" }).click();
  await becomes(() => tab.locator("tbody tr").count(), 1);
  await matches(() => tab.url(), /outcome=tests_failed/);
  await tab.getByRole("searchbox").fill("outcome:unchanged");
  await tab.keyboard.press("Enter");
  await row(tab, "what does this do?").waitFor();
  await becomes(() => tab.locator("tbody tr").count(), 1);
  // A value of a cell becomes the filter.
  await tab.goto(`${browser.base}/sessions`);
  await row(tab, "what does this do?").getByRole("button", { name: "opus-9" }).click();
  await row(tab, "what does this do?").getByRole("button", { name: "only this" }).click();
  await becomes(() => tab.locator("tbody tr").count(), 1);
  await matches(() => tab.url(), /model=opus-9/);
  const found = async (path) => (await ask(tab, path)).items.length;
  await eventually("indexed", () => found("search?q=pass"));
  await becomes(() => found("search?q=pass%20outcome:tests_failed"), await found("search?q=pass"));
  await becomes(() => found("search?q=pass%20outcome:unchanged"), 0);
  await becomes(() => found("errors?outcome=unchanged"), 0);
  await becomes(() => found("errors?outcome=tests_failed"), 1);
  await becomes(() => found("sessions?project=none"), 0);
  await becomes(() => found("sessions?branch=none"), 3);
  await page.close();
});

test("a value filters the rows, excludes them, and is copied, by pointer and by keys", { skip }, async () => {
  const page = await open(`/s/${tested.id}?view=waterfall`);
  const { tab } = page;
  await tab.locator(".wf-row:not([hidden])").first().waitFor();
  await tab.keyboard.press("0");
  await tab.locator(".wf-row:not([hidden])", { hasText: "cargo test" }).click();
  const kind = tab.locator(".detail .value").first().getByRole("button").first();
  await becomes(() => kind.textContent(), "shell");
  await kind.click();
  await tab.locator(".acts").getByRole("button", { name: "only this" }).click();
  const filter = tab.getByLabel("Filter the rows of this session");
  await becomes(() => filter.inputValue(), "kind:shell");
  const shown = () => tab.locator(".wf-row.wf-hit:not([hidden])").count();
  await becomes(shown, 1);
  // The opposite takes its place.
  await kind.focus();
  await tab.keyboard.press("-");
  await becomes(() => filter.inputValue(), "-kind:shell");
  await eventually("the others", async () => (await shown()) > 1);
  await kind.focus();
  await tab.keyboard.press("=");
  await becomes(() => filter.inputValue(), "kind:shell");
  await browser.context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: browser.base });
  await tab.keyboard.press("c");
  await tab.getByText("copied", { exact: true }).waitFor();
  await becomes(() => tab.evaluate(() => navigator.clipboard.readText()), "shell");
  await tab.getByRole("tab", { name: "OTLP" }).click();
  const tool = tab.locator(".attributes dt", { hasText: /^gen_ai\.tool\.name$/ }).locator("xpath=following-sibling::dd[1]");
  await tool.getByRole("button").click();
  await tool.getByRole("link", { name: "sessions" }).waitFor();
  await becomes(() => axe(browser.context, tab), "[]");
  await tool.getByRole("link", { name: "sessions" }).click();
  await row(tab, "make the tests pass").waitFor();
  await matches(() => tab.url(), /\/sessions\?tool=Shell$/);
  await page.close();
});

test("a running session is followed in the waterfall until the person chooses or scrolls, and again", { skip }, async () => {
  const page = await open(`/s/${running.id}?view=waterfall`);
  const { tab } = page;
  const chosen = () => tab.locator('.wf-row[aria-selected="true"]:not([hidden]) .wf-text').textContent({ timeout: 1_000 }).catch(() => "");
  const follow = tab.getByRole("button", { name: "follow" });
  await matches(chosen, /make the rest/);
  await becomes(() => follow.getAttribute("aria-pressed"), "true");
  const next = async (command) => {
    const { length } = running.lines;
    running.wait(300).hook("postToolUse", { ...running.call, tool_output: "{}", duration: 300 });
    running.open("Shell", { command, cwd: "", timeout: 30_000 });
    await collector.take(`${running.lines.slice(length).map((line) => line.text).join("\n")}\n`);
  };
  await next("make more");
  await matches(chosen, /make more/);
  // The user looks at something else: new rows move nothing.
  await tab.keyboard.press("k");
  await becomes(() => follow.getAttribute("aria-pressed"), "false");
  const kept = await chosen();
  await next("make much more");
  await tab.locator(".wf-row", { hasText: "make much more" }).waitFor({ state: "attached" });
  assert.equal(await chosen(), kept);
  await tab.keyboard.press("F");
  await matches(chosen, /make much more/);
  await becomes(() => follow.getAttribute("aria-pressed"), "true");
  await tab.locator(".wf-scroll").hover();
  await tab.mouse.wheel(0, -400);
  await becomes(() => follow.getAttribute("aria-pressed"), "false");
  await follow.click();
  await becomes(() => follow.getAttribute("aria-pressed"), "true");
  await becomes(() => axe(browser.context, tab), "[]");
  await page.close();
});
