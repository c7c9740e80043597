// Tests the conversation of a session with the example's invented sessions: rows, keys, hostile text, copies, sizes and
// frames.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ask, axe, becomes, eventually, matches, missing, world } from "./support.mjs";

const skip = await missing();
const FLAKY = "/s/0176a3f0-flaky";
let dashboard;

before(async () => {
  if (!skip) dashboard = await world();
});
after(() => dashboard?.close());

async function open(path = FLAKY, options) {
  const page = await dashboard.page(options);
  await page.tab.goto(dashboard.base + path);
  await page.tab.locator(".cv-row:not([hidden])").first().waitFor();
  await chosen(page.tab).waitFor();
  return page;
}

const chosen = (tab) => tab.locator('.cv-row[aria-selected="true"]:not([hidden])');
/** Waits for two frames, and for texts that arrive meanwhile. */
const still = async (tab) => {
  await eventually("texts are here", () => tab.evaluate(async () => {
    await new Promise((done) => { setTimeout(done, 120); });
    return !document.querySelector(".cv-row:not([hidden]) .cv-waiting");
  }));
};
/** Waits until the line of the chosen row is as expected, because keys and texts take effect a moment later. */
const lineBecomes = (tab, what, fits) => eventually(what, async () => {
  const said = await line(tab);
  return fits(said) && said;
});
const line = async (tab) => {
  await tab.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
  return (await chosen(tab).locator(".cv-head").textContent()).trim();
};

