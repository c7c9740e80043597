// Tests the pages with a real collector: before and at the first hook, with real and hostile data, in twelve tabs, over
// a restart.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Collector, noCollector, RECORDED } from "./collector.mjs";
import { hostile, HOSTILE, jsonl, long, Talk } from "./hooks.mjs";
import { ask, axe, becomes, chromium, eventually, matches, missing } from "./support.mjs";

const skip = await missing(noCollector);
const SESSION = "6b1f0c52-9d3e-4a77-8c15-2e90a4d7f3b1";
const PAGES = ["/", "/now", "/sessions", "/errors", "/latency?days=365", "/latency?group=model&days=365", "/latency?group=project&days=365", "/time?days=365", "/files?days=365", "/search?q=cargo", "/search?status=error", "/live", "/health", "/privacy"];
const VIEWS = ["conversation", "waterfall", "flame", "log", "edits", "insights"];
let collector;
let browser;

before(async () => {
  if (skip) return;
  collector = await new Collector().start();
  browser = await chromium(collector.base);
  const first = await browser.page();
  await first.tab.goto(collector.login);
  await eventually("signed in", () => !first.tab.url().includes("/login"));
  await eventually("the code is gone from the address", () => !first.tab.url().includes("#c="));
  await becomes(() => browser.context.cookies(), [], "no cookie");
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

// Both are checked in one call. Between two calls the page could be drawn for the first time.
const settled = (tab) => eventually("nothing is loading", () => tab.evaluate(() => !document.querySelector("main .loading") && document.querySelector("main h1") !== null));
/** Imports the recorded session. Only the first call adds it; later ones find it already stored. */
const recorded = () => collector.take(RECORDED);
const ago = (ms) => Date.now() - ms;

test("an empty dashboard says what to do, and the first hook flips it without a reload", { skip }, async () => {
  const page = await open("/");
  const { tab } = page;
  await tab.getByRole("heading", { name: "Waiting for the first hook" }).waitFor();
  for (const word of ["hookspan install", "hookspan demo"]) assert.ok((await tab.locator(".waiting").textContent()).includes(word), word);
  await becomes(() => axe(browser.context, tab), "[]");
  await tab.evaluate(() => { window.stays = true; });
  const talk = new Talk({ at: ago(5_000), project: "lighthouse" }).start("light the lamp").shell("make lamp", 900, { output: "ok" });
  await collector.take(jsonl(talk));
  await tab.getByRole("heading", { name: /Running|Needs you now/ }).first().waitFor();
  await tab.getByText("light the lamp").first().waitFor();
  await becomes(() => tab.evaluate(() => window.stays), true);
  await page.close();
});

test("what waits for the person is in the list, the title and the icon, oldest first, and its age ticks in silence", { skip }, async () => {
  const page = await open("/");
  const { tab } = page;
  await settled(tab);
  const asks = (ms, project, seed, question) => new Talk({ at: ago(ms), project, seed }).start(`work on ${project}`).open("AskQuestion", { question });
  const ended = new Talk({ at: ago(300_000), project: "boats", seed: 5 }).start("paint the boat").end();
  await collector.take(jsonl(asks(400_000, "api", 3, "which port?"), asks(60_000, "docs", 4, "which page?"), ended));
  const needs = tab.locator("section:has(#needs) .need");
  await eventually("both wait", async () => (await needs.count()) >= 2);
  const texts = await needs.allTextContents();
  const at = (word) => texts.findIndex((text) => text.includes(word));
  assert.ok(at("api") >= 0 && at("api") < at("docs"), texts.join(" | "));
  // A turn that ended is in a list of its own, and counts neither in the title nor in the icon.
  await tab.locator("section:has(#ended) .need", { hasText: "paint the boat" }).waitFor();
  assert.equal(at("boats"), -1);
  const count = await needs.count();
  await eventually("the title counts", async () => (await tab.title()).startsWith(`(${count}) `));
  await matches(() => tab.locator('link[rel="icon"]').getAttribute("href"), /icon-\d\.svg$/);
  const said = () => tab.locator(".frame > [role=status]").first().textContent();
  await eventually("the list is spoken", async () => (await said()).includes("docs"));
  const before = [await said(), await tab.locator(".need .since").first().textContent()];
  await eventually("an age ticks", async () => (await tab.locator(".need .since").first().textContent()) !== before[1]);
  await becomes(() => said(), before[0], "an age is not spoken");
  // The other pages show the count, too.
  await tab.keyboard.press("g");
  await tab.keyboard.press("h");
  await tab.getByRole("heading", { name: "Health", level: 1 }).waitFor();
  await matches(() => tab.title(), /^\(\d\) Health/);
  await page.close();
});

test("every page shows real data, passes axe in both themes, and says nothing on the console", { skip }, async () => {
  await recorded();
  const paths = [...PAGES, ...VIEWS.map((view) => `/s/${SESSION}?view=${view}`), `/compare?a=${SESSION}&b=${SESSION}:5`, "/nothing-here"];
  // Each tab visits half of the pages, because what one page leaves behind must not break the next.
  await Promise.all([0, 1].map(async (half) => {
    const page = await open("/");
    for (const path of paths.filter((_, i) => i % 2 === half)) {
      await page.tab.goto(browser.base + path);
      await settled(page.tab);
      await becomes(() => axe(browser.context, page.tab), "[]", path);
    }
    page.wrong.splice(0, Infinity, ...page.wrong.filter((one) => !/404 .*nothing-here$/.test(one)));
    await page.close();
  }));
});

test("Now says what each agent does against its usual time, alarms with a reason, and can be muted", { skip }, async () => {
  const other = await new Collector().start();
  const own = await chromium(other.base);
  try {
    // Thirty earlier calls of each tool. Then three open calls: one that takes far longer than usual, one that is slow,
    // and one without earlier calls.
    const past = new Talk({ at: ago(9_000_000), project: "past", seed: 61 }).start("make the lamps");
    for (let i = 0; i < 30; i += 1) past.shell("make lamp", 1_000).tool("Read", { file_path: "/home/dev/src/past/a.rs" }, 9_000);
    past.end();
    const asks = new Talk({ at: ago(130_000), project: "lighthouse", seed: 62 }).start("push the branch").think(900, "The ten runs are green. Pushing the branch.").open("Shell", { command: "git push --force", cwd: "", timeout: 30_000 });
    const slow = new Talk({ at: ago(40_000), project: "docs", seed: 63 }).start("read all of it").open("Read", { file_path: "/home/dev/src/docs/b.rs" });
    const fresh = new Talk({ at: ago(90_000), project: "api", seed: 64 }).start("ask the server").open("WebFetch", { url: "a.example" });
    const ended = new Talk({ at: ago(240_000), project: "boats", seed: 65 }).start("paint the boat").end("The boat is painted.");
    await other.take(jsonl(past, asks, slow, fresh, ended));
    const { tab, close, wrong } = await own.page();
    await tab.goto(other.login);
    await eventually("signed in", () => !tab.url().includes("/login"));
    await tab.goto(`${own.base}/now`);
    const card = (text) => tab.locator(".agent", { hasText: text });
    await card("push the branch").waitFor();
    await matches(() => card("push the branch").textContent(), /approval likely.*lighthouse.*git push --force.*p50 .* p95 .* 30 runs of Shell.*times as long as 95 %.*no hook reports an approval.*Pushing the branch/s);
    await matches(() => card("read all of it").textContent(), /slow.*longer than 95 % of 30 runs/s);
    await matches(() => card("ask the server").textContent(), /running.*no usual time yet.*too few to say/s);
    await matches(() => card("paint the boat").textContent(), /turn ended.*The boat is painted/s);
    assert.doesNotMatch(await card("push the branch").locator(".agent-said").textContent(), /[{}]/, "words, not the document around them");
    await becomes(() => tab.locator(".agent-alarm").count(), 1);
    await matches(() => tab.locator(".bar").textContent(), /1 needs you.*1 turn ended/);
    await eventually("ten minutes in sixty parts", async () => (await card("push the branch").locator(".ten i").count()) === 60);
    // The badge and the title count the same alarm, and neither a call that merely runs nor a turn that ended.
    await eventually("the title counts", async () => /^\(1\) Now/.test(await tab.title()));
    await tab.locator(".need-badge", { hasText: /^1$/ }).waitFor();
    await becomes(() => axe(own.context, tab), "[]");
    await card("push the branch").locator(".agent-title").focus();
    await tab.keyboard.press("m");
    await eventually("muted", async () => (await tab.locator(".agent-alarm").count()) === 0);
    await eventually("the number is gone", async () => /nothing needs you.*1 turn ended/.test(await tab.locator(".bar").textContent()));
    await eventually("from the title, too", async () => /^Now/.test(await tab.title()));
    await tab.goto(`${own.base}/`);
    await tab.getByText("Nothing needs you.", { exact: false }).first().waitFor();
    await tab.goto(`${own.base}/now`);
    await card("push the branch").getByRole("button", { name: "unmute" }).click();
    await eventually("not muted", async () => (await tab.locator(".agent-alarm").count()) === 1);
    // Overview shows the same two numbers, in two lists.
    await tab.goto(`${own.base}/`);
    await tab.getByRole("heading", { name: "Needs you now 1" }).waitFor();
    await tab.getByRole("heading", { name: "Turn ended 1" }).waitFor();
    await tab.goto(`${own.base}/now`);
    await card("push the branch").waitFor();
    const first = await tab.locator(".agent-title").first().getAttribute("href");
    await tab.keyboard.press("1");
    await eventually("the first card", () => new URL(tab.url()).pathname === new URL(first, own.base).pathname);
    assert.deepEqual(wrong, []);
    await close();
  } finally {
    await own.close();
    await other.close();
  }
});

test("g and a letter goes to each page, and the rail says where one is", { skip }, async () => {
  const page = await open("/");
  const { tab } = page;
  for (const [key, name, path] of [["n", "Now", "/now"], ["s", "Sessions", "/sessions"], ["e", "Errors", "/errors"], ["l", "Latency", "/latency"], ["t", "Time", "/time"], ["f", "Search", "/search"], ["v", "Live", "/live"], ["h", "Health", "/health"], ["p", "Privacy", "/privacy"], ["o", "Overview", "/"]]) {
    await tab.locator("body").click({ position: { x: 700, y: 890 } });
    await tab.evaluate(() => document.activeElement?.blur());
    await tab.keyboard.press("g");
    await tab.keyboard.press(key);
    await eventually(name, () => new URL(tab.url()).pathname === path);
    await becomes(() => tab.locator(".rail [aria-current=page]").textContent().then((text) => text.replace(/\d/g, "")), name);
  }
  await page.close();
});

test("the palette opens with Ctrl-K, finds a session and a page, and closes with Escape", { skip }, async () => {
  await collector.take(jsonl(new Talk({ at: ago(95_000), project: "palette", seed: 13 }).start("sail the boat home").end()));
  const page = await open("/health");
  const { tab } = page;
  await settled(tab);
  await tab.keyboard.press("Control+k");
  const field = tab.getByRole("combobox", { name: "Page, session or command" });
  await field.fill("priv");
  await tab.keyboard.press("Enter");
  await tab.getByRole("heading", { name: "Privacy", level: 1 }).waitFor();
  await tab.keyboard.press("Control+k");
  await field.fill("sail the boat");
  await tab.getByRole("option", { name: /session.*sail the boat/ }).waitFor();
  await tab.keyboard.press("Escape");
  await becomes(() => field.isVisible(), false);
  await tab.keyboard.press("Control+k");
  await field.fill("sail the boat");
  await tab.getByRole("option", { name: /session.*sail the boat/ }).click();
  await tab.locator(".cv-row:not([hidden])").first().waitFor();
  await page.close();
});

test("keys can be turned off, and help says all of them", { skip }, async () => {
  const page = await open("/health");
  const { tab } = page;
  await settled(tab);
  await tab.keyboard.press("?");
  const help = tab.getByRole("dialog", { name: "Keys" });
  for (const key of ["j k", "[ ]", "e E", "n N", "/", "Ctrl K", "a", "f", "+", "1 0", "s", "y", "b", "?", "g then", "Esc"]) await eventually(key, async () => (await help.textContent()).includes(key));
  await help.getByRole("checkbox").uncheck();
  await tab.keyboard.press("Escape");
  await help.waitFor({ state: "hidden" });
  await tab.keyboard.press("g");
  await tab.keyboard.press("s");
  await tab.keyboard.press("b");
  await becomes(() => new URL(tab.url()).pathname, "/health");
  await becomes(() => tab.evaluate(() => document.documentElement.dataset.blur), undefined);
  await tab.keyboard.press("?");
  await help.getByRole("checkbox").check();
  await tab.keyboard.press("Escape");
  await help.waitFor({ state: "hidden" });
  await tab.keyboard.press("b");
  await eventually("blurred", async () => (await tab.evaluate(() => document.documentElement.dataset.blur)) === "1");
  await tab.keyboard.press("b");
  await page.close();
});

test("the filter, the order and the state of the list are in the address and survive a reload", { skip }, async () => {
  await collector.take(jsonl(new Talk({ at: ago(90_000), project: "filters", seed: 12 }).start("paint the boat").shell("make boat", 900).end()));
  const page = await open("/sessions");
  const { tab } = page;
  await settled(tab);
  await tab.keyboard.press("/");
  await tab.keyboard.type("tool:Shell dur>700ms boat");
  await tab.keyboard.press("Enter");
  await eventually("one row", async () => (await tab.locator("tbody tr").count()) === 1);
  await tab.getByRole("button", { name: "errors" }).click();
  await eventually("the address has it", () => ["tool=Shell", "min_us=700000", "q=boat", "sort=errors"].every((part) => tab.url().includes(part)));
  await tab.reload();
  await eventually("still one row", async () => (await tab.locator("tbody tr").count()) === 1);
  await becomes(() => tab.getByRole("searchbox").inputValue(), "boat tool:Shell dur>700ms");
  await becomes(() => tab.locator("th[aria-sort=descending]").textContent(), "errors ▾");
  // A second press reverses the order, and Back over the address keeps it.
  await tab.goto(`${browser.base}/sessions`);
  await tab.getByRole("button", { name: "last" }).click();
  await tab.locator("th[aria-sort=ascending]", { hasText: "last ▴" }).waitFor();
  const asked = await ask(tab, "sessions?order=asc");
  await becomes(() => tab.locator('tbody a[href^="/s/"]').evaluateAll((links) => links.map((link) => link.getAttribute("href"))), asked.items.map((one) => one.url));
  await tab.reload();
  await tab.locator("th[aria-sort=ascending]").waitFor();
  await page.close();
});

test("a hit says where it is, and two letters find no less than the word that begins with them", { skip }, async () => {
  await collector.take(jsonl(new Talk({ at: ago(90_000), project: "quay", seed: 13 }).start("count the crates").end().wait(100).start("and the barrels").shell("quayside --count", 900).end()));
  const page = await open("/search");
  const { tab } = page;
  await settled(tab);
  const total = async (q) => (await ask(tab, `search?q=${q}`)).total;
  // The index follows the store.
  await eventually("it is in the index", async () => (await total("quayside")) > 0);
  assert.ok((await total("qu")) >= (await total("quayside")));
  await tab.goto(`${browser.base}/search?q=quayside`);
  await tab.locator(".hit-place", { hasText: "quay / turn 2 · count the crates" }).first().waitFor();
  await page.close();
});

test("every key of the waterfall does what help says", { skip }, async () => {
  await recorded();
  const page = await open(`/s/${SESSION}?view=waterfall`);
  const { tab } = page;
  await tab.locator(".wf-row:not([hidden])").first().waitFor();
  const selected = tab.locator('.wf-row[aria-selected="true"]:not([hidden])');
  const frame = () => tab.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
  const label = async () => {
    await frame();
    return (await selected.locator(".wf-text").textContent()).trim();
  };
  const press = async (...keys) => {
    for (const key of keys) await tab.keyboard.press(key);
    return label();
  };
  await eventually("a row is chosen", async () => (await selected.count()) === 1);
  await press("1", "Home");
  await matches(label, /^session/);
  await press("j");
  await matches(label, /^turn 1/);
  await press("]");
  await matches(label, /^turn 2/);
  await press("ArrowDown", "ArrowUp");
  await matches(label, /^turn 2/);
  await press("[");
  await matches(label, /^turn 1/);
  await press("k");
  await matches(label, /^session/);
  await press("e");
  await matches(label, /^(Shell|Read)/);
  const first = await label();
  await press("e");
  await eventually("the next failure", async () => (await label()) !== first);
  await press("E");
  await becomes(label, first);
  // Equal calls share a row until it is unfolded.
  await press("1", "End", "ArrowRight");
  await tab.locator(".wf-row:not([hidden]) .wf-text", { hasText: /^\d+ × Read$/ }).click();
  await matches(() => label(), /^\d+ × Read$/);
  const rows = () => tab.getByRole("treegrid").getAttribute("aria-rowcount").then(Number);
  const folded = await rows();
  await press("ArrowRight");
  await matches(label, /^Read /);
  await becomes(() => rows(), folded + 4);
  await press("ArrowLeft");
  await matches(label, /^\d+ × Read$/);
  await becomes(() => rows(), folded);
  // One subagent alone.
  await press("s");
  await tab.locator(".focus").waitFor();
  await matches(() => tab.url(), /focus=[0-9a-f]{16}/);
  await matches(() => tab.locator(".focus").textContent(), /explore.*link/);
  await tab.reload();
  await tab.locator(".focus").waitFor();
  await eventually("its rows only", async () => (await rows()) < 20);
  await becomes(() => axe(browser.context, tab), "[]");
  await tab.keyboard.press("Escape");
  await eventually("all again", async () => (await tab.locator(".focus").count()) === 0 && !tab.url().includes("focus="));
  // Shows the critical path of the turn.
  await press("1", "End", "c");
  await eventually("others step back", async () => (await tab.locator(".wf-dimmed .wf-marked").count()) > 0);
  await tab.keyboard.press("Escape");
  await eventually("no more", async () => (await tab.locator(".wf-dimmed").count()) === 0);
  // The axis.
  await press("f");
  await eventually("kept", () => /[?&]t=/.test(tab.url()));
  const ruler = () => tab.locator(".wf-tick:not([hidden])").allTextContents().then(String);
  const wide = await ruler();
  await press("+");
  await eventually("closer", async () => (await ruler()) !== wide);
  await press("-", "a");
  await eventually("follows", () => !/[?&]t=/.test(tab.url()));
  // Matches.
  await tab.keyboard.press("/");
  await tab.keyboard.type("grep");
  await tab.keyboard.press("Enter");
  await matches(() => label(), /^Grep/);
  await frame();
  const one = await selected.getAttribute("aria-rowindex");
  await press("n");
  await eventually("the next match", async () => (await selected.getAttribute("aria-rowindex")) !== one);
  await press("N");
  await becomes(() => selected.getAttribute("aria-rowindex"), one);
  await tab.keyboard.press("Escape");
  await press("0");
  const all = await rows();
  await press("1");
  await eventually("fewer rows", async () => (await rows()) < all);
  // The address.
  await browser.context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: browser.base });
  await tab.keyboard.press("y");
  await tab.getByText("link copied").waitFor();
  await becomes(() => tab.evaluate(() => navigator.clipboard.readText()), tab.url());
  // Views, and back to the list.
  for (const [key, name] of [["v", "Conversation"], ["m", "Flame view"], ["l", "Log"], ["d", "Edits"], ["i", "Insights"]]) {
    await tab.keyboard.press(key);
    await tab.getByLabel(name, { exact: true }).first().waitFor();
  }
  await tab.keyboard.press("w");
  await tab.locator(".wf-row:not([hidden])").first().waitFor();
  // Escape returns to the first view. It leaves neither the session nor the site.
  await tab.keyboard.press("i");
  await tab.getByLabel("Insights", { exact: true }).first().waitFor();
  await tab.keyboard.press("Escape");
  await tab.locator(".cv-row:not([hidden])").first().waitFor();
  await tab.keyboard.press("Escape");
  await frame();
  await becomes(() => new URL(tab.url()).pathname, `/s/${SESSION}`);
  await tab.keyboard.press("g");
  await tab.keyboard.press("o");
  await eventually("the overview", () => new URL(tab.url()).pathname === "/");
  await settled(tab);
  await tab.keyboard.press("Escape");
  await frame();
  await becomes(() => new URL(tab.url()).pathname, "/");
  await page.close();
});

