// Keys: one listener; pages say what their keys do. Off inside inputs, and when the person turned them off.
import { read, write } from "./local-storage.js";

const handlers = [];

/** Adds keys `{key: action}`; the newest set wins, a `base` set loses to all others. Returns how to remove it. */
export function bind(map, { base = false } = {}) {
  if (base) handlers.push(map);
  else handlers.unshift(map);
  return () => handlers.splice(handlers.indexOf(map), 1);
}

export function enabled() {
  return read("hookspan.keys") !== "0";
}

export function setEnabled(on) {
  write("hookspan.keys", on ? null : "0");
}

// Nobody types into a box to tick.
const typing = (target) => target.isContentEditable || (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && target.type !== "checkbox");
let prefix = null;

export function start() {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented) return;
    const command = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k";
    if (!command && (event.ctrlKey || event.metaKey || event.altKey)) return;
    if (!command && typing(event.target)) {
      if (event.key === "Escape" && !event.target.closest("dialog")) event.target.blur();
      return;
    }
    if (!enabled() && event.key !== "?") return;
    // An open dialog has its own keys; Escape closes it.
    const dialog = document.querySelector("dialog[open]");
    if (dialog && !command && event.key !== "?") return;
    const key = command ? "Ctrl k" : prefix && performance.now() - prefix.at < 1_200 ? `${prefix.key} ${event.key}` : event.key;
    prefix = null;
    for (const map of handlers) {
      const action = map[key];
      if (!action) continue;
      // Enter and Space belong to a focused button or link.
      if ((event.key === "Enter" || event.key === " ") && event.target.closest("button,a,summary,input")) return;
      event.preventDefault();
      action(event);
      return;
    }
    if (event.key === "g") prefix = { key: "g", at: performance.now() };
  });
}
