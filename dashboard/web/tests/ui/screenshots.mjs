// Makes the pictures of the documentation: each page in both themes, with the invented history of `hookspan demo`.
//
//
// cargo build && node dashboard/web/tests/ui/screenshots.mjs [FOLDER]
//
// With HOOKSPAN_URL (an address that signs in), it uses another dashboard. Prints the size of each file.
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { noCollector, PROGRAM } from "./collector.mjs";
import { ask, chromium, eventually, missing } from "./support.mjs";

const FOLDER = process.argv[2] ?? fileURLToPath(new URL("../../../../docs", import.meta.url));
/** Enough to fill every page. More would only take longer to make. */
const SESSIONS = "24";
const SIZE = { width: 1160, height: 720 };

/**
 * The pages by file name; `session` is the session with the most content. The keys are pressed after the page is drawn.
 */
const pages = ({ session, other }) => [
  ["overview", "/"], ["now", "/now"], ["sessions", "/sessions"], ["conversation", session],
  ["session", `${session}?view=waterfall`, ["1", "End", "ArrowRight", "e"]],
  ["flame", `${session}?view=flame`], ["log", `${session}?view=log`],
  ["edits", `${session}?view=edits`], ["insights", `${session}?view=insights`],
  ["compare", `/compare?a=${session.slice(3)}&b=${other.slice(3)}`],
  ["errors", "/errors"], ["latency", "/latency?group=tool&days=30"], ["time", "/time?days=30"], ["files", "/files?days=30"], ["search", "/search?q=cargo"], ["live", "/live"],
  ["health", "/health"], ["privacy", "/privacy"],
];

const skip = await missing(() => (process.env.HOOKSPAN_URL ? null : noCollector()));
if (skip) throw new Error(skip);
const home = mkdtempSync(join(tmpdir(), "hookspan-pictures-"));
const demo = process.env.HOOKSPAN_URL ? null : spawn(PROGRAM, ["demo", "--sessions", SESSIONS, "--no-open", "--listen", "127.0.0.1:0"], {
  env: { PATH: process.env.PATH, HOME: home, HOOKSPAN_DIR: join(home, "state") }, stdio: ["ignore", "pipe", "inherit"],
});
const login = process.env.HOOKSPAN_URL ?? await new Promise((resolve, reject) => {
  demo.once("exit", (code) => reject(new Error(`hookspan demo ended with ${code}`)));
  createInterface({ input: demo.stdout }).on("line", (line) => line.startsWith("http") && resolve(line));
});
const code = () => (process.env.HOOKSPAN_URL ? login : execFileSync(PROGRAM, ["--dir", join(home, "state-demo"), "open", "--print"], { env: { PATH: process.env.PATH, HOME: home }, encoding: "utf8" }).trim());
const browser = await chromium(login);
mkdirSync(FOLDER, { recursive: true });
let total = 0;
for (const colorScheme of ["dark", "light"]) {
  const { tab, close } = await browser.page({ colorScheme, viewport: SIZE });
  await tab.emulateMedia({ colorScheme, reducedMotion: "reduce" });
  await tab.goto(await code());
  await tab.locator(".rail").waitFor();
  const { items } = await ask(tab, "sessions?sort=calls&limit=20");
  // A session that has some of everything, not the longest one.
  const full = items.find((one) => one.subagents > 0 && one.errors > 0 && one.turns > 2) ?? items[0];
  const other = items.find((one) => one.id !== full.id) ?? full;
  for (const [name, path, keys = []] of pages({ session: full.url, other: other.url })) {
    await tab.goto(browser.base + path);
    await eventually(`${name} is drawn`, async () => (await tab.locator("main .loading").count()) === 0 && (await tab.locator("main h1").count()) > 0, 60_000);
    if (path.includes("waterfall")) await tab.locator('.wf-row[aria-selected="true"]').first().waitFor();
    if (path === full.url) await eventually("its texts are here", () => tab.evaluate(() => document.querySelector(".cv-say") !== null && !document.querySelector(".cv-waiting")));
    for (const key of keys) await tab.keyboard.press(key);
    await tab.waitForLoadState("networkidle", { timeout: 1_500 }).catch(() => {}); // the stream never ends
    const file = join(FOLDER, `${name}-${colorScheme}.png`);
    await tab.screenshot({ path: file });
    total += statSync(file).size;
    console.log(`${file} ${Math.round(statSync(file).size / 1_024)} KB`);
  }
  await close();
}
console.log(`${(total / 1_048_576).toFixed(1)} MB in all`);
await browser.close();
if (demo) {
  const ended = new Promise((resolve) => { demo.once("close", resolve); });
  demo.removeAllListeners("exit");
  demo.kill("SIGTERM");
  await ended;
}
rmSync(home, { recursive: true, force: true });