test("a click on the minimap goes to the turn under it, also when turns are folded, and a waiting session keeps its axis", { skip }, async () => {
  // Two turns of 300 s, 50 s apart. The second one ended ten minutes ago, and the session waits for its user.
  const talk = new Talk({ at: ago(1_250_000), project: "map", seed: 51 }).start("first").shell("make one", 300_000).end();
  talk.wait(50_000).start("second").shell("make two", 300_000).end();
  await collector.take(jsonl(talk));
  const page = await open(`/s/${talk.id}?view=waterfall`);
  const { tab } = page;
  await tab.locator(".wf-row:not([hidden])").first().waitFor();
  const canvas = tab.locator(".lanes canvas");
  const chosen = () => tab.locator('.wf-row[aria-selected="true"]:not([hidden]) .wf-text').textContent();
  await tab.keyboard.press("1");
  for (const [share, turn] of [[0.1, /^turn 1/], [0.45, /^turn 1/], [0.6, /^turn 2/], [0.95, /^turn 2/], [0.2, /^turn 1/]]) {
    const { width, height } = await canvas.boundingBox();
    await canvas.click({ position: { x: width * share, y: height / 2 } });
    await eventually(`at ${share}: ${turn}`, async () => turn.test(await chosen()));
  }
  await page.close();
});

