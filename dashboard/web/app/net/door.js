// Proves to the collector who this page is, and checks that the collector is the right one.
//
// No secret is ever sent. First the collector proves that it knows the secret, then the page does. The page signs each
// request with a key that both derive, and checks the collector's proof in each answer. After a broken connection
// another program may have the port, so the collector must prove itself again first. See
// `docs/decisions/0005-no-cookie.md`.
import { broken, Problem } from "./problem.js";
import { bytes, hex, mac, sha256, unhex, xor } from "./proof.js";

/** Name of the stored credential that admits other pages of this browser until the collector stops. */
const STORED = "hookspan-page";

/** @typedef {{ id: string, secret: Uint8Array }} Credential */

export class Door {
  constructor() {
    /** Whether the dashboard requires no sign-in. */
    this.open = false;
    /** Whether the collector has proved itself since the last connection broke. */
    this.proven = false;
    /** Set if no credential admits this page. @type {Problem | null} */
    this.out = null;
    /** Whether a program without proof has answered. */
    this.impostor = false;
    /** Signs requests. @type {{ id: string, key: Uint8Array, seq: number } | null} */
    this.tab = null;
    /** Admits pages until the collector stops. @type {Credential | null} */
    this.page = null;
    /** Admits this page after a restart. Only in memory. @type {Credential | null} */
    this.restart = null;
    /** Encrypts messages between tabs. @type {Uint8Array | null} */
    this.channel = null;
    /** @type {Set<() => unknown>} */
    this.listeners = new Set();
    /** @type {Promise<void> | null} */
    this.entering = null;
    /** What was stored when nothing admitted this page. Another tab may sign in later. */
    this.tried = "";
    globalThis.addEventListener?.("storage", ({ key }) => { if (key === STORED && this.out) this.enter().catch(() => {}); });
  }

  /** Calls `listener` when the page signs in or is signed out. Returns a function that stops. @param {() => unknown} listener */
  listen(listener) {
    this.listeners.add(listener);
    return () => { this.listeners.delete(listener); };
  }

  /** Signs in with a code. @param {string} code */
  async signIn(code) {
    const [id, text] = code.split(".");
    const secret = unhex(text ?? "");
    if (!id || !secret) throw new Problem(401, { title: "not a code", detail: "a code is 32 digits, a dot and 64 digits", hint: "hookspan open" });
    if (!await this.handshake({ id, secret })) throw signedOut("the code was used or its minute is over");
    this.say(null);
  }

  /** The connection broke, or an answer had no proof: another program may have the port. */
  doubt() {
    this.proven = false;
  }

  /** The collector does not know this page's key: it was restarted, or forgot the key. */
  lost() {
    this.proven = false;
    this.tab = null;
  }

  /** Makes sure that the collector is the right one, and that this page is signed in. */
  enter() {
    if (this.open || (this.proven && this.tab)) return Promise.resolve();
    if (this.out && !this.restart && this.tried === stored()) return Promise.reject(this.out);
    this.entering ??= this.tryAll().finally(() => { this.entering = null; });
    return this.entering;
  }

  async tryAll() {
    // The same collector as before proves itself by what it still knows.
    if (this.tab && this.page && await this.isProvedBy(this.page)) {
      this.proven = true;
      return;
    }
    const restarted = this.restart !== null;
    this.tab = null;
    // Another tab of this browser may sign in again first.
    for (const credential of [() => this.restart, load, ...(restarted ? [later(load)] : [])]) {
      const with_ = await credential();
      if (with_ && await this.handshake(with_)) {
        this.say(null);
        return;
      }
    }
    // Trusted only while the page shows no data yet.
    if (!restarted && await this.isOpen()) {
      this.open = true;
      this.say(null);
      return;
    }
    const problem = signedOut(restarted ? "the collector was restarted, or this browser was signed out" : "nothing in this browser signs this page in");
    this.tried = stored();
    this.say(problem);
    throw problem;
  }

  /** Whether the dashboard says that it requires no sign-in. */
  async isOpen() {
    return (await ask("login/challenge", { id: "", page_nonce: "" })).token_required === false;
  }

  /** @param {Credential} credential */
  async isProvedBy(credential) {
    return await this.challenge(credential) !== null;
  }

