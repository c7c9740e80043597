import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ask, axe, becomes, eventually, matches, missing, world } from "./support.mjs";

const skip = await missing();
let dashboard;
let session;

before(async () => {
  if (skip) return;
  dashboard = await world();
  const first = await dashboard.page();
  await first.tab.goto(dashboard.login);
  await first.tab.getByRole("navigation", { name: "Pages" }).waitFor();
  const list = await ask(first.tab, "sessions?limit=50");
  await becomes(() => new URL(first.tab.url()).hash, "", "the code leaves the address");
  // The session with the most content.
  session = list.items.toSorted((a, b) => b.calls + b.turns * 10 - a.calls - a.turns * 10)[0];
  await first.close();
});

after(() => dashboard?.close());

/** Opens a view of the session, and waits until its rows are drawn. */
async function open(query = "", options) {
  const page = await dashboard.page(options);
  await page.tab.goto(`${dashboard.base}${session.url}?view=waterfall${query.replace("?", "&")}`);
  await page.tab.locator(".wf-row:not([hidden])").first().waitFor();
  return page;
}

// Row elements are reused. An element out of view is hidden and still has its former content.
const selected = (tab) => tab.locator('.wf-row[aria-selected="true"]:not([hidden])');
// Waits for the next frame, because a key takes effect then.
const drawn = (tab) => tab.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
const label = async (tab) => {
  await drawn(tab);
  return (await selected(tab).locator(".wf-text").textContent()).trim();
};

test("a new tab is signed in, without a cookie", { skip }, async () => {
  const page = await dashboard.page();
  await page.tab.goto(`${dashboard.base}/sessions`);
  await becomes(() => dashboard.context.cookies(), []);
  await page.tab.getByRole("link", { name: session.first_prompt ?? session.id }).first().waitFor();
  await page.close();
});

test("the list opens a session and the address brings it back", { skip }, async () => {
  const page = await dashboard.page();
  await page.tab.goto(`${dashboard.base}/sessions?q=${encodeURIComponent(session.id)}`);
  await page.tab.locator("tbody a").first().click();
  await page.tab.locator(".cv-row:not([hidden])").first().waitFor();
  await becomes(() => new URL(page.tab.url()).pathname, session.url);
  await page.tab.reload();
  await page.tab.locator(".cv-row:not([hidden])").first().waitFor();
  await page.tab.goBack();
  await page.tab.locator("table.list").waitFor();
  await becomes(() => page.tab.getByRole("searchbox").inputValue(), session.id);
  await page.close();
});

