// Alarms that the person muted in this browser. A muted alarm is shown, and neither counted nor spoken.
import { read, write } from "./local-storage.js";

/** One alarm: another call, or another reason, is another alarm.
 * @typedef {{ session: string, status: string, since: number }} Alarm */

/** Muted alarms that are remembered. */
const MUTED_MAX = 50;

/** @param {Alarm} alarm */
const nameOf = ({ session, status, since }) => `${session} ${status} ${since}`;

/** @returns {string[]} */
function muted() {
  try {
    const list = JSON.parse(read("hookspan.muted") ?? "[]");
    return Array.isArray(list) ? list.filter((name) => typeof name === "string") : [];
  } catch {
    return [];
  }
}

/** @param {Alarm} alarm */
export const isMuted = (alarm) => muted().includes(nameOf(alarm));

/** @param {Alarm} alarm @param {boolean} on */
export function mute(alarm, on) {
  const rest = muted().filter((name) => name !== nameOf(alarm));
  write("hookspan.muted", JSON.stringify((on ? [nameOf(alarm), ...rest] : rest).slice(0, MUTED_MAX)));
  dispatchEvent(new Event("hookspan:muted"));
}
