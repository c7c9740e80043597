// Keys: one listener; pages say what their keys do. Off inside inputs, and when the person turned them off.

const handlers = [];

/** Adds keys `{key: action}`; the newest set wins. Returns how to remove it. */
export function bind(map) {
  handlers.unshift(map);
  return () => handlers.splice(handlers.indexOf(map), 1);
}

export function enabled() {
  return localStorage.getItem("hookspan.keys") !== "0";
}

export function setEnabled(on) {
  localStorage.setItem("hookspan.keys", on ? "1" : "0");
}

const typing = (target) => target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
let prefix = null;

export function start() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (typing(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (!enabled() && event.key !== "?") return;
    const key = prefix && performance.now() - prefix.at < 1_200 ? `${prefix.key} ${event.key}` : event.key;
    prefix = null;
    for (const map of handlers) {
      const action = map[key];
      if (!action) continue;
      // Enter and Space belong to a focused button or link.
      if ((event.key === "Enter" || event.key === " ") && event.target.closest("button,a,summary")) return;
      event.preventDefault();
      action(event);
      return;
    }
    if (event.key === "g") prefix = { key: "g", at: performance.now() };
  });
}
