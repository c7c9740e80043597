// Numbers and times as a person reads them. All times are integer microseconds.

const two = (n) => String(n).padStart(2, "0");

/** A duration: 302 µs, 63ms, 20.1s, 5m58s, 2h10m, 3d4h. */
export function duration(us) {
  if (us == null || us < 0) return "…";
  if (us === 0) return "0ms";
  if (us < 1_000) return `${us}µs`;
  if (us < 999_500) return `${Math.round(us / 1_000)}ms`;
  const s = us / 1e6;
  if (s < 59.95) return `${s.toFixed(1)}s`;
  const whole = Math.round(s);
  if (whole < 3_600) return `${Math.floor(whole / 60)}m${two(whole % 60)}s`;
  const minutes = Math.round(s / 60);
  if (minutes < 100 * 60) return `${Math.floor(minutes / 60)}h${two(minutes % 60)}m`;
  const hours = Math.round(s / 3_600);
  return `${Math.floor(hours / 24)}d${hours % 24}h`;
}

/** An age in whole seconds, for what ticks: 14s, 2m10s, 3h02m, 5d. */
export function age(us) {
  const s = Math.max(0, Math.floor(us / 1e6));
  if (s < 60) return `${s}s`;
  if (s < 86_400) return duration(s * 1e6);
  return `${Math.floor(s / 86_400)}d`;
}

/** An offset from the session's start, as the ruler says it. */
export function offset(us, step = 1e6) {
  const sign = us < 0 ? "-" : "+";
  const all = Math.abs(us);
  const s = Math.floor(all / 1e6);
  const base = `${sign}${Math.floor(s / 3_600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
  if (step >= 1e6) return base;
  const digits = step >= 1e5 ? 1 : step >= 1e4 ? 2 : step >= 1e3 ? 3 : 6;
  return `${base}.${String(Math.floor(all % 1e6)).padStart(6, "0").slice(0, digits)}`;
}

/** What tokens would have cost by the configured prices: never a bill, so never without a word that says so. */
export function cost({ estimated, currency, unpriced_tokens: unpriced }) {
  return `≈ ${estimated.toFixed(2)} ${currency} est.${unpriced ? ` (${count(unpriced)} tok unpriced)` : ""}`;
}

/** 1.2M, 31k, 470. */
export function count(n) {
  if (n == null) return "–";
  if (n < 1_000) return String(n);
  if (n < 9_950) return `${(n / 1_000).toFixed(1)}k`;
  if (n < 999_500) return `${Math.round(n / 1_000)}k`;
  return `${(n / 1e6).toFixed(1)}M`;
}

/** 48 KB, 5.0 MB. */
export function bytes(n) {
  if (n == null) return "–";
  if (n < 1_024) return `${n} B`;
  if (n < 1_048_576) return `${Math.round(n / 1_024)} KB`;
  if (n < 1_073_741_824) return `${(n / 1_048_576).toFixed(1)} MB`;
  return `${(n / 1_073_741_824).toFixed(2)} GB`;
}

/** Clock time of the person's zone, with milliseconds. */
export function clock(us) {
  const d = new Date(us / 1_000);
  const ms = String(d.getMilliseconds()).padStart(3, "0");
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}.${ms}`;
}

/** Date and minute. */
export function date(us) {
  const d = new Date(us / 1_000);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}`;
}

/** `3 turns`, `1 turn`. */
export function plural(n, word) {
  return `${n} ${word}${n === 1 ? "" : "s"}`;
}
