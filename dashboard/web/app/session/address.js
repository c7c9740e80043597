// The address of a session's page: chosen span, focus, filter and axis. Read at the start, written when they change.
/** @import { Interval } from "../../types/trace" */

const SPAN_ID = /^#?([0-9a-f]{16})$/;

export class Address {
  /** @param {{ query: string, hash: string }} at */
  constructor({ query, hash }) {
    /** What this page wrote last. It need not follow its own changes. */
    this.written = query + hash;
    this.span = spanIn(hash);
    const params = new URLSearchParams(query);
    this.focus = params.get("focus");
    this.range = rangeIn(params.get("t"));
  }

  /** Whether somebody else changed the address: back, forward or a link. @param {{ query: string, hash: string }} at */
  moved({ query, hash }) {
    if (this.written === query + hash) return false;
    this.written = query + hash;
    return true;
  }

  /** @param {(url: URL) => void} change */
  write(change) {
    const url = new URL(location.href);
    change(url);
    history.replaceState(history.state, "", url.pathname + url.search + url.hash);
    this.written = url.search + url.hash;
  }

  /** Sets a parameter, or with null removes it. @param {string} name @param {string | null} value */
  set(name, value) {
    this.write((url) => (value === null ? url.searchParams.delete(name) : url.searchParams.set(name, value)));
  }
}

/** The span that a fragment names, or null. @param {string} hash */
export const spanIn = (hash) => SPAN_ID.exec(hash)?.[1] ?? null;

/** The window of the axis, or null. @param {string | null} text @returns {Interval | null} */
function rangeIn(text) {
  const [from, to, ...more] = text?.split(",").map(Number) ?? [];
  return more.length === 0 && Number.isFinite(from) && Number.isFinite(to) && to > from ? [from, to] : null;
}