test("the pointer zooms, pans and fits, and what lies beyond the axis says where", { skip }, async () => {
  const talk = new Talk({ at: ago(900_000), project: "zoom", seed: 71 }).start("one").shell("make one", 20_000).wait(5_000).shell("make two", 20_000, { exit: 2, output: "boom" }).end();
  talk.wait(30_000).start("two").shell("make three", 30_000).end();
  await collector.take(jsonl(talk));
  const page = await open(`/s/${talk.id}?view=waterfall`);
  const { tab } = page;
  await tab.locator(".wf-row:not([hidden])").first().waitFor();
  await tab.keyboard.press("0");
  const range = () => new URL(tab.url()).searchParams.get("t")?.split(",").map(Number);
  const length = async () => (await eventually("the axis is in the address", range)).reduce((from, to) => to - from);
  const bar = (name) => tab.locator(".wf-row:not([hidden])", { hasText: name });
  await tab.keyboard.press("f");
  const whole = await length();
  const box = await tab.locator(".wf-ruler-track").boundingBox();
  await tab.mouse.move(box.x + box.width / 4, box.y + 100);
  await tab.keyboard.down("Control");
  await tab.mouse.wheel(0, -300);
  await tab.keyboard.up("Control");
  await eventually("closer", async () => (await length()) < whole * 0.8);
  const closer = await length();
  const before = range()[0];
  await tab.keyboard.down("Shift");
  await tab.mouse.wheel(0, 120);
  await tab.keyboard.up("Shift");
  await eventually("moved", () => range()[0] > before);
  await eventually("as long as before", async () => Math.abs((await length()) - closer) <= 2);
  await tab.keyboard.press("f");
  await eventually("whole again", async () => (await length()) === whole);
  await tab.mouse.move(box.x + 20, box.y + 10);
  await tab.mouse.down();
  await tab.mouse.move(box.x + 120, box.y + 10);
  await tab.mouse.up();
  await eventually("the stretch", async () => (await length()) < whole / 2);
  // The double click is on the bar's part of the row. There is either the bar or the hint that it lies beyond the edge.
  const away = bar("make three").locator(".wf-note-away");
  await matches(() => away.textContent(), /later ▸/);
  await away.click();
  await eventually("in view", async () => (await bar("make three").locator(".wf-note-away").count()) === 0);
  await bar("make two").locator(".wf-track").dblclick();
  await eventually("fitted", async () => Math.abs((await length()) - 22_000_000) < 1_500_000);
  await bar("make two").hover();
  await matches(() => bar("make two").getAttribute("title"), /make two.*\n.*failed.*\n\d{4}-\d\d-\d\d /);
  await becomes(() => tab.getByRole("tab", { selected: true }).textContent().then((text) => text.trim()), "Output");
  await page.close();
});

