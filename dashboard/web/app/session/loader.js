// Loads a session, and later only its changes.
/** @import { Hearer } from "../../types/session" */
/** @import { Columns, Session, Turn } from "../../types/answers" */
/** @import { Failure } from "../../types/app" */
/** @import { Trace } from "../../types/trace" */
import { enc, get } from "../net/api.js";
import { throttle } from "../net/throttle.js";
import { decode, merge } from "../trace/columns.js";

/** Minimum time between two requests for changes. */
const DELTA_MS = 150;

export class Loader {
  /** @param {string} id @param {Hearer} hearer */
  constructor(id, hearer) {
    this.path = /** @type {const} */ (`sessions/${enc(id)}`);
    this.hearer = hearer;
    /** The whole session. @type {Trace | null} */
    this.trace = null;
    this.alive = true;
    this.loading = false;
    /** Something changed while changes were being loaded. */
    this.again = false;
    /** Asks for changes soon. */
    this.soon = throttle(() => this.changes(), DELTA_MS);
  }

  stop() {
    this.alive = false;
  }

  async whole() {
    try {
      const [session, turns, spans] = await Promise.all([get(this.path), get(`${this.path}/turns`), get(`${this.path}/spans`)]);
      if (!this.alive) return;
      const trace = decode(/** @type {Columns} */ (spans));
      this.trace = trace;
      await this.hearer.onWhole(session, turns.items, trace);
    } catch (error) {
      if (this.alive) this.hearer.onError(/** @type {Failure} */ (error));
    }
  }

  async changes() {
    if (this.loading || !this.trace) {
      this.again = true;
      return;
    }
    this.loading = true;
    this.again = false;
    try {
      await this.merge(this.trace);
    } catch (error) {
      const failure = /** @type {Failure} */ (error);
      // Without an answer, the stream reports the lost connection, and the next event asks again.
      if (this.alive && failure.status !== 0) this.hearer.onError(failure);
    } finally {
      this.loading = false;
      if (this.again && this.alive) this.soon();
    }
  }

  /** @param {Trace} before */
  async merge(before) {
    const [answer, turns] = await Promise.all([get(`${this.path}/spans?since=${before.rev}`), get(`${this.path}/turns`)]);
    if (!this.alive) return;
    const merged = merge(before, /** @type {Columns} */ (answer));
    if (!merged) {
      await this.whole();
      return;
    }
    this.trace = merged;
    await this.hearer.onChange(turns.items, merged, before);
  }
}
