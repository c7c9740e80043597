// Days in the browser's time zone. All times are integer microseconds.

/** The begin of the day that is `days` after the day of `us`. A day with a clock change has 23 or 25 hours.
 * @param {number} us @param {number} [days] */
export function midnight(us, days = 0) {
  const d = new Date(us / 1_000);
  return new Date(d.getFullYear(), d.getMonth(), d.getDate() + days).getTime() * 1_000;
}

/** The day in the browser's zone: `2026-01-31`. @param {number} us */
export function day(us) {
  const d = new Date(us / 1_000);
  return [d.getFullYear(), d.getMonth() + 1, d.getDate()].map((n) => String(n).padStart(2, "0")).join("-");
}

/** How many days lie between two begins of days. @param {number} from @param {number} to */
export const daysBetween = (from, to) => Math.round((to - from) / 86_400e6);

/** The next time at which the clock shows 6, 12, 18 or 0. @param {number} us */
function quarter(us) {
  const d = new Date(us / 1_000);
  return new Date(d.getFullYear(), d.getMonth(), d.getDate(), (Math.floor(d.getHours() / 6) + 1) * 6).getTime() * 1_000;
}

/** The lengths of columns of `width` days between two begins of days, as the API takes them: `1440*29,1380`. A quarter of a day ends
 * when the clock shows 6, 12, 18 or 0; an hour is always one.
 * @param {number} from @param {number} to @param {number} [width] */
export function columns(from, to, width = 1) {
  /** @type {[minutes: number, times: number][]} */
  const runs = [];
  for (let at = from; at < to;) {
    const next = width >= 1 ? midnight(at, width) : width === 0.25 ? quarter(at) : at + width * 86_400e6;
    const minutes = Math.round((next - at) / 60e6);
    const last = runs.at(-1);
    if (last?.[0] === minutes) last[1] += 1;
    else runs.push([minutes, 1]);
    at = next;
  }
  return runs.map(([minutes, times]) => (times > 1 ? `${minutes}*${times}` : `${minutes}`)).join(",");
}

/** The words of a search, with the days of `from:` and `to:` as times: they are days of the browser's zone. @param {string} words */
export const inUtc = (words) => words.replace(/(^|\s)(from|to):(\d{4})-(\d\d)-(\d\d)(?=\s|$)/g, (_, before, name, year, month, date) =>
  `${before}${name}:${new Date(+year, month - 1, +date + (name === "to" ? 1 : 0), 0, 0, 0, name === "to" ? -1 : 0).toISOString()}`);
