// Durations, counts and sizes as a person reads them. The terminal follows the same rules (`collector/src/text.rs`); both are
// tested with `tests/corpus/quantities.json`.
/** @import { Cost } from "../../types/answers" */

/** @param {number} n */
const two = (n) => String(n).padStart(2, "0");

/** `n` in whole units, rounded to the nearest one. `n` and `unit` are integers.
 * @param {number} n @param {number} unit */
const nearest = (n, unit) => Math.floor(n / unit) + (n % unit * 2 >= unit ? 1 : 0);

/** A number of tenths as text: 34 is `3.4`. @param {number} n */
const tenths = (n) => `${Math.floor(n / 10)}.${n % 10}`;

/**
 * A duration in at most six characters, rounded: `0s`, `302µs`, `3.4ms`, `63ms`, `20.1s`, `5m58s`, `2h10m`, `3d04h`, `120d`.
 * Null and negative durations are those of open spans: `…`.
 * @param {number | null | undefined} us microseconds
 */
export function duration(us) {
  if (us == null || us < 0) return "…";
  const whole = Math.round(us);
  if (whole === 0) return "0s";
  if (whole < 1_000) return `${whole}µs`;
  if (nearest(whole, 100) < 100) return `${tenths(nearest(whole, 100))}ms`;
  if (nearest(whole, 1_000) < 1_000) return `${nearest(whole, 1_000)}ms`;
  if (nearest(whole, 1e5) < 600) return `${tenths(nearest(whole, 1e5))}s`;
  const s = nearest(whole, 1e6);
  if (s < 3_600) return `${Math.floor(s / 60)}m${two(s % 60)}s`;
  const minutes = nearest(whole, 60e6);
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)}h${two(minutes % 60)}m`;
  const hours = nearest(whole, 3_600e6);
  return hours < 2_400 ? `${Math.floor(hours / 24)}d${two(hours % 24)}h` : `${nearest(whole, 86_400e6)}d`;
}

/**
 * The time since something happened, in whole units and never rounded up: `14s`, `2m10s`, `3h02m`, `5d`. A negative age is `0s`.
 * @param {number} us microseconds
 */
export function age(us) {
  const s = Math.max(0, Math.floor(us / 1e6));
  if (s < 60) return `${s}s`;
  if (s < 3_600) return `${Math.floor(s / 60)}m${two(s % 60)}s`;
  if (s < 86_400) return `${Math.floor(s / 3_600)}h${two(Math.floor(s / 60) % 60)}m`;
  return `${Math.floor(s / 86_400)}d`;
}

/**
 * `n` in the first unit in which it has at most three digits before the point: one decimal below 100, none above.
 * @param {number} n @param {number} base @param {string[]} units
 */
function scaled(n, base, units) {
  let unit = 1;
  for (const [i, word] of units.entries()) {
    unit *= base;
    const found = nearest(n * 10, unit);
    if (found < 1_000) return tenths(found) + word;
    const whole = nearest(n, unit);
    if (whole < base || i === units.length - 1) return whole + word;
  }
  return String(n);
}

/** A count in at most five characters: `470`, `1.5k`, `31.0k`, `171k`, `4.2M`. Unknown counts are a dash.
 * @param {number | null | undefined} n */
export function count(n) {
  if (n == null) return "–";
  return n < 1_000 ? String(n) : scaled(n, 1_000, ["k", "M", "G"]);
}

/**
 * Input and output tokens together; null if neither is known.
 * @param {{ input: number | null, output: number | null }} tokens
 */
export function tokenTotal({ input, output }) {
  return input == null && output == null ? null : (input ?? 0) + (output ?? 0);
}

/** A size: `512 B`, `48.0 KiB`, `5.0 MiB`. Unknown sizes are a dash. @param {number | null | undefined} n */
export function bytes(n) {
  if (n == null) return "–";
  return n < 1_024 ? `${n} B` : scaled(n, 1_024, [" KiB", " MiB", " GiB", " TiB"]);
}

/** An estimate of what tokens cost by the configured prices. It is never a bill, so the text always says "est.".
 * @param {Cost} cost */
export function cost({ estimated, currency, unpriced_tokens: unpriced }) {
  // If no token has a price there is no estimate, and 0 would be wrong.
  if (estimated === 0 && unpriced) return `– (${count(unpriced)} tok unpriced)`;
  return `≈ ${estimated.toFixed(2)} ${currency} est.${unpriced ? ` (${count(unpriced)} tok unpriced)` : ""}`;
}

/** `3 turns`, `1 turn`, `73,285 spans`. @param {number} n @param {string} word */
export function plural(n, word) {
  return `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
}
