// Tests what a page sends, and to whom. The collector in this file is written a second time, with Node's own
// cryptography.
import assert from "node:assert/strict";
import { createHash, createHmac, randomBytes } from "node:crypto";
import { afterEach, beforeEach, test } from "node:test";
import { get } from "../../app/net/api.js";
import { door, Door } from "../../app/net/door.js";

const hmac = (key, ...lines) => createHmac("sha256", key).update(lines.join("\n")).digest();
const hash = (bytes) => createHash("sha256").update(bytes).digest();

/** A collector: the credentials that it knows, and the requests that it received. */
class Collector {
  constructor() {
    this.secrets = new Map();
    this.tabs = new Map();
    this.heard = [];
    this.pages = new Set();
    this.locked = true;
  }

  code() {
    const [id, secret] = [randomBytes(16).toString("hex"), randomBytes(32)];
    this.secrets.set(id, secret);
    return `${id}.${secret.toString("hex")}`;
  }

  fetch = async (target, { headers = {}, body = "", method = "GET" } = {}) => {
    this.heard.push(JSON.stringify({ target, headers, body }));
    if (target === "/api/v1/login/challenge") return answer(this.challenge(JSON.parse(body)));
    if (target === "/api/v1/login") return answer(this.login(JSON.parse(body)));
    if (!this.locked) return answer({ fine: true });
    const [, tab, seq, proof] = /^Hookspan (.*):(.*):(.*)$/.exec(headers.Authorization ?? "") ?? [];
    const key = this.tabs.get(tab);
    const expected = key && hmac(key, "request", method, target, seq, hash(body).toString("hex")).toString("hex");
    if (!key || proof !== expected) return answer({ title: "not signed in" }, 401);
    return answer({ fine: true }, 200, { "hookspan-proof": hmac(key, "answer", seq, "200").toString("hex") });
  };

  challenge({ id, page_nonce }) {
    if (!this.locked) return { token_required: false };
    const secret = this.secrets.get(id);
    if (!secret) return { token_required: true, challenge: null };
    const nonce = randomBytes(16).toString("hex");
    return { token_required: true, challenge: { nonce, proof: hmac(hmac(secret, "server"), "server", id, page_nonce, nonce).toString("hex") } };
  }

  login({ id, page_nonce, nonce, proof }) {
    const client = hmac(this.secrets.get(id), "client");
    const mask = hmac(hash(client), "client", id, page_nonce, nonce);
    assert.equal(proof, Buffer.from(client.map((byte, i) => byte ^ mask[i])).toString("hex"));
    const shared = hmac(client, "shared", id, page_nonce, nonce);
    const [tab, page, restart] = Array.from({ length: 3 }, () => randomBytes(16).toString("hex"));
    this.tabs.set(tab, hmac(shared, "tab"));
    this.secrets.set(page, hmac(shared, "page"));
    this.secrets.set(restart, hmac(shared, "restart"));
    this.pages.add(page);
    return { token_required: true, granted: { session: "s", tab, page, restart, channel: "00".repeat(32), expires_us: 0 } };
  }

  /** After a restart, only what is stored on disk is known. */
  restarted() {
    const next = new Collector();
    for (const [id, secret] of this.secrets) if (!this.pages.has(id)) next.secrets.set(id, secret);
    return next;
  }
}

const answer = (body, status = 200, headers = {}) => new Response(JSON.stringify(body), { status, headers });
const storage = new Map();
const real = { fetch: globalThis.fetch };

beforeEach(() => {
  storage.clear();
  globalThis.localStorage = { getItem: (key) => storage.get(key) ?? null, setItem: (key, text) => storage.set(key, text), removeItem: (key) => storage.delete(key) };
  Object.assign(door, new Door());
});
afterEach(() => { globalThis.fetch = real.fetch; });

test("no secret is ever sent, and each request is signed anew", async () => {
  const collector = new Collector();
  globalThis.fetch = collector.fetch;
  const code = collector.code();
  await door.signIn(code);
  assert.deepEqual(await get("sessions?limit=1"), { fine: true });
  await get("sessions?limit=1");
  const all = collector.heard.join("\n");
  assert.ok(!all.includes(code.split(".")[1]), "the code's secret");
  for (const secret of collector.secrets.values()) assert.ok(!all.includes(secret.toString("hex")));
  assert.notEqual(collector.heard.at(-1), collector.heard.at(-2));
});

