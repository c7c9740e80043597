// What a turn's time went into, as shares of a bar.

const PARTS = ["thinking", "responding", "tools", "shell", "mcp", "edits", "subagent", "wait", "hooks", "other"];

/** The shares of a turn's time as a background. */
export function mix(parts) {
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
  return `linear-gradient(90deg, ${stops.join(", ")})`;
}