test("rows move by keys, fold, and stay chosen over a reload", { skip }, async () => {
  const { tab, close } = await open();
  await tab.keyboard.press("1");
  await tab.keyboard.press("Home");
  const top = await label(tab);
  await tab.keyboard.press("j");
  await eventually("the next row", async () => (await label(tab)) !== top);
  await tab.keyboard.press("k");
  await becomes(() => label(tab), top);
  await tab.keyboard.press("]");
  await matches(() => label(tab), /^turn /);
  await becomes(() => selected(tab).getAttribute("aria-expanded"), "false");
  await tab.keyboard.press("ArrowRight");
  await eventually("unfolds", async () => (await selected(tab).getAttribute("aria-expanded")) === "true");
  await tab.keyboard.press("ArrowRight");
  const child = await label(tab);
  await eventually("the address names the span", () => /#[0-9a-f]{16}$/.test(tab.url()));
  const active = await tab.getByRole("treegrid").getAttribute("aria-activedescendant");
  await becomes(() => tab.locator(`#${active}`).getAttribute("aria-selected"), "true");
  await eventually("the pane shows the row", async () => (await tab.locator(".detail h2").count()) === 1);
  const hash = await eventually("the pane's own address", async () => {
    const id = new URL(tab.url()).hash.slice(1);
    const span = await ask(tab, `spans/${id}`);
    return child.startsWith(span.label.split(" ")[0]) && id;
  });
  await tab.reload();
  await eventually("the same row is chosen again", async () => (await selected(tab).count()) === 1 && (await label(tab)) === child);
  await becomes(() => new URL(tab.url()).hash.slice(1), hash);
  await tab.keyboard.press("ArrowLeft");
  await matches(() => label(tab), /^turn /);
  await close();
});

test("a filter shows matches with their ancestors and Escape lifts it", { skip }, async () => {
  const { tab, close } = await open();
  await tab.keyboard.press("0");
  const all = Number(await tab.getByRole("treegrid").getAttribute("aria-rowcount"));
  await tab.keyboard.press("/");
  await tab.keyboard.type("thought");
  await eventually("counts matches", async () => /\d+ match/.test(await tab.locator(".found").textContent()));
  const some = Number(await tab.getByRole("treegrid").getAttribute("aria-rowcount"));
  assert.ok(some > 0 && some < all, `${some} of ${all}`);
  await eventually("the address has the filter", () => tab.url().includes("q=thought"));
  await tab.keyboard.press("Enter");
  await eventually("n goes to a match", async () => (await label(tab)).startsWith("thought"));
  await tab.keyboard.press("Escape");
  await eventually("all rows again", async () => Number(await tab.getByRole("treegrid").getAttribute("aria-rowcount")) >= all);
  await close();
});

test("e walks every failure of a long session once, then begins again", { skip }, async () => {
  const { tab, close } = await open();
  await tab.keyboard.press("0");
  await tab.keyboard.press("Home");
  // Searches for a failed row without rows below it. A failed row below another one would be found next.
  const failures = await ask(tab, `sessions/${encodeURIComponent(session.id)}/spans`)
    .then(({ status, up }) => status.filter((one, i) => one === 1 && up[i + 1] !== 1).length);
  assert.ok(failures > 3, String(failures));
  const next = async () => {
    await tab.keyboard.press("e");
    await tab.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
    return selected(tab).getAttribute("aria-rowindex");
  };
  const seen = [];
  for (let i = 0; i < failures; i += 1) seen.push(await next());
  assert.equal(new Set(seen).size, failures);
  await eventually("a failure", async () => (await selected(tab).getAttribute("class")).includes("wf-failed"));
  assert.equal(await next(), seen[0]);
  await close();
});

test("ticks stand where bars of their time begin", { skip }, async () => {
  const { tab, close } = await open();
  await tab.keyboard.press("1");
  await tab.keyboard.press("f");
  await eventually("the axis is kept", () => tab.url().includes("t="));
  const geometry = await tab.evaluate(() => {
    const box = (one) => one.getBoundingClientRect();
    const track = document.querySelector(".wf-row:not([hidden]) .wf-track");
    const ruler = document.querySelector(".wf-ruler-track");
    const hatches = document.querySelector(".wf-hatches");
    const bar = document.querySelector(".wf-row.k-session .wf-bar");
    const tick = [...document.querySelectorAll(".wf-tick:not([hidden])")].find((one) => one.textContent.startsWith("+0:00:00"));
    return { track: box(track).left, ruler: box(ruler).left, hatches: box(hatches).left, bar: bar && box(bar).left, tick: tick && box(tick).left };
  });
  assert.ok(Math.abs(geometry.track - geometry.ruler) <= 1, JSON.stringify(geometry));
  assert.ok(Math.abs(geometry.track - geometry.hatches) <= 1, JSON.stringify(geometry));
  if (geometry.bar && geometry.tick) assert.ok(Math.abs(geometry.bar - geometry.tick) <= 1, JSON.stringify(geometry));
  await tab.keyboard.press("a");
  await eventually("follows again", () => !tab.url().includes("t="));
  await close();
});

test("a cut says how long it is", { skip }, async () => {
  const { tab, close } = await open();
  await tab.keyboard.press("1");
  await tab.keyboard.press("Home");
  const idle = await tab.evaluate(() => [...document.querySelectorAll(".wf-row.wf-idle:not([hidden])")]
    .map((row) => [row.querySelector(".wf-note").textContent, row.querySelector(".wf-dur").textContent])
    .filter(([note]) => note.startsWith("//")));
  for (const [note, length] of idle) assert.equal(note, `// ${length} idle (skipped)`);
  await close();
});

test("text of payloads stays text in every tab", { skip }, async () => {
  const { tab, close } = await open();
  await tab.keyboard.press("0");
  await tab.keyboard.press("Home");
  const before = await tab.evaluate(() => document.querySelectorAll("script, iframe, img, object, embed").length);
  for (let i = 0; i < 12; i += 1) {
    await tab.keyboard.press("j");
    const tabs = tab.getByRole("tab");
    await tabs.first().waitFor();
    for (let k = 0; k < (await tabs.count()); k += 1) await tabs.nth(k).click();
  }
  await becomes(() => tab.evaluate(() => document.querySelectorAll("script, iframe, img, object, embed").length), before);
  await close();
});

test("few nodes, however long the session", { skip }, async () => {
  const { tab, close } = await open();
  await tab.keyboard.press("0");
  for (const share of [0.2, 0.5, 0.9]) {
    await tab.evaluate((part) => {
      const scroller = document.querySelector(".wf-scroll");
      scroller.scrollTop = scroller.scrollHeight * part;
    }, share);
    await tab.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  }
  await eventually("few nodes", async () => (await tab.evaluate(() => document.querySelectorAll("*").length)) < 1_000);
  await close();
});

test("several tabs are live over one stream", { skip }, async () => {
  const pages = [];
  for (let i = 0; i < 8; i += 1) pages.push(await open());
  for (const { tab } of pages) {
    await tab.bringToFront();
    await eventually("live", async () => (await tab.locator(".link-connected").count()) === 1);
  }
  for (const page of pages) await page.close();
});

test("the theme follows the system and the choice", { skip }, async () => {
  for (const colorScheme of ["dark", "light"]) {
    const { tab, close } = await open("", { colorScheme });
    const [red] = (await tab.evaluate(() => getComputedStyle(document.body).backgroundColor)).match(/\d+/g).map(Number);
    assert.equal(red > 200, colorScheme === "light");
    await close();
  }
});

test("what is painted takes the colours of the theme, also when it changes", { skip }, async () => {
  const { tab, close } = await open("", { colorScheme: "dark" });
  // The strongest pixel of the first strip. It must be a colour of the theme, and nearly opaque.
  const strip = () => tab.evaluate(() => {
    const canvas = document.querySelector(".lanes canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, Math.round(canvas.height / 2));
    let best = [0, 0, 0, 0];
    for (let i = 0; i < data.length; i += 4) if (data[i + 3] > best[3]) best = [...data.slice(i, i + 4)];
    return best.join(" ");
  });
  const dark = await eventually("painted", async () => (await strip()) !== "0 0 0 0" && strip());
  assert.ok(!dark.startsWith("0 0 0 "), dark);
  await tab.emulateMedia({ colorScheme: "light" });
  const light = await eventually("painted again", async () => (await strip()) !== dark && strip());
  assert.ok(!light.startsWith("0 0 0 "), light);
  await close();
});

test("blur is in force before anything is shown", { skip }, async () => {
  const { tab, close } = await open();
  const filter = () => tab.locator("h1.blurry").evaluate((one) => getComputedStyle(one).filter);
  // Must happen with the key press, and not only at the next drawing.
  const blur = await tab.evaluate(() => {
    document.dispatchEvent(new KeyboardEvent("keydown", { key: "b", bubbles: true }));
    return document.documentElement.dataset.blur;
  });
  assert.equal(blur, "1");
  await matches(filter, /blur/);
  await tab.reload();
  await tab.locator(".wf-row:not([hidden])").first().waitFor();
  await matches(() => filter(), /blur/);
  await tab.keyboard.press("b");
  await eventually("sharp again", async () => (await filter()) === "none");
  await close();
});

for (const [name, path] of [["overview", "/"], ["sessions", "/sessions"], ["session", null], ["conversation", "conversation"], ["errors", "/errors"], ["latency", "/latency"], ["live", "/live"], ["health", "/health"]]) {
  test(`axe finds nothing on ${name}, dark and light`, { skip }, async () => {
    const page = await dashboard.page();
    const view = path === null ? "?view=waterfall" : "?view=conversation";
    await page.tab.goto(dashboard.base + (path?.startsWith("/") ? path : session.url + view));
    await page.tab.locator(path ? "main h1, main h2" : ".wf-row").first().waitFor();
    await page.tab.locator(".loading").waitFor({ state: "detached" });
    await becomes(() => axe(dashboard.context, page.tab), "[]");
    await page.close();
  });
}