/** Waits until the address names the chosen row. Returns the address's fragment. */
const named = (tab) => eventually("the address names the row", async () => {
  const { hash } = new URL(tab.url());
  if (!/^#[0-9a-f]{16}$/.test(hash)) return null;
  const { label } = await ask(tab, `spans/${hash.slice(1)}`);
  const words = await chosen(tab).locator(".cv-label").textContent();
  return label.startsWith(words === "You" ? "turn" : words) && label.includes(await chosen(tab).locator(".cv-subject").textContent().then((text) => (words === "thought" || words === "You" ? "" : text))) && hash;
});

test("a session opens as a conversation: its prompt, calls, edits and answer", { skip }, async () => {
  const { tab, close } = await open();
  await still(tab);
  await becomes(() => tab.locator('.view-tabs [aria-current="true"]').textContent(), "Conversation");
  await matches(() => line(tab), /^You/);
  await tab.keyboard.press("End");
  await still(tab);
  const answer = chosen(tab).locator(".md");
  await answer.locator("strong", { hasText: "18" }).waitFor();
  await becomes(() => answer.locator("table td").nth(1).textContent(), "7");
  await becomes(() => answer.locator("pre").textContent(), "fn main() {}");
  await tab.locator(".cv-edit:not([hidden]) .cv-diff .ins").first().waitFor();
  await close();
});

test("what an agent says is text: no element, no request, and links say where they lead", { skip }, async () => {
  const { tab, close } = await open("/s/0176a3f0-hostile");
  await tab.keyboard.press("End");
  await still(tab);
  const answer = chosen(tab).locator(".md");
  const links = await answer.locator("a").evaluateAll((all) => all.map((one) => [one.href, one.rel, one.target]));
  assert.deepEqual(links, [["https://docs.example/a", "noopener noreferrer", "_blank"]], "the script address is no link");
  const text = await answer.textContent();
  assert.ok(text.includes("(javascript:alert(4))") && text.includes("image: pixel (https://evil.example/p.png)"), text);
  await tab.keyboard.press("Home");
  await still(tab);
  await matches(() => chosen(tab).locator(".cv-say").textContent(), /<img src=x onerror=alert\(1\)> \[U\+202E\]gnp/);
  await becomes(() => tab.evaluate(() => document.querySelectorAll(".cv img, .cv script, .cv iframe, .cv object").length), 0);
  await close();
});

test("bars stand in the line of their row", { skip }, async () => {
  const { tab, close } = await open();
  await still(tab);
  const off = await tab.evaluate(() => [...document.querySelectorAll(".cv-row:not([hidden])")].flatMap((row) => {
    const [head, bar] = [row.querySelector(".cv-head").getBoundingClientRect(), row.querySelector(".cv-bar:not([hidden])")?.getBoundingClientRect()];
    return bar && (bar.top < head.top || bar.bottom > head.bottom) ? [row.textContent.slice(0, 40)] : [];
  }));
  assert.deepEqual(off, []);
  await close();
});

test("every key moves, opens and closes, and the other view shows the same row", { skip }, async () => {
  const { tab, close } = await open();
  await still(tab);
  const first = await line(tab);
  await tab.keyboard.press("j");
  await lineBecomes(tab, "the next row", (said) => said !== first);
  await tab.keyboard.press("k");
  await lineBecomes(tab, "the first row again", (said) => said === first);
  await tab.keyboard.press("[");
  await lineBecomes(tab, "the turn before", (said) => /turn 12 of 14/.test(said));
  await tab.keyboard.press("]");
  await lineBecomes(tab, "the turn behind", (said) => /turn 13 of 14/.test(said));
  await tab.keyboard.press("j");
  await lineBecomes(tab, "its first step", (said) => !/turn 13 of 14/.test(said));
  await eventually("closed", async () => (await chosen(tab).getAttribute("aria-expanded")) === "false");
  await tab.keyboard.press("ArrowRight");
  await eventually("it opens", async () => (await chosen(tab).getAttribute("aria-expanded")) === "true");
  await tab.keyboard.press("ArrowLeft");
  await eventually("it closes", async () => (await chosen(tab).getAttribute("aria-expanded")) === "false");
  await tab.keyboard.press("ArrowLeft");
  await lineBecomes(tab, "then its prompt", (said) => /turn 13 of 14/.test(said));
  await tab.keyboard.press("e");
  await eventually("a failure", async () => ((await chosen(tab).getAttribute("class")) ?? "").includes("cv-bad"));
  const active = await tab.getByRole("treegrid", { name: "Conversation" }).getAttribute("aria-activedescendant");
  await becomes(() => tab.locator(`#${active}`).getAttribute("aria-selected"), "true");
  const subject = await chosen(tab).locator(".cv-subject").textContent();
  const hash = await named(tab);
  await tab.keyboard.press("w");
  const row = tab.locator('.wf-row[aria-selected="true"]:not([hidden])');
  await row.waitFor();
  await eventually("the same call", async () => (await row.locator(".wf-text").textContent()).includes(subject));
  await eventually("in view", () => row.evaluate((one) => {
    const [box, host] = [one.getBoundingClientRect(), document.querySelector(".wf-scroll").getBoundingClientRect()];
    return box.top >= host.top && box.bottom <= host.bottom;
  }));
  await tab.keyboard.press("v");
  await chosen(tab).waitFor();
  await becomes(() => chosen(tab).locator(".cv-subject").textContent(), subject);
  await becomes(() => new URL(tab.url()).hash, hash);
  await tab.keyboard.press("1");
  await eventually("prompts alone", async () => (await tab.locator(".cv-thought:not([hidden])").count()) === 0);
  await tab.keyboard.press("0");
  await eventually("all open", async () => (await tab.locator('.cv-thought[aria-expanded="true"]:not([hidden])').count()) > 0);
  await close();
});

test("a click chooses, the strip leads to a turn, and a reload brings the row back", { skip }, async () => {
  const { tab, close } = await open();
  await tab.getByRole("navigation", { name: "Turns" }).getByRole("button").nth(2).click();
  await eventually("turn 3", async () => /turn 3 of 14/.test(await line(tab)));
  await still(tab);
  await tab.locator(".cv-thought:not([hidden]) .cv-head").first().click();
  await matches(() => line(tab), /^thought/);
  const thought = await line(tab);
  const hash = await named(tab);
  await tab.reload();
  await chosen(tab).waitFor();
  await still(tab);
  await becomes(() => line(tab), thought);
  await becomes(() => new URL(tab.url()).hash, hash);
  await close();
});

test("a filter shows the matches with their prompts", { skip }, async () => {
  const { tab, close } = await open();
  const rows = () => tab.getByRole("treegrid", { name: "Conversation" }).getAttribute("aria-rowcount").then(Number);
  const all = await rows();
  await tab.keyboard.press("/");
  await tab.keyboard.type("clippy");
  await eventually("fewer rows", async () => (await rows()) < all);
  await eventually("matches are marked", async () => (await tab.locator(".cv-hit:not([hidden])").count()) > 0);
  await tab.keyboard.press("Enter");
  await eventually("a match is chosen", async () => (await line(tab)).includes("clippy"));
  await tab.keyboard.press("Escape");
  await eventually("all rows again", async () => (await rows()) >= all);
  await close();
});

test("a turn is copied as Markdown, without its secrets", { skip }, async () => {
  const { tab, close } = await open();
  await tab.evaluate(() => { Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => { document.title = "x"; window.copied = text; } } }); });
  await tab.keyboard.press("c");
  const text = await eventually("copied", () => tab.evaluate(() => window.copied));
  assert.match(text, /^## You, /);
  assert.ok(text.includes("The deliver tests pass (**18**)") && text.includes("```diff\n let sent = 1;\n+drain();"), text.slice(-900));
  assert.ok(text.includes("[REDACTED]") && !text.includes("hunter2"));
  await close();
});

