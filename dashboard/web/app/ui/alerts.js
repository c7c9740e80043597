// Browser notices when a session needs the user or a turn ended. Off until switched on, per kind; never with content.
/** @import { Need } from "../../types/answers" */
import { read, write } from "./local-storage.js";

/** Kinds that can be switched on. */
export const KINDS = /** @type {const} */ (["needs you", "turn ended"]);
/** @typedef {typeof KINDS[number]} Kind */

/** @type {Set<string> | null} */
let known = null;

/** The kinds that are switched on. @returns {Kind[]} */
export function wanted() {
  const kept = (read("hookspan.notices") ?? "").split(",");
  return KINDS.filter((kind) => kept.includes(kind));
}

/** Turns a kind on or off. For the first one the browser asks for permission, so call this from a click.
 * @param {Kind} kind @returns {Promise<string | null>} why it cannot be turned on */
export async function toggle(kind) {
  const now = wanted();
  const on = !now.includes(kind);
  if (on) {
    if (!("Notification" in window)) return "this browser does not support notices here";
    if (await Notification.requestPermission() !== "granted") return "the browser blocks notices from this page";
  }
  write("hookspan.notices", KINDS.filter((one) => (one === kind ? on : now.includes(one))).join(","));
  return null;
}

/** Shows notices for what is new since the last call. The first call shows none, nor does a visible page.
 * @param {Need[]} needs @param {Need[]} ended */
export function tell(needs, ended) {
  /** @param {Need} need */
  const name = (need) => `${need.session} ${need.kind} ${need.since_us}`;
  const before = known;
  known = new Set([...needs, ...ended].map(name));
  if (!before || !document.hidden || !("Notification" in window) || Notification.permission !== "granted") return;
  const kinds = wanted();
  for (const [kind, list] of /** @type {[Kind, Need[]][]} */ ([["needs you", needs], ["turn ended", ended]])) {
    const fresh = list.filter((need) => !before.has(name(need)));
    // One notice per kind: the browser shows notices of several tabs with one tag once.
    if (fresh.length && kinds.includes(kind)) new Notification(`hookspan: ${kind}`, { body: `${list.length} in all`, tag: `hookspan ${kind}` }).onclick = () => window.focus();
  }
}