test("a session that does not exist says so, and draws no empty waterfall", { skip }, async () => {
  const page = await open("/s/no-such-session");
  const { tab } = page;
  await tab.getByRole("heading", { name: "No such session" }).waitFor();
  await becomes(() => tab.locator(".wf:visible, .view-tabs:visible, .parts:visible").count(), 0);
  await becomes(() => axe(browser.context, tab), "[]");
  page.wrong.splice(0, Infinity, ...page.wrong.filter((one) => !/404 .*no-such-session/.test(one)));
  await page.close();
});

test("Back finds the list of sessions where it was left", { skip }, async () => {
  const talks = Array.from({ length: 60 }, (_, i) => new Talk({ at: ago(200_000 + i), project: "many", seed: 100 + i }).start(`sail ${i}`).end());
  await collector.take(jsonl(...talks));
  const page = await open("/sessions?project=many");
  const { tab } = page;
  await tab.locator("tbody tr").first().waitFor();
  await tab.evaluate(() => { document.querySelector("main .scroll").scrollTop = 400; });
  const top = () => tab.evaluate(() => document.querySelector("main .scroll")?.scrollTop);
  await eventually("scrolled", async () => (await top()) === 400);
  await tab.locator('tbody tr a[href^="/s/"]').nth(25).click();
  await tab.locator(".cv-row:not([hidden])").first().waitFor();
  await tab.goBack();
  await eventually("where it was", async () => (await top()) === 400);
  await tab.keyboard.press("g");
  await tab.keyboard.press("s");
  await eventually("all sessions", () => tab.url().endsWith("/sessions"));
  await page.close();
});