  /** The collector's proof that it knows the secret. Null if it does not know the credential. @param {Credential} credential */
  async challenge({ id, secret }) {
    const page_nonce = hex(crypto.getRandomValues(new Uint8Array(16)));
    const { challenge } = await ask("login/challenge", { id, page_nonce });
    if (!challenge) return null;
    const { nonce, proof } = challenge;
    if (proof !== hex(mac(mac(secret, ["server"]), ["server", id, page_nonce, String(nonce)]))) {
      this.impostor = true;
      throw new Problem(0, {
        title: "another program answers",
        detail: "What answers at this address cannot prove that it is your hookspan. Nothing was sent to it.",
        hint: "hookspan status",
      });
    }
    return { page_nonce, nonce: String(nonce) };
  }

  /** Both halves of a handshake. False if the credential is unknown. @param {Credential} credential */
  async handshake(credential) {
    const { id, secret } = credential;
    const begun = await this.challenge(credential);
    // The key is kept, because the answer may come from another program.
    if (!begun) return false;
    const { page_nonce, nonce } = begun;
    const client = mac(secret, ["client"]);
    const proof = hex(xor(client, mac(sha256(client), ["client", id, page_nonce, nonce])));
    const { granted } = await ask("login", { id, page_nonce, nonce, proof });
    if (!granted) return false;
    const shared = mac(client, ["shared", id, page_nonce, nonce]);
    this.tab = { id: granted.tab, key: mac(shared, ["tab"]), seq: 0 };
    this.page = { id: granted.page, secret: mac(shared, ["page"]) };
    this.restart = { id: granted.restart, secret: mac(shared, ["restart"]) };
    this.channel = unhex(granted.channel);
    this.proven = true;
    // If another program has answered, its pages could read the storage, so nothing is stored. New tabs then need a
    // code.
    if (!this.impostor) save(this.page);
    return true;
  }

  /**
   * Signs one request. Returns what follows `Hookspan `, and the proof that the answer must have.
   * @param {string} method @param {string} target path and query @param {string} body
   */
  sign(method, target, body) {
    if (!this.tab) return null;
    const { id, key } = this.tab;
    this.tab.seq += 1;
    const seq = String(this.tab.seq);
    const proof = hex(mac(key, ["request", method, target, seq, hex(sha256(bytes(body)))]));
    return {
      text: `${id}:${seq}:${proof}`,
      /** @param {Response} response */
      proves: (response) => response.headers.get("hookspan-proof") === hex(mac(key, ["answer", seq, String(response.status)])),
    };
  }

  /** Signs a link to a file. @param {string} target path and query */
  async link(target) {
    await this.enter();
    const signed = this.sign("GET", target, "");
    return signed ? `${target}${target.includes("?") ? "&" : "?"}proof=${signed.text}` : target;
  }

  /** Forgets everything. */
  leave() {
    this.tab = null;
    this.page = null;
    this.restart = null;
    this.channel = null;
    this.proven = false;
    save(null);
    this.tried = stored();
    this.say(signedOut("this browser was signed out"));
  }

  /** @param {Problem | null} out */
  say(out) {
    this.out = out;
    for (const listener of this.listeners) listener();
  }
}

/** @param {string} detail */
function signedOut(detail) {
  return new Problem(401, { title: "not signed in", detail, hint: "hookspan open" });
}

/** Waits before it reads the credential. @param {() => Credential | null} credential */
function later(credential) {
  return () => new Promise((resolve) => { setTimeout(() => resolve(credential()), 1_000); });
}

/** @param {string} path @param {Record<string, string>} body @returns {Promise<any>} */
async function ask(path, body) {
  const options = /** @type {const} */ ({ method: "POST", headers: { "Content-Type": "application/json" }, credentials: "omit", redirect: "error" });
  const response = await fetch(`/api/v1/${path}`, { ...options, body: JSON.stringify(body) }).catch(() => { throw broken(); });
  const answer = await response.json().catch(() => null);
  if (answer === null || typeof answer !== "object") throw broken();
  if (!response.ok && response.status !== 401) throw new Problem(response.status, answer);
  return answer;
}

/** @param {Credential | null} credential */
function save(credential) {
  try {
    if (credential) localStorage.setItem(STORED, `${credential.id}.${hex(credential.secret)}`);
    else localStorage.removeItem(STORED);
  } catch {
    // If the browser stores nothing, each tab needs a code.
  }
}

function stored() {
  try {
    return localStorage.getItem(STORED) ?? "";
  } catch {
    return "";
  }
}

/** @returns {Credential | null} */
function load() {
  const [id, text] = stored().split(".");
  const secret = unhex(text ?? "");
  return id && secret ? { id, secret } : null;
}

/** The door of this page. */
export const door = new Door();
