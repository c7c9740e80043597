// Computes the parts of a card on Now. Pure.
/** @import { Strip } from "../../types/answers" */

/**
 * Marks on the gauge in percent. Its scale ends at 1.4 times the 95th percentile, or at the call's duration.
 * @param {number} took @param {number | null} p50 @param {number | null} p95
 */
export function gauge(took, p50, p95) {
  if (p50 === null || p95 === null) return { took: 0, p50: null, p95: null };
  const scale = Math.max(1, 1.4 * p95, took);
  /** @param {number} us */
  const place = (us) => Math.round((Math.max(0, us) / scale) * 1_000) / 10;
  return { took: place(took), p50: place(p50), p95: place(p95) };
}

/**
 * The columns of a strip: height, colour, words. Parallel kinds share a column.
 * @param {Strip} strip @returns {{ height: number, paint: string | undefined, words: string }[]}
 */
export function stack({ lanes }) {
  const length = lanes[0]?.busy.length ?? 60;
  return Array.from({ length }, (_, i) => {
    // A subagent's calls count as their own kinds; only the rest is its own time.
    const own = lanes.filter((lane) => lane.kind !== "subagent").reduce((sum, lane) => sum + lane.busy[i], 0);
    const parts = lanes.map((lane) => ({ kind: lane.kind, share: lane.kind === "subagent" ? Math.max(0, lane.busy[i] - own) : lane.busy[i] })).filter(({ share }) => share > 0);
    const sum = parts.reduce((all, { share }) => all + share, 0);
    let at = 0;
    const stops = parts.map(({ kind, share }) => {
      const from = at;
      at += (share / sum) * 100;
      return `var(--k-${kind}) ${from.toFixed(1)}% ${at.toFixed(1)}%`;
    });
    return {
      height: Math.min(100, sum),
      paint: stops.length ? `linear-gradient(0deg, ${stops.join(", ")})` : undefined,
      words: parts.map(({ kind, share }) => `${kind} ${share} %`).join(", "),
    };
  });
}