test("while the collector is away every page says since when, and the overview claims nothing", { skip }, async () => {
  const page = await open("/", { offline: true });
  const { tab } = page;
  await settled(tab);
  await becomes(() => tab.locator(".lost").count(), 0);
  await collector.stop();
  await matches(() => tab.locator(".lost").textContent(), /Can't reach hookspan since \d\d:\d\d/);
  await becomes(() => tab.locator(".calm").count(), 0, "nothing is known");
  await tab.keyboard.press("g");
  await tab.keyboard.press("h");
  await tab.locator(".lost").waitFor();
  await collector.start();
  await eventually("there again", async () => (await tab.locator(".lost").count()) === 0);
  // Requests that failed while the collector was down are repeated without an event.
  await eventually("no trouble is left", async () => (await tab.locator(".trouble").count()) === 0);
  await tab.getByRole("heading", { name: "Health", level: 1 }).waitFor();
  await page.close();
});

test("the pane pages through a large output, stops at depth, and keeps colours", { skip }, async () => {
  const deep = `${"{\"a\":".repeat(60)}1${"}".repeat(60)}`;
  const talk = new Talk({ at: ago(30_000), project: "pane", seed: 5 }).start("show me");
  talk.shell("cat large", 10, { output: `\u001b[31;1mred\u001b[0m\n${"0123456789abcdef\n".repeat(40_000)}` });
  talk.tool("Read", { file_path: "/home/dev/src/pane/deep.json" }, 5, { output: deep }).end();
  await collector.take(jsonl(talk));
  const page = await open(`/s/${talk.id}?view=waterfall`);
  const { tab } = page;
  await tab.locator(".wf-row:not([hidden])").first().waitFor();
  await tab.locator(".wf-text", { hasText: "cat large" }).click();
  await tab.getByRole("tab", { name: /Output/ }).click();
  const more = tab.getByRole("button", { name: /^more/ });
  await more.waitFor();
  const length = () => tab.locator("pre.text").last().evaluate((one) => one.textContent.length);
  const before = await length();
  assert.ok(before <= 256 * 1_024, String(before));
  await more.click();
  await eventually("more of it", async () => (await length()) > before);
  await tab.locator(".wf-text", { hasText: "deep.json" }).click();
  await tab.getByRole("tab", { name: /Output/ }).click();
  await tab.getByText("deeper than 32 levels").waitFor();
  await tab.getByRole("tab", { name: /Raw hooks/ }).click();
  await tab.locator("details.hook").first().waitFor();
  await tab.getByRole("tab", { name: /OTLP/ }).click();
  await tab.getByText("trace id").waitFor();
  await page.close();
});

test("hostile text is text on every page: no element, no dialog, no request, the title as it was", { skip }, async () => {
  const talk = hostile(ago(300_000));
  await collector.take(jsonl(talk));
  const elements = (tab) => tab.evaluate(() => document.querySelectorAll("main script, main iframe, main img, main object, main embed, main style, main title, main svg:not(.cv-row > .cv-left > .cv-icon), main [onload], main [onerror], main a[href^='javascript']").length);
  const paths = [...PAGES.filter((one) => !one.includes("q=cargo")), `/search?q=${encodeURIComponent('" OR * NEAR(')}`, `/search?q=${encodeURIComponent("<script>alert")}`, `/sessions?q=${encodeURIComponent(HOSTILE[1])}`,
    ...VIEWS.map((view) => `/s/${talk.id}?view=${view}`), `/compare?a=${talk.id}&b=${talk.id}:2`];
  const walk = async (half) => {
    const page = await open("/");
    for (const path of paths.filter((_, i) => i % 2 === half)) {
      await page.tab.goto(browser.base + path);
      await settled(page.tab);
      await becomes(() => elements(page.tab), 0, path);
      await matches(() => page.tab.title(), / · hookspan$/);
    }
    await page.close();
  };
  const spans = async () => {
    const page = await open(`/s/${talk.id}?view=waterfall`);
    const { tab } = page;
    await tab.locator(".wf-row:not([hidden])").first().waitFor();
    await tab.keyboard.press("0");
    await tab.keyboard.press("Home");
    // Walks through the first two turns, which contain each kind of call.
    for (let i = 0; i < 14; i += 1) {
      await tab.keyboard.press("j");
      const tabs = tab.getByRole("tab");
      await tabs.first().waitFor();
      for (let k = 0; k < (await tabs.count()); k += 1) await tabs.nth(k).click();
    }
    await becomes(() => elements(tab), 0);
    await eventually("the element is text", async () => (await tab.locator(".wf-text", { hasText: "<script>alert(1)</script>" }).count()) > 0);
    await page.close();
  };
  await Promise.all([walk(0), walk(1), spans()]);
});

test("twelve tabs are live over one stream, and all of them follow a restart without a gap or a reload", { skip }, async () => {
  const talk = new Talk({ at: ago(3_000), project: "tabs", seed: 6 }).start("first of all tabs").think(100);
  await collector.take(jsonl(talk));
  const pages = await Promise.all(Array.from({ length: 12 }, (_, i) => open(i % 3 ? "/sessions" : `/s/${talk.id}?view=waterfall`, { offline: true })));
  for (const { tab } of pages) await eventually("live", async () => (await tab.locator(".link-connected").count()) === 1);
  for (const { tab } of pages) await tab.evaluate(() => { window.stays = true; });
  const streams = await Promise.all(pages.map(({ tab }) => tab.evaluate(() => performance.getEntriesByType("resource").filter((one) => one.name.includes("/api/v1/stream")).length)));
  assert.ok(streams.filter((n) => n > 0).length <= 1, String(streams));
  const rows = (tab) => tab.getByRole("treegrid").getAttribute("aria-rowcount").then(Number);
  const counts = await Promise.all(pages.filter((_, i) => i % 3 === 0).map(({ tab }) => rows(tab)));
  talk.lines = [];
  await collector.take(jsonl(talk.wait(10).shell("echo one", 5)));
  const grown = async (by) => {
    let k = 0;
    for (const [i, { tab }] of pages.entries()) {
      if (i % 3) continue;
      const before = counts[k];
      k += 1;
      await eventually(`tab ${i} grows by ${by}`, async () => (await rows(tab)) === before + by, 30_000);
    }
  };
  await grown(1);
  await collector.stop();
  for (const { tab } of pages.slice(0, 3)) await eventually("offline", async () => (await tab.locator(".link-connected").count()) === 0, 30_000);
  talk.lines = [];
  await collector.take(jsonl(talk.wait(10).shell("echo two", 5), new Talk({ at: ago(0), project: "tabs", seed: 8 }).start("came while it was away")));
  await collector.start();
  for (const { tab } of pages) await eventually("live again", async () => (await tab.locator(".link-connected").count()) === 1, 40_000);
  await grown(2);
  for (const [i, { tab }] of pages.entries()) if (i % 3) await tab.getByText("came while it was away").first().waitFor();
  for (const { tab } of pages) await becomes(() => tab.evaluate(() => window.stays), true);
  for (const page of pages) await page.close();
});

test("a page whose script cannot be fetched says so, and loads by itself once it can be", { skip }, async () => {
  const page = await open("/live");
  const { tab } = page;
  await tab.route("**/pages/time.js", (route) => route.abort());
  await tab.goto(`${browser.base}/health`);
  await settled(tab);
  await tab.keyboard.press("g");
  await tab.keyboard.press("t");
  await tab.getByRole("heading", { name: "This page could not be loaded" }).waitFor();
  await matches(() => tab.locator(".trouble").textContent(), /hookspan up/);
  await tab.unroute("**/pages/time.js");
  await tab.getByRole("heading", { name: "Time", level: 1 }).waitFor();
  page.wrong.splice(0, Infinity, ...page.wrong.filter((one) => !/ERR_FAILED.*time\.js/.test(one)));
  await page.close();
});

test("pages are there after the collector has stopped, and none is asked for then", { skip }, async () => {
  const page = await open("/health", { offline: true });
  const { tab } = page;
  await settled(tab);
  const pages = ["overview", "now", "sessions", "errors", "latency", "time", "live", "search", "privacy", "compare"];
  await eventually("all are fetched", () => tab.evaluate((names) => {
    const have = performance.getEntriesByType("resource").map(({ name }) => name);
    return names.every((one) => have.some((url) => url.endsWith(`/pages/${one}.js`)));
  }, pages));
  await collector.stop();
  await tab.locator(".lost").waitFor();
  const asked = [];
  tab.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await tab.keyboard.press("g");
  await tab.keyboard.press("t");
  await tab.getByRole("heading", { name: "Time and cost", level: 1 }).waitFor();
  assert.deepEqual(asked.filter((path) => path.startsWith("/a/")), []);
  await collector.start();
  await eventually("there again", async () => (await tab.locator(".lost").count()) === 0);
  await page.close();
});

test("a key that is pressed in the moment a page is drawn is not lost", { skip }, async () => {
  for (const path of ["/health", "/sessions"]) {
    const page = await open("/live");
    const { tab } = page;
    // Checked in the same task that draws, before anything that waits for the next frame.
    await tab.addInitScript(() => {
      const seen = new MutationObserver(() => {
        if (!document.querySelector("main")) return;
        seen.disconnect();
        document.dispatchEvent(new KeyboardEvent("keydown", { key: "?", bubbles: true }));
      });
      seen.observe(document, { childList: true, subtree: true });
    });
    await tab.goto(browser.base + path);
    await tab.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.close();
  }
});

test("where the time went adds up by day and project, and one project can be chosen", { skip }, async () => {
  const talk = new Talk({ at: ago(7_200_000), project: "lamplight", seed: 21 }).start("trim the wick").shell("make wick", 4_000).end();
  await collector.take(jsonl(talk, new Talk({ at: ago(3_600_000), project: "harbour", seed: 22 }).start("count the boats").shell("ls boats", 9_000).end()));
  const page = await open("/time?days=7");
  const { tab } = page;
  await tab.getByRole("button", { name: "lamplight" }).waitFor();
  const total = () => tab.locator("#time-total").textContent();
  const all = await total();
  await tab.getByRole("button", { name: "lamplight" }).click();
  await eventually("one project", async () => (await total()).includes("lamplight") && (await total()) !== all);
  await matches(() => tab.url(), /project=lamplight/);
  await tab.reload();
  await eventually("still one", async () => (await total().catch(() => "")).includes("in 1 turn · lamplight"));
  await becomes(() => tab.locator(".column").count(), 7);
  const background = (bar) => getComputedStyle(bar).backgroundImage;
  await matches(() => tab.locator(".time-bar").first().evaluate(background), /gradient/);
  await tab.getByRole("button", { name: "all projects" }).click();
  await eventually("all again", async () => (await total()) === all);
  await page.close();
});

test("a trace id leads to its session and span, and a cell of the heatmap to the spans it counts", { skip }, async () => {
  const talk = new Talk({ at: ago(5_000), project: "heat", seed: 31 }).start("warm the room").shell("make heat", 1_500).end();
  await collector.take(jsonl(talk));
  const page = await open("/latency?days=1&group=tool&name=Shell");
  const { tab } = page;
  const span = await eventually("stored", () => ask(tab, `spans?session=${talk.id}&kind=shell`).then(({ items }) => items?.[0]));
  const { trace_id: trace } = await ask(tab, `spans/${span.id}`);
  await tab.goto(`${browser.base}/t/${trace}/${span.id}`);
  await eventually("its session", () => new URL(tab.url()).pathname === `/s/${talk.id}` && new URL(tab.url()).hash === `#${span.id}`);
  await eventually("its row", async () => (await tab.locator('.cv-row[aria-selected="true"] .cv-subject').textContent()).includes("make heat"));
  // The chosen cell moves by keys. It starts in the last column, which is the present; a cell with calls is further
  // down.
  await tab.goto(`${browser.base}/latency?days=1&group=tool&name=Shell`);
  const canvas = tab.locator(".heat canvas");
  await canvas.waitFor();
  await canvas.focus();
  const count = async () => Number(/ · (\d+) spans?$/.exec(await tab.locator(".heat-note").textContent())?.[1]);
  const n = await (async () => {
    for (const key of ["ArrowRight", ...Array(20).fill("ArrowDown"), ...Array(40).fill("ArrowUp")]) {
      await tab.keyboard.press(key);
      await eventually("a cell is chosen", async () => !Number.isNaN(await count()));
      const found = await count();
      if (found > 0) return found;
    }
    return 0;
  })();
  assert.ok(n > 0, "a cell counts something");
  await tab.keyboard.press("Enter");
  await eventually("a list of spans", () => /\/search\?.*min_us=\d+/.test(tab.url()));
  await eventually("as many as the cell says", async () => (await tab.locator(".hit").count()) === n);
  await page.close();
});

test("a destination that does not answer turns red on Health by itself, and says why", { skip }, async () => {
  const other = await new Collector().configure('[[destination]]\nname = "nobody"\nendpoint = "http://127.0.0.1:9"\n').start();
  const own = await chromium(other.base);
  try {
    const { tab, close } = await own.page();
    await tab.goto(other.login);
    await eventually("signed in", () => !tab.url().includes("/login"));
    await tab.goto(`${own.base}/health`);
    const row = tab.getByRole("row", { name: /^nobody/ });
    await row.waitFor();
    await becomes(() => tab.locator(".row-bad").count(), 0);
    await other.take(jsonl(new Talk({ at: ago(60_000), project: "export", seed: 41 }).start("send it").shell("make parcel", 50).end()));
    await eventually("red", async () => (await tab.locator(".row-bad").count()) === 1, 30_000);
    await matches(() => row.textContent(), /retry/);
    await eventually("a reason", async () => (await row.locator(".wide").textContent()).trim().length > 10);
    await row.getByRole("button", { name: "retry nobody" }).click();
    await close();
  } finally {
    await own.close();
    await other.close();
  }
});

test("a view is kept under a name and found again", { skip }, async () => {
  const page = await open("/latency?group=kind&days=7");
  const { tab } = page;
  await settled(tab);
  const field = tab.getByRole("combobox", { name: "Page, session or command" });
  const choose = async (text, option) => {
    await tab.keyboard.press("Control+k");
    await field.fill(text);
    await tab.getByRole("option", { name: option }).click();
  };
  await choose("kinds of the week", /save this view as/);
  await tab.goto(`${browser.base}/health`);
  await settled(tab);
  await choose("kinds of", /^view/);
  await eventually("there again", () => tab.url().endsWith("/latency?group=kind&days=7"));
  await page.close();
});

test("the live page follows, keeps still while it is paused, and catches up", { skip }, async () => {
  const page = await open("/live");
  const { tab } = page;
  await settled(tab);
  await tab.getByRole("button", { name: "pause" }).click();
  const talk = new Talk({ at: ago(1_000), project: "live", seed: 9 }).start("go on").shell("echo paused", 5);
  await collector.take(jsonl(talk));
  const resume = tab.getByRole("button", { name: /resume \([1-9]\d* new\)/ });
  await resume.waitFor();
  await becomes(() => tab.getByText("echo paused").count(), 0);
  await resume.click();
  await tab.getByText("echo paused").first().waitFor();
  await page.close();
});

test("rows in view stay where they are while a long session grows", { skip }, async () => {
  const talk = long(ago(4_000_000), 6, 11);
  await collector.take(jsonl(talk));
  const page = await open(`/s/${talk.id}?view=waterfall`);
  const { tab } = page;
  await tab.locator(".wf-row:not([hidden])").first().waitFor();
  await tab.keyboard.press("0");
  await tab.evaluate(() => { document.querySelector(".wf-scroll").scrollTop = 3_000; });
  const top = () => tab.evaluate(() => {
    const box = document.querySelector(".wf-scroll").getBoundingClientRect();
    const row = [...document.querySelectorAll(".wf-row:not([hidden])")].map((one) => [one.getBoundingClientRect().top - box.top, one.querySelector(".wf-text").textContent]).filter(([y]) => y >= 0).sort((a, b) => a[0] - b[0])[0];
    return row && `${Math.round(row[0])} ${row[1]}`;
  });
  await tab.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
  const before = await top();
  const rows = () => tab.getByRole("treegrid").getAttribute("aria-rowcount").then(Number);
  const count = await rows();
  talk.lines = [];
  await collector.take(jsonl(talk.wait(10).start("one more").shell("echo grown", 5)));
  await eventually("it grew", async () => (await rows()) > count);
  await becomes(() => top(), before);
  await page.close();
});

test("a page prints as a document: dark on white, whole, without the rail", { skip }, async () => {
  await recorded();
  const page = await open(`/s/${SESSION}?view=waterfall`, { colorScheme: "dark" });
  const { tab } = page;
  await tab.locator(".wf-row:not([hidden])").first().waitFor();
  await tab.emulateMedia({ media: "print" });
  const [paper, ink, rail, over] = await tab.evaluate(() => {
    const style = getComputedStyle(document.body);
    return [style.backgroundColor, style.color, getComputedStyle(document.querySelector(".rail")).display, getComputedStyle(document.querySelector("main")).overflow];
  });
  assert.deepEqual([paper, ink, rail, over], ["rgb(255, 255, 255)", "rgb(0, 0, 0)", "none", "visible"]);
  const pdf = await tab.pdf();
  assert.ok(pdf.length > 5_000, `${pdf.length} bytes`);
  await page.close();
});

test("the page is whole at 600 pixels, and nothing moves for who wants no motion", { skip }, async () => {
  await recorded();
  const page = await open(`/s/${SESSION}?view=waterfall`, { viewport: { width: 600, height: 900 } });
  const { tab } = page;
  await tab.emulateMedia({ reducedMotion: "reduce" });
  await tab.locator(".wf-row:not([hidden])").first().waitFor();
  for (const path of [`/s/${SESSION}`, `/s/${SESSION}?view=waterfall`, "/", "/sessions", "/health", "/privacy"]) {
    await tab.goto(browser.base + path);
    await settled(tab);
    await eventually(path, async () => (await tab.evaluate(() => document.documentElement.scrollWidth)) <= 600);
  }
  await tab.goto(`${browser.base}/s/${SESSION}?view=waterfall`);
  await tab.locator(".wf-row:not([hidden])").first().waitFor();
  const [wf, pane] = await tab.evaluate(() => [".wf", ".pane"].map((name) => document.querySelector(name).getBoundingClientRect().top));
  assert.ok(pane > wf + 50, "the pane is below");
  await becomes(() => tab.evaluate(() => document.getAnimations().filter((one) => one.playState === "running").length), 0);
  await page.close();
});