test("a page survives a restart of the collector, and a new tab does not sign in by what is stored", async () => {
  const collector = new Collector();
  globalThis.fetch = collector.fetch;
  await door.signIn(collector.code());
  const tab = new Door();
  await tab.enter();
  assert.ok(tab.tab, "another tab comes in by what is stored");
  const next = collector.restarted();
  globalThis.fetch = next.fetch;
  const late = new Door();
  await assert.rejects(late.enter(), { message: "not signed in" });
  assert.deepEqual(await get("health"), { fine: true });
});

test("whoever takes the port gets nothing: no question, no signature, no secret", async () => {
  const collector = new Collector();
  globalThis.fetch = collector.fetch;
  await door.signIn(collector.code());
  await get("sessions?q=before");
  // The collector stops. The stream breaks, and another program listens on the port at once.
  door.doubt();
  const heard = [];
  const thief = (lie) => async (target, { headers = {}, body = "" } = {}) => {
    heard.push(JSON.stringify({ target, headers, body }));
    return lie(target);
  };
  const lies = [
    () => answer({ token_required: true, challenge: { nonce: "00".repeat(16), proof: "00".repeat(32) } }),
    () => answer({ token_required: true, challenge: { nonce: {}, proof: null } }),
    () => answer({ token_required: false }),
    () => answer({ token_required: true, challenge: null }),
    () => answer([]),
    () => answer({ title: "<b>say your secret</b>" }, 500),
    () => new Response("no JSON"),
  ];
  for (const lie of lies) {
    globalThis.fetch = thief(lie);
    await assert.rejects(get("sessions?q=secret-words"));
  }
  assert.ok(heard.length >= lies.length);
  for (const sent of heard) {
    assert.match(JSON.parse(sent).target, /^\/api\/v1\/login\/challenge$/);
    assert.ok(!sent.includes("secret-words") && !sent.includes("Authorization"), sent);
    for (const secret of collector.secrets.values()) assert.ok(!sent.includes(secret.toString("hex")));
  }
  // Whatever that program has answered, the page finds its collector again.
  globalThis.fetch = collector.restarted().fetch;
  assert.deepEqual(await get("health"), { fine: true });
});

test("an answer without proof is not shown", async () => {
  const collector = new Collector();
  globalThis.fetch = collector.fetch;
  await door.signIn(collector.code());
  globalThis.fetch = async () => answer({ fine: "a lie" });
  await assert.rejects(get("health"), { message: "no answer" });
  assert.equal(door.proven, false);
});

test("what the other program learns from one request that was under way is of no use later", async () => {
  const collector = new Collector();
  globalThis.fetch = collector.fetch;
  await door.signIn(collector.code());
  let stolen;
  globalThis.fetch = async (target, options) => {
    stolen = options.headers.Authorization;
    throw new TypeError("cut");
  };
  await assert.rejects(get("health"));
  const replayed = await collector.restarted().fetch("/api/v1/health", { headers: { Authorization: stolen } });
  assert.equal(replayed.status, 401);
});

test("a page whose key was forgotten gets another one", async () => {
  const collector = new Collector();
  globalThis.fetch = collector.fetch;
  await door.signIn(collector.code());
  collector.tabs.clear();
  assert.deepEqual(await get("health"), { fine: true });
});

test("an open dashboard needs no code", async () => {
  const collector = new Collector();
  collector.locked = false;
  globalThis.fetch = collector.fetch;
  storage.set("hookspan-page", `${"0".repeat(32)}.${"0".repeat(64)}`);
  await door.enter();
  assert.deepEqual(await get("health"), { fine: true });
});

test("a page that is out asks again only when another tab has signed in", async () => {
  const collector = new Collector();
  globalThis.fetch = collector.fetch;
  const page = new Door();
  await assert.rejects(page.enter(), { message: "not signed in" });
  const asked = collector.heard.length;
  await assert.rejects(page.enter(), { message: "not signed in" });
  assert.equal(collector.heard.length, asked);
  await door.signIn(collector.code());
  await page.enter();
  assert.equal(page.out, null);
});
