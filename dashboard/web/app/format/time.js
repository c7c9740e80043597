// Times of day, dates, and offsets on the ruler. All times are integer microseconds.

/** @param {number} n */
const two = (n) => String(n).padStart(2, "0");

/** Time of day in the browser's zone, with milliseconds: `14:02:11.204`. @param {number} us */
export function clock(us) {
  const d = new Date(us / 1_000);
  const ms = String(d.getMilliseconds()).padStart(3, "0");
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}.${ms}`;
}

/** Date and minute in the browser's zone: `2026-01-31 14:02`. @param {number} us */
export function date(us) {
  const d = new Date(us / 1_000);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}`;
}

/**
 * An offset from the session's start, for the ruler: `+0:06:45`. A `step` below a second adds the digits that tell two steps apart.
 * @param {number} us @param {number} [step]
 */
export function offset(us, step = 1e6) {
  const sign = us < 0 ? "-" : "+";
  const all = Math.abs(us);
  const s = Math.floor(all / 1e6);
  const base = `${sign}${Math.floor(s / 3_600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
  if (step >= 1e6) return base;
  const digits = step >= 1e5 ? 1 : step >= 1e4 ? 2 : step >= 1e3 ? 3 : 6;
  return `${base}.${String(Math.floor(all % 1e6)).padStart(6, "0").slice(0, digits)}`;
}
