// Takes the pictures of the README: the pages of a collector that holds tests/fixtures/ide-one-subagent.jsonl, dark and light.
//
//   HOOKSPAN_URL="$(hookspan status --json | jq -r .dashboard_url)" node dashboard/web/tests/ui/screenshots.mjs docs
import { join } from "node:path";
import { missing, world } from "./support.mjs";

const SESSION = "6b1f0c52-9d3e-4a77-8c15-2e90a4d7f3b1";
const PAGES = [
  { name: "sessions", path: "/sessions", ready: "role=row[name=/hello/]" },
  { name: "session", path: `/s/${SESSION}?view=waterfall`, ready: "role=treegrid", keys: ["0", "e"] },
];

const folder = process.argv[2] ?? "docs";
if (!process.env.HOOKSPAN_URL) throw new Error("set HOOKSPAN_URL to the signed-in address of a collector");
if (!(await missing())) {
  const dashboard = await world();
  for (const colorScheme of ["dark", "light"]) {
    const page = await dashboard.page({ colorScheme });
    await page.tab.goto(dashboard.login);
    await page.tab.waitForURL((url) => !url.pathname.startsWith("/login"));
    for (const { name, path, ready, keys = [] } of PAGES) {
      await page.tab.goto(dashboard.base + path);
      await page.tab.locator(ready).first().waitFor();
      for (const key of keys) await page.tab.keyboard.press(key);
      await page.tab.waitForLoadState("networkidle", { timeout: 2_000 }).catch(() => {}); // the stream never ends
      await page.tab.screenshot({ path: join(folder, `${name}-${colorScheme}.png`) });
    }
    await page.close();
  }
  await dashboard.close();
}