test("blur hides what was said, and paper has it", { skip }, async () => {
  const { tab, close } = await open();
  await still(tab);
  const filters = () => tab.evaluate(() => [...new Set([...document.querySelectorAll(".cv-row:not([hidden]) :is(.cv-say, .md, .cv-diff, .cv-text), .cv-thought .cv-subject, .cv-turn-prompt .blurry")].map((one) => getComputedStyle(one).filter))]);
  await becomes(() => filters(), ["none"]);
  await tab.keyboard.press("b");
  await becomes(() => filters(), ["blur(6px)"]);
  await tab.keyboard.press("b");
  await tab.emulateMedia({ media: "print" });
  await becomes(() => tab.locator(".cv-tools").isVisible(), false);
  await eventually("what was said", async () => (await tab.locator(".cv-row:not([hidden]) .cv-say:visible").count()) > 0);
  await close();
});

test("axe finds nothing, on a desk and on a phone, and nothing stands beside the page", { skip }, async () => {
  for (const viewport of [{ width: 1440, height: 900 }, { width: 720, height: 450 }, { width: 600, height: 900 }, { width: 390, height: 844 }]) {
    const { tab, close } = await open(`${FLAKY}?view=conversation`, { viewport });
    await tab.keyboard.press("End");
    await still(tab);
    if (viewport.width !== 720) await becomes(() => axe(dashboard.context, tab), "[]", `${viewport.width}`);
    const wide = await tab.evaluate(() => [document.documentElement.scrollWidth - innerWidth, document.querySelector(".cv-scroll").scrollWidth - document.querySelector(".cv-scroll").clientWidth]);
    assert.deepEqual(wide, [0, 0], `${viewport.width}`);
    await eventually(`room for rows at ${viewport.width}`, async () => (await tab.evaluate(() => document.querySelector(".cv-host").clientHeight)) >= 100);
    await close();
  }
});

test("rows keep their place while texts come and heights change, and few nodes are in the page", { skip }, async () => {
  const { tab, close } = await open("/s/0176a3f0-big");
  for (const share of [0.1, 0.5, 0.9]) {
    await tab.evaluate((part) => {
      const scroller = document.querySelector(".cv-scroll");
      scroller.scrollTop = scroller.scrollHeight * part;
    }, share);
    // The position of the first row in view, before its texts arrive and afterwards.
    const place = () => tab.evaluate(() => {
      const top = document.querySelector(".cv-scroll").getBoundingClientRect().top;
      const rows = [...document.querySelectorAll(".cv-row:not([hidden])")].map((row) => [row.getAttribute("aria-rowindex"), row.getBoundingClientRect().top - top]);
      return rows.filter(([, y]) => y >= 0).sort((a, b) => a[1] - b[1])[0];
    });
    await tab.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
    const before = await place();
    await still(tab);
    const after = await tab.evaluate((index) => {
      const row = document.querySelector(`.cv-row[aria-rowindex="${index}"]:not([hidden])`);
      return row ? row.getBoundingClientRect().top - document.querySelector(".cv-scroll").getBoundingClientRect().top : null;
    }, before[0]);
    assert.ok(after !== null && Math.abs(after - before[1]) < 60, `${share}: ${before} ${after}`);
  }
  await eventually("few nodes", async () => (await tab.evaluate(() => document.querySelectorAll("*").length)) < 2_000);
  await close();
});

test("a running session is followed to its end until the person scrolls", { skip }, async () => {
  const { tab, close } = await open("/s/0176a3f0-live");
  await still(tab);
  const rest = () => tab.evaluate(() => {
    const one = document.querySelector(".cv-scroll");
    return one.scrollHeight - one.clientHeight - one.scrollTop;
  });
  await eventually("at the end", async () => (await rest()) < 30);
  const open_ = await ask(tab, "sessions/0176a3f0-live");
  assert.equal(open_.state, "tool_open");
  await tab.mouse.move(500, 500);
  await tab.mouse.wheel(0, -900);
  await eventually("scrolled", async () => (await rest()) > 300);
  await tab.waitForTimeout(2_500);
  await eventually("it stays where the person reads", async () => (await rest()) > 300);
  await tab.keyboard.press("F");
  await eventually("at the end again", async () => (await rest()) < 30);
  await close();
});
