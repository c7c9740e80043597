// Opens a played session in a real browser and reads what a person would see. dashboard.rs starts this with everything
// needed in the environment. It prints nothing if all is well, and otherwise exits with 1 and prints the reason.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";

const require = createRequire(new URL("../dashboard/web/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const { URL: base, LOGIN: login, CHROMIUM: executablePath, LATER: later } = process.env;
const expected = JSON.parse(process.env.EXPECTED);

// Profile, crash reports and caches go to a folder that is removed.
const profile = mkdtempSync(join(tmpdir(), "hookspan-browser-"));
const context = await chromium.launchPersistentContext(profile, {
  executablePath,
  args: process.getuid() === 0 ? ["--no-sandbox"] : [],
  viewport: { width: 1440, height: 900 },
});
const page = context.pages()[0] ?? await context.newPage();
const trouble = [];
page.on("pageerror", (error) => trouble.push(`page error: ${error}`));
page.on("console", (message) => message.type() === "error" && trouble.push(`console: ${message.text()}`));
page.on("request", (request) => {
  if (!request.url().startsWith(`${base}/`)) trouble.push(`a request left the machine: ${request.url()}`);
});

try {
  await page.goto(login);
  await page.waitForURL((url) => url.pathname !== "/login");
  assert.ok(!page.url().includes("#c="), "the code stays in the address");

  await page.goto(`${base}/sessions`);
  const rows = page.locator("tbody tr");
  await rows.first().waitFor();
  assert.equal(await rows.count(), 1, "one session, the child conversation is none");
  await rows.first().locator("a").first().click();
  // A session opens as a conversation, which includes the child's words. Only rows in view are in the DOM, so the
  // filter is used to find one.
  const talk = page.getByRole("treegrid", { name: "Conversation" });
  await talk.getByRole("row").first().waitFor();
  // The subagent starts before its turn. Nevertheless, the strip must show each turn once.
  const strip = page.getByRole("navigation", { name: "Turns" }).getByRole("button");
  await strip.first().waitFor();
  const turns = await strip.allTextContents();
  assert.equal(new Set(turns).size, turns.length, turns.join(" | "));
  await page.getByRole("searchbox", { name: /filter the rows/i }).fill("explore");
  await talk.getByRole("row").filter({ hasText: "explore" }).first().waitFor();
  await page.getByRole("searchbox", { name: /filter the rows/i }).fill("");
  await page.getByRole("link", { name: "Waterfall" }).click();

  const grid = page.getByRole("treegrid", { name: "Spans of the session" });
  await grid.waitFor();
  const shown = page.getByText(`${expected.spans} spans`, { exact: true });
  await shown.waitFor();
  await page.getByText(`${expected.errors} errors`, { exact: true }).waitFor();
  await page.locator("body").press("0");
  const row = (name) => grid.getByRole("row").filter({ hasText: name });
  await row("explore").first().waitFor();
  const level = async (locator) => Number(await locator.getAttribute("aria-level"));
  // Only rows in view are in the grid, so the filter is used to find one.
  await page.getByRole("searchbox", { name: /filter the rows/i }).fill("horn.rs");
  const call = row("horn.rs").first();
  await call.waitFor();
  const subagent = row(/explore/).last();
  assert.ok(await level(call) > await level(subagent), "the child's call does not hang below its subagent");
  await page.getByRole("searchbox", { name: /filter the rows/i }).fill("");

  // Live: another hook arrives while the page is open, through the real shim.
  if (later) {
    const { shim, event, home, body } = JSON.parse(later);
    execFileSync(shim, [event], { input: readFileSync(body), env: { HOME: home } });
    await page.getByText(`${expected.spans + 1} spans`, { exact: true }).waitFor();
  }
  for (const path of ["/", "/errors", "/latency", "/live", "/health"]) {
    await page.goto(base + path);
    await page.locator("main h1, main h2, main table").first().waitFor();
  }
  assert.deepEqual(trouble, []);
} catch (error) {
  console.error(error);
  console.error(trouble.join("\n"));
  console.error(await page.locator("body").innerText().catch(() => "no page"));
  process.exitCode = 1;
} finally {
  await context.close();
  rmSync(profile, { recursive: true, force: true });
}
