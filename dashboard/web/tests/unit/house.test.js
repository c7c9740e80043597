// Checks which folder imports from which. A row lists everything that is allowed.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const APP = fileURLToPath(new URL("../../app", import.meta.url));
const MAY_KNOW = {
  format: [],
  net: [],
  trace: ["format"],
  ui: ["format", "net", "trace", "vendor"],
  waterfall: ["format", "trace", "ui"],
  conversation: ["format", "net", "trace", "ui", "waterfall", "vendor"],
  session: ["conversation", "format", "net", "trace", "ui", "waterfall"],
  pages: ["format", "net", "trace", "ui"],
  // Files directly in `app` combine the folders.
  "": ["format", "net", "pages", "session", "ui"],
};

const scripts = readdirSync(APP, { recursive: true }).filter((name) => name.endsWith(".js"));
const room = (name) => (name.includes("/") ? name.split("/")[0] : "");

/**
 * The files that a script imports, at once or when needed, as paths below `app`. Imports in comments are types only.
 */
function imports(name) {
  const text = readFileSync(join(APP, name), "utf8");
  const now = text.matchAll(/^(?:import|export) .*?from "(\.[^"]+)";$/gms);
  const later = text.replace(/^\s*(\*|\/[*/]).*$/gm, "").matchAll(/[^.\w]import\("(\.[^"]+)"\)/g);
  return [...now, ...later].map(([, path]) => normalize(join(dirname(name), path)));
}

test("every folder imports only from those that it may know", () => {
  assert.ok(scripts.length > 60);
  for (const name of scripts) {
    for (const target of imports(name)) {
      const to = target.startsWith("../vendor/") ? "vendor" : room(target);
      const allowed = to === room(name) || MAY_KNOW[room(name)].includes(to);
      assert.ok(allowed, `${name} imports ${target}`);
    }
  }
});

test("no scripts import each other in a circle", () => {
  const done = new Set();
  const visit = (name, path) => {
    assert.ok(!path.includes(name), [...path, name].join(" → "));
    if (done.has(name)) return;
    for (const target of imports(name)) if (!target.startsWith("../vendor/")) visit(target, [...path, name]);
    done.add(name);
  };
  for (const name of scripts) visit(name, []);
});

test("pages are fetched when they are asked for", () => {
  const text = readFileSync(join(APP, "routes.js"), "utf8");
  const pages = [...text.matchAll(/"(\/[a-z]*)": lazy\(\(\) => import\("([^"]+)"\)/g)];
  assert.ok(pages.length >= 10, String(pages.length));
  const atOnce = [...text.matchAll(/^import .*?from "(\.\/(?:pages|session)\/[^"]+)";$/gm)].map(([, path]) => path);
  // Signing in is part of the frame, so its page is not fetched later.
  assert.deepEqual(atOnce, ["./pages/login.js"]);
});

test("a script is of a size that one reads at once", () => {
  for (const name of scripts) {
    const lines = readFileSync(join(APP, name), "utf8").split("\n").length;
    assert.ok(lines <= 320, `${name}: ${lines} lines`);
  }
});
