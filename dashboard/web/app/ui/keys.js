// Keys. One listener; each page defines its keys. They are off inside fields, and if the user turned them off.
/** @import { KeyMap } from "../../types/app" */
import { read, write } from "./local-storage.js";

/** @type {KeyMap[]} */
const handlers = [];
/** How long `g` waits for the letter after it. */
const PREFIX_MS = 1_200;

/**
 * Adds keys. The newest map wins; a `base` map loses to all others. Returns a function that removes the keys.
 * @param {KeyMap} map @param {{ base?: boolean }} [options]
 */
export function bind(map, { base = false } = {}) {
  if (base) handlers.push(map);
  else handlers.unshift(map);
  return () => { handlers.splice(handlers.indexOf(map), 1); };
}

export function enabled() {
  return read("hookspan.keys") !== "0";
}

/** @param {boolean} on */
export function setEnabled(on) {
  write("hookspan.keys", on ? null : "0");
}

/** Whether keys are text for this element. Not for a checkbox. @param {HTMLElement} target */
function takesText(target) {
  if (target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement) return true;
  return target instanceof HTMLInputElement && target.type !== "checkbox";
}

/** @type {{ key: string, at: number } | null} */
let prefix = null;

export function start() {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented) return;
    const target = event.target instanceof HTMLElement ? event.target : document.body;
    const command = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k";
    if (!command && (event.ctrlKey || event.metaKey || event.altKey)) return;
    if (!command && takesText(target)) {
      if (event.key === "Escape" && !target.closest("dialog")) target.blur();
      return;
    }
    if (!enabled() && event.key !== "?") return;
    // An open dialog has its own keys. Escape closes the dialog.
    const dialog = document.querySelector("dialog[open]");
    if (dialog && !command && event.key !== "?") return;
    run(command ? "Ctrl k" : withPrefix(event.key), event, target);
  });
}

/** `g s`, if `s` follows `g` soon enough. @param {string} key */
function withPrefix(key) {
  return prefix && performance.now() - prefix.at < PREFIX_MS ? `${prefix.key} ${key}` : key;
}

/** @param {string} key @param {KeyboardEvent} event @param {HTMLElement} target */
function run(key, event, target) {
  prefix = null;
  for (const map of handlers) {
    const action = map[key];
    if (!action) continue;
    // Enter and Space belong to a focused button or link.
    if ((event.key === "Enter" || event.key === " ") && target.closest("button,a,summary,input")) return;
    event.preventDefault();
    action(event);
    return;
  }
  if (event.key === "g") prefix = { key: "g", at: performance.now() };
}
