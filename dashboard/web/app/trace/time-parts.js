// What a turn's time went into, as shares of a bar.

/** The parts in the order in which they are drawn, and what people call them. */
export const LABELS = {
  thinking: "thinking", responding: "responding", tools: "tools", shell: "shell", mcp: "mcp", edits: "edits", subagent: "subagent",
  wait: "wait (derived)", hooks: "other hooks", other: "unaccounted",
};
export const PARTS = Object.keys(LABELS);

/** A part of a whole, in words. */
export const share = (us, all) => (us < all / 200 ? "<1%" : `${Math.round((us / all) * 100)}%`);

/** The shares of a turn's time as a background. */
export function mix(parts, direction = "90deg") {
  const sum = PARTS.reduce((all, key) => all + parts[`${key}_us`], 0);
  if (!(sum > 0)) return undefined;
  let at = 0;
  const stops = [];
  for (const key of PARTS) {
    const us = parts[`${key}_us`];
    if (!us) continue;
    const to = at + (us / sum) * 100;
    stops.push(`var(--k-${key}) ${at.toFixed(1)}% ${to.toFixed(1)}%`);
    at = to;
  }
  return `linear-gradient(${direction}, ${stops.join(", ")})`;
}
