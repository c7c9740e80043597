// Limits how often something runs.

/** Calls `action` at most once per `ms`. The last call is never lost. @param {() => unknown} action @param {number} ms */
export function throttle(action, ms) {
  /** @type {ReturnType<typeof setTimeout> | 0} */
  let timer = 0;
  let last = -Infinity;
  const run = () => {
    timer = 0;
    last = performance.now();
    action();
  };
  return () => {
    if (!timer) timer = setTimeout(run, Math.max(0, last + ms - performance.now()));
  };
}
