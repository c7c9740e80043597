// One event stream per browser: the tab that holds the lock listens and passes every event on. Without Web Locks (plain
// http off loopback) each visible tab has its own stream.
/** @import { StreamEvent } from "../../types/answers" */
import { stream } from "./api.js";
import { Channel } from "./channel.js";
import { door } from "./door.js";
import { readEvents } from "./sse.js";

const CHANNEL = "hookspan";
const LOCK = "hookspan-stream";
const BEAT_MS = 10_000;
const SILENCE_MS = 30_000;
const RETRY_MS = 3_000;
/** @type {Set<string>} */
const EVENTS = new Set(["hello", "session", "spans", "health", "install", "resync"]);

/**
 * Messages between tabs. `ask` requests the state, `beat` answers it.
 * @typedef {{ event: StreamEvent | "ask" | "beat", data?: any, id?: string | null, state?: string }} Packet
 * @typedef {(event: StreamEvent, data: any) => unknown} Listener
 */

export class EventStream {
  constructor() {
    /** @type {Set<Listener>} */
    this.listeners = new Set();
    /** `connecting` or `connected`. */
    this.state = "connecting";
    /** When the connection was lost, milliseconds since the epoch; null while there is one. @type {number | null} */
    this.lost = null;
    /** @type {string | null} */
    this.lastId = null;
    this.heard = performance.now();
    this.leads = false;
    this.started = false;
    this.regaining = false;
    /** Ends the stream of this tab. @type {AbortController | null} */
    this.source = null;
    const shared = "BroadcastChannel" in self && "subtle" in crypto;
    this.channel = shared ? new Channel(CHANNEL, (packet) => this.receive(packet)) : null;
  }

  /** Calls `listener(event, data)` for every event. Returns a function that stops. @param {Listener} listener */
  listen(listener) {
    this.listeners.add(listener);
    return () => { this.listeners.delete(listener); };
  }

  start() {
    if (this.started) return;
    this.started = true;
    if (!navigator.locks || !this.channel) {
      const own = () => (document.hidden ? this.close() : this.open());
      document.addEventListener("visibilitychange", own);
      own();
      return;
    }
    this.request(false);
    setInterval(() => {
      if (this.leads) this.pass({ event: "beat", state: this.state });
      else if (!document.hidden && performance.now() - this.heard > SILENCE_MS) this.request(true);
    }, BEAT_MS);
  }

  /** Asks for the lock. @param {boolean} steal takes it from a tab that has gone silent */
  request(steal) {
    this.heard = performance.now();
    this.pass({ event: "ask" });
    navigator.locks.request(LOCK, steal ? { steal } : {}, () => {
      this.leads = true;
      this.open();
      // The lock is held until it is stolen or the tab closes.
      return new Promise(() => {});
    }).catch(() => {
      // Another tab stole the lock: follow that tab, and queue for the lock again.
      this.leads = false;
      this.close();
      this.request(false);
    });
  }

  open() {
    if (this.source) return;
    const source = new AbortController();
    this.source = source;
    this.follow(source.signal).catch(() => {}).finally(() => {
      if (this.source !== source) return;
      // Another program may have the port now.
      this.close();
      this.announce("connecting");
      setTimeout(() => this.wanted() && this.open(), RETRY_MS);
    });
  }

  /** Reads the stream until it ends. @param {AbortSignal} signal */
  async follow(signal) {
    const after = this.lastId ? `?after=${encodeURIComponent(this.lastId)}` : "";
    const body = await stream(`stream${after}`, signal);
    this.announce("connected");
    await readEvents(body, ({ event, data, id }) => {
      if (!EVENTS.has(event)) return;
      /** @type {Packet} */
      const packet = { event: /** @type {StreamEvent} */ (event), data: parse(data), id };
      this.receive(packet);
      this.pass(packet);
    });
  }

  /**
   * The stream broke. This tab asks until the collector has proved itself again. A restarted collector has another key
   * for messages between tabs, so a tab that only listens would hear nothing.
   */
  async regain() {
    if (this.regaining || door.open) return;
    this.regaining = true;
    while (!door.proven && (!door.out || door.restart)) {
      await door.enter().catch(() => {});
      if (!door.proven) await new Promise((resolve) => { setTimeout(resolve, RETRY_MS); });
    }
    this.regaining = false;
    if (this.leads || !door.proven) return;
    this.pass({ event: "ask" });
    // Other tabs may have missed events, so they reload.
    this.tell("resync", { reason: "lag" });
  }

  wanted() {
    return this.leads || !navigator.locks ? !this.source : false;
  }

  close() {
    const { source } = this;
    this.source = null;
    source?.abort();
  }

  /** @param {string} state */
  announce(state) {
    /** @type {Packet} */
    const packet = { event: "state", data: state };
    this.receive(packet);
    this.pass(packet);
  }

  /** @param {Packet} packet */
  pass(packet) {
    this.channel?.send(packet);
  }

  /** @param {Packet} packet */
  receive(packet) {
    const { event, data, id, state } = packet;
    if (event === "ask") {
      if (this.leads) this.pass({ event: "beat", state: this.state, id: this.lastId });
      return;
    }
    this.heard = performance.now();
    if (id) this.lastId = id;
    if (event === "beat") this.tell("state", state);
    else this.tell(event, data);
  }

  /** @param {StreamEvent} event @param {any} data */
  tell(event, data) {
    if (event === "state") {
      if (data === "connecting") {
        door.doubt();
        this.regain();
      }
      if (this.state === data) return;
      this.state = data;
      this.lost = data === "connected" ? null : Date.now();
    }
    for (const listener of this.listeners) listener(event, data);
  }
}

/** @param {string} text */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The stream of this tab. */
export const live = new EventStream();
