// A trace for tests.
import { decode, OK } from "../../app/trace/columns.js";

/** Makes a trace from `[depth, kind, label, start, duration, status, flags]` rows in pre-order. Times are milliseconds. */
export function trace(lines) {
  const strs = [...new Set(lines.map(([, , label]) => label))];
  const kinds = [...new Set(lines.map(([, kind]) => kind))];
  const last = [];
  const up = lines.map(([depth], i) => {
    last[depth] = i;
    return depth === 0 ? 0 : i - last[depth - 1];
  });
  const starts = lines.map(([, , , start]) => start * 1_000);
  return decode({
    n: lines.length, rev: 1, total: lines.length, t0_us: 0, strs, kinds, up, wait: [],
    row: lines.map((_, i) => (i === 0 ? 10 : 1)),
    label: lines.map(([, , label]) => strs.indexOf(label)),
    kind: lines.map(([, kind]) => kinds.indexOf(kind)),
    start_us: starts.map((us, i) => us - (i === 0 ? 0 : starts[i - 1])),
    dur_us: lines.map(([, , , , ms]) => ms * 1_000),
    status: lines.map(([, , , , , status]) => status ?? OK),
    flags: lines.map(([, , , , , , flags]) => flags ?? 0),
  });
}
