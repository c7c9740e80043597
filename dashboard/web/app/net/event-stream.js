// One event stream per browser. The tab that holds the lock listens, and passes every event on to the other tabs. Without Web
// Locks (plain http off loopback) each visible tab has a stream of its own.
/** @import { StreamEvent } from "../../types/answers" */

const CHANNEL = "hookspan";
const LOCK = "hookspan-stream";
const BEAT_MS = 10_000;
const SILENCE_MS = 30_000;
const RETRY_MS = 3_000;
const EVENTS = /** @type {const} */ (["hello", "session", "spans", "health", "install", "resync"]);

/**
 * What tabs say to each other. `ask` asks for the state, `beat` tells it.
 * @typedef {{ event: StreamEvent | "ask" | "beat", data?: any, id?: string | null, state?: string }} Packet
 * @typedef {(event: StreamEvent, data: any) => unknown} Listener
 */

export class EventStream {
  constructor() {
    /** @type {Set<Listener>} */
    this.listeners = new Set();
    /** `connecting` or `connected`. */
    this.state = "connecting";
    /** @type {string | null} */
    this.lastId = null;
    this.heard = performance.now();
    this.leads = false;
    this.started = false;
    /** @type {EventSource | null} */
    this.source = null;
    this.channel = "BroadcastChannel" in self ? new BroadcastChannel(CHANNEL) : null;
    this.channel?.addEventListener("message", ({ data }) => this.receive(data));
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
    const after = this.lastId ? `?after=${encodeURIComponent(this.lastId)}` : "";
    const source = new EventSource(`/api/v1/stream${after}`);
    this.source = source;
    source.addEventListener("open", () => this.announce("connected"));
    source.addEventListener("error", (event) => {
      // An event that the server named "error" carries data; it is not a broken stream.
      if (event instanceof MessageEvent) return;
      this.announce("connecting");
      // An EventSource never retries after a refusal (401, 503).
      if (source.readyState === EventSource.CLOSED) {
        this.close();
        setTimeout(() => this.wanted() && this.open(), RETRY_MS);
      }
    });
    for (const event of EVENTS) {
      source.addEventListener(event, (message) => {
        const packet = { event, data: parse(message.data), id: message.lastEventId };
        this.receive(packet);
        this.pass(packet);
      });
    }
  }

  wanted() {
    return this.leads || !navigator.locks ? !this.source : false;
  }

  close() {
    this.source?.close();
    this.source = null;
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
    this.channel?.postMessage(packet);
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
      if (this.state === data) return;
      this.state = data;
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
