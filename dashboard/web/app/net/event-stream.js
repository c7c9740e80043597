// One event stream per browser: the tab that holds the lock listens and passes on. Without Web Locks (plain http off
// loopback) each visible tab has its own stream.

const CHANNEL = "hookspan";
const LOCK = "hookspan-stream";
const BEAT_MS = 10_000;
const SILENCE_MS = 30_000;
const EVENTS = ["hello", "session", "spans", "health", "install", "resync"];

export class Live {
  constructor() {
    this.listeners = new Set();
    this.state = "connecting";
    this.lastId = null;
    this.heard = performance.now();
    this.channel = "BroadcastChannel" in self ? new BroadcastChannel(CHANNEL) : null;
    this.channel?.addEventListener("message", ({ data }) => this.receive(data));
  }

  /** Calls `listener(event, data)`; `state` events say connected, connecting or signed-out. Returns how to stop. */
  listen(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
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

  request(steal) {
    this.heard = performance.now();
    this.pass({ event: "ask" });
    navigator.locks.request(LOCK, steal ? { steal } : {}, () => {
      this.leads = true;
      this.open();
      return new Promise((_, lost) => { this.lost = lost; });
    }).catch(() => {
      // Another tab stole the lock: follow it, and queue up again.
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
      // The server may send an event of that name, which is not a broken stream.
      if (event.data !== undefined) return;
      this.announce("connecting");
      // Refused (401, 503) is final for an EventSource: ask again, later.
      if (source.readyState === EventSource.CLOSED) {
        this.close();
        setTimeout(() => this.wanted() && this.open(), 3_000);
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

  announce(state) {
    const packet = { event: "state", data: state };
    this.receive(packet);
    this.pass(packet);
  }

  pass(packet) {
    this.channel?.postMessage(packet);
  }

  receive({ event, data, id, state }) {
    if (event === "ask") {
      if (this.leads) this.pass({ event: "beat", state: this.state, id: this.lastId });
      return;
    }
    this.heard = performance.now();
    if (id) this.lastId = id;
    if (event === "beat") [event, data] = ["state", state];
    if (event === "state") {
      if (this.state === data) return;
      this.state = data;
    }
    for (const listener of this.listeners) listener(event, data);
  }
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export const live = new Live();
