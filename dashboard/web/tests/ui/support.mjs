// What every browser test needs: a browser, a dashboard with sessions, and pages on which every error makes the test
// fail.
//
// The dashboard is the one at HOOKSPAN_URL (an address that `hookspan open --print` prints, of a collector with
// sessions). Without it, the crate's example is used, built by `cargo build -p hookspan-dashboard --example demo`.
// HOOKSPAN_DEMO names the example's path if it is elsewhere.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const DEMO = process.env.HOOKSPAN_DEMO
  ?? fileURLToPath(new URL("../../../../target/debug/examples/demo", import.meta.url));

/**
 * Why these tests cannot run, or false. `without` returns why there is no dashboard. With HOOKSPAN_REQUIRE_BROWSER=1
 * such a reason is a failure.
 */
export async function missing(without = noDashboard) {
  const why = await reason(without);
  if (why && process.env.HOOKSPAN_REQUIRE_BROWSER === "1") throw new Error(`browser tests are required, but ${why}`);
  if (why) console.log(`SKIPPED: ${why}`);
  return why ?? false;
}

function noDashboard() {
  if (process.env.HOOKSPAN_URL || existsSync(DEMO)) return null;
  return "there is no dashboard: set HOOKSPAN_URL, or cargo build -p hookspan-dashboard --example demo";
}

async function reason(without) {
  if (!existsSync(CHROMIUM)) return `there is no ${CHROMIUM} (set CHROMIUM)`;
  const nothing = without();
  if (nothing) return nothing;
  try {
    await import("playwright-core");
  } catch {
    return "playwright-core is not installed (npm ci)";
  }
  return null;
}

/**
 * Starts a browser and a dashboard: `{base, login, page(options), close()}`. `turns` is the number of turns of the
 * invented sessions.
 */
export async function world({ turns = "12" } = {}) {
  const server = process.env.HOOKSPAN_URL ? null : await serve(turns);
  const login = process.env.HOOKSPAN_URL ?? server.url;
  const browser = await chromium(login);
  return {
    ...browser,
    login,
    demo: server !== null,
    close: async () => {
      await browser.close();
      server?.child.kill();
    },
  };
}

/** Starts a browser for the dashboard at `login`: `{base, context, page(options), close()}`. */
export async function chromium(login) {
  const { chromium: engine } = await import("playwright-core");
  const profile = mkdtempSync(join(tmpdir(), "hookspan-ui-"));
  const sandbox = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  const context = await engine.launchPersistentContext(profile, {
    executablePath: CHROMIUM,
    args: [...sandbox, "--disable-gpu"],
    viewport: { width: 1440, height: 900 },
  });
  const base = new URL(login).origin;
  return {
    base,
    context,
    page: (options) => page(context, base, options),
    close: async () => {
      await context.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}

/** Waits until a condition holds. Fails after a deadline. */
export async function eventually(what, condition, ms = 15_000) {
  const end = Date.now() + ms;
  let last;
  while (Date.now() < end) {
    last = await condition();
    if (last) return last;
    await new Promise((resolve) => { setTimeout(resolve, 30); });
  }
  throw new Error(`${what}: ${JSON.stringify(last)}`);
}

/**
 * Waits until `read` returns `value`, because keys, answers and frames take time. `read` must change nothing, since it
 * may be called many times.
 */
export async function becomes(read, value, what) {
  const seen = await lastOf(read, (one) => isDeepStrictEqual(one, value));
  assert.deepStrictEqual(seen, value, what);
}

/** Waits until the text that `read` returns matches. */
export async function matches(read, pattern, what) {
  const seen = await lastOf(read, (one) => pattern.test(one));
  assert.match(seen, pattern, what);
}

/** Calls `read` until its value fits or the time is over. Returns the last value. */
async function lastOf(read, fits, ms = 15_000) {
  const end = Date.now() + ms;
  let seen = await read();
  while (!fits(seen) && Date.now() < end) {
    await new Promise((resolve) => { setTimeout(resolve, 30); });
    seen = await read();
  }
  return seen;
}

/** The answer of `GET /api/v1/{path}`, requested by the page's own script, which signs the request. */
export const ask = (tab, path) => tab.evaluate(async (asked) => {
  const main = document.querySelector('script[type="module"][src]').src;
  const { get } = await import(new URL("net/api.js", main).href);
  return get(asked);
}, path);

/**
 * The findings of axe-core on a page in the dark theme, and its findings about colours in the light one, as text. Our
 * policy forbids script tags, so axe-core is loaded through the debugger.
 */
export async function axe(context, tab) {
  const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  const debug = await context.newCDPSession(tab);
  await debug.send("Runtime.evaluate", { expression: source });
  const found = [];
  // Only colours depend on the theme.
  for (const [colorScheme, rules] of [["dark", {}], ["light", { runOnly: ["color-contrast"] }]]) {
    await tab.emulateMedia({ colorScheme });
    // Content that is being reloaded is faint for a moment.
    await eventually("nothing is out of date", async () => (await tab.locator(".stale").count()) === 0);
    const { result } = await debug.send("Runtime.evaluate", {
      expression: `axe.run(document, ${JSON.stringify(rules)}).then(({violations}) => violations.map((v) => [v.id, v.nodes.slice(0, 3).map((n) => n.target.join(' ') + ': ' + n.failureSummary)]))`,
      awaitPromise: true,
      returnByValue: true,
    });
    found.push(...result.value.map((one) => [colorScheme, ...one]));
  }
  await debug.detach();
  return JSON.stringify(found);
}

function serve(turns) {
  const child = spawn(DEMO, ["0", turns], { stdio: ["ignore", "pipe", "inherit"] });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the example ended with ${code}`)));
    createInterface({ input: child.stdout }).once("line", (url) => resolve({ child, url }));
  });
}

// Opens a page that records everything that must never happen. `close` fails if something of it has happened.
async function page(context, base, { colorScheme = "dark", viewport, offline = false } = {}) {
  const tab = await context.newPage();
  const wrong = [];
  await tab.emulateMedia({ colorScheme });
  if (viewport) await tab.setViewportSize(viewport);
  tab.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  // With `offline`, the collector is away for a while. The page may then report that it could not connect, and that the
  // next collector does not know its key (401), and nothing else.
  const away = (text) => offline && /status of 401|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/.test(text);
  tab.on("console", (message) => message.type() === "error" && !away(message.text()) && wrong.push(`console: ${message.text()} ${message.location().url}`));
  tab.on("dialog", (dialog) => {
    wrong.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  tab.on("request", (request) => {
    if (!request.url().startsWith(`${base}/`)) wrong.push(`foreign request: ${request.url()}`);
  });
  await tab.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
  });
  return {
    tab,
    wrong,
    close: async () => {
      await tab.close();
      if (wrong.length) throw new Error(wrong.join("\n"));
    },
  };
}
