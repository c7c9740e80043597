// A small store: one value, changed in one place. Subscribers are redrawn.
import { useEffect, useState } from "./html.js";

/** @template {object} T */
export class Store {
  /** @param {T} value */
  constructor(value) {
    this.value = value;
    /** @type {Set<() => void>} */
    this.listeners = new Set();
  }

  /** Replaces some fields. @param {Partial<T>} change */
  set(change) {
    this.value = { ...this.value, ...change };
    for (const listener of this.listeners) listener();
  }

  /** Calls `listener` after every change. Returns a function that stops. @param {() => void} listener */
  subscribe(listener) {
    this.listeners.add(listener);
    return () => { this.listeners.delete(listener); };
  }
}

/** The value of a store; the component is drawn again when the value changes. @template {object} T @param {Store<T>} store @returns {T} */
export function useStore(store) {
  const [value, set] = useState(store.value);
  useEffect(() => {
    // The store may have changed between the first drawing and now.
    set(store.value);
    return store.subscribe(() => set(store.value));
  }, [store]);
  return value;
}
