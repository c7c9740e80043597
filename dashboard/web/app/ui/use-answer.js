// Asks the API from a component, and listens to the stream.
/** @import { Answer, StreamEvent } from "../../types/answers" */
/** @import { Failure } from "../../types/app" */
import { get } from "../net/api.js";
import { live } from "../net/event-stream.js";
import { throttle } from "../net/throttle.js";
import { useEffect, useMemo, useState } from "./html.js";

/** @typedef {(event: StreamEvent, data: any) => unknown} Listener */

/**
 * The latest answer for `path`. Asks again when `path` changes, and after stream events that `heard` accepts, at most
 * once per `ms`. The previous answer stays until the next arrives. A null path asks for nothing.
 * @template {string} const P
 * @param {P | null} path @param {Listener | null} [heard] @param {number} [ms]
 * @returns {{ data: Answer<P> | null, error: Failure | null, reload: () => void }}
 */
export function useAnswer(path, heard = null, ms = 1_000) {
  const [state, set] = useState(/** @type {{ data: Answer<P> | null, error: Failure | null, path: string | null }} */ ({ data: null, error: null, path: null }));
  const [turn, again] = useState(0);
  useEffect(() => {
    if (!path) return undefined;
    const control = new AbortController();
    get(path, { signal: control.signal }).then(
      (data) => set({ data, error: null, path }),
      (error) => error.name !== "AbortError" && set((old) => ({ data: old.path === path ? old.data : null, error, path })),
    );
    return () => control.abort();
  }, [path, turn]);
  const reload = useMemo(() => () => again((n) => n + 1), []);
  useEffect(() => {
    if (!heard) return undefined;
    const soon = throttle(reload, ms);
    return live.listen((event, data) => heard(event, data) && soon());
  }, []);
  const failed = state.error !== null && state.path === path;
  useEffect(() => {
    // Requests that failed while the collector was down are repeated when it answers.
    if (!failed) return undefined;
    return live.listen((event, now) => event === "state" && now === "connected" && reload());
  }, [failed]);
  return { data: state.data, error: state.path === path ? state.error : null, reload };
}

/** Calls `listener` for stream events while the component lives. @param {Listener} listener @param {unknown[]} inputs */
export function useLive(listener, inputs) {
  useEffect(() => live.listen(listener), inputs);
}
