// What every browser test needs: a browser, a dashboard with sessions, and a page on which nothing may go wrong.
//
// The dashboard is HOOKSPAN_URL (the signed-in address, `…/login#t=TOKEN`, of a collector that holds sessions), else the
// example of the crate, built by `cargo build -p hookspan-dashboard --example demo` (HOOKSPAN_DEMO, where it is elsewhere).
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const DEMO = process.env.HOOKSPAN_DEMO
  ?? fileURLToPath(new URL("../../../../target/debug/examples/demo", import.meta.url));

/** Why these tests cannot run, or false. With HOOKSPAN_REQUIRE_BROWSER=1 that is a failure. */
export async function missing() {
  const why = await reason();
  if (why && process.env.HOOKSPAN_REQUIRE_BROWSER === "1") throw new Error(`browser tests are required, but ${why}`);
  if (why) console.log(`SKIPPED: ${why}`);
  return why ?? false;
}

async function reason() {
  if (!existsSync(CHROMIUM)) return `there is no ${CHROMIUM} (set CHROMIUM)`;
  if (!process.env.HOOKSPAN_URL && !existsSync(DEMO)) return "there is no dashboard: set HOOKSPAN_URL, or cargo build -p hookspan-dashboard --example demo";
  try {
    await import("playwright-core");
  } catch {
    return "playwright-core is not installed (npm ci)";
  }
  return null;
}

/** A browser and a dashboard: `{base, login, page(options), close()}`. `demo` asks for the example's invented sessions. */
export async function world({ turns = "12" } = {}) {
  const { chromium } = await import("playwright-core");
  const profile = mkdtempSync(join(tmpdir(), "hookspan-ui-"));
  const server = process.env.HOOKSPAN_URL ? null : await serve(turns);
  const login = process.env.HOOKSPAN_URL ?? server.url;
  const sandbox = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: CHROMIUM,
    args: [...sandbox, "--disable-gpu"],
    viewport: { width: 1440, height: 900 },
  });
  const base = new URL(login).origin;
  return {
    base,
    login,
    demo: server !== null,
    context,
    page: (options) => page(context, base, options),
    close: async () => {
      await context.close();
      server?.child.kill();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}

function serve(turns) {
  const child = spawn(DEMO, ["0", turns], { stdio: ["ignore", "pipe", "inherit"] });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the example ended with ${code}`)));
    createInterface({ input: child.stdout }).once("line", (url) => resolve({ child, url }));
  });
}

// Every page registers what must never happen; `close` fails when one did.
async function page(context, base, { colorScheme = "dark", viewport } = {}) {
  const tab = await context.newPage();
  const wrong = [];
  await tab.emulateMedia({ colorScheme });
  if (viewport) await tab.setViewportSize(viewport);
  tab.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  tab.on("console", (message) => message.type() === "error" && wrong.push(`console: ${message.text()}`));
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
