// Pairs the turns of two sessions. Pure.
/** @import { Turn } from "../../types/answers" */

/** More turns are paired by number: the table of all pairs would grow too large. */
const COMPARED_MAX = 600;

/** The words of a prompt. @param {Turn} turn */
const words = (turn) => new Set((turn.prompt ?? "").toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []);

/** How much two prompts have in common: 0 to 1. @param {Set<string>} a @param {Set<string>} b */
export function likeness(a, b) {
  if (!a.size || !b.size) return 0;
  let both = 0;
  for (const word of a) if (b.has(word)) both += 1;
  return both / (a.size + b.size - both);
}

/** Prompts with less in common are not the same request. */
const ALIKE = 0.4;

/**
 * Pairs in order: first turns with similar prompts, so that the total similarity is greatest; between two such pairs
 * turn by turn.
 * @param {Turn[]} a @param {Turn[]} b @returns {[Turn | null, Turn | null][]}
 */
export function align(a, b) {
  /** @type {[Turn | null, Turn | null][]} */
  const out = [];
  let [i, j] = [0, 0];
  /** @param {number} toI @param {number} toJ */
  const fill = (toI, toJ) => {
    while (i < toI || j < toJ) out.push([i < toI ? a[i++] : null, j < toJ ? b[j++] : null]);
  };
  for (const [x, y] of anchors(a, b)) {
    fill(x, y);
    out.push([a[i++], b[j++]]);
  }
  fill(a.length, b.length);
  return out;
}

/** @param {Turn[]} a @param {Turn[]} b @returns {[number, number][]} */
function anchors(a, b) {
  if (a.length * b.length > COMPARED_MAX * COMPARED_MAX) return [];
  const [first, second] = [a.map(words), b.map(words)];
  // best[i][j]: the greatest similarity of the turns from i and from j on.
  const best = Array.from({ length: a.length + 1 }, () => new Float64Array(b.length + 1));
  /** @param {number} i @param {number} j */
  const score = (i, j) => {
    const value = likeness(first[i], second[j]);
    return value >= ALIKE ? value : 0;
  };
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const own = score(i, j);
      best[i][j] = Math.max(best[i + 1][j], best[i][j + 1], own ? own + best[i + 1][j + 1] : 0);
    }
  }
  /** @type {[number, number][]} */
  const pairs = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    const own = score(i, j);
    if (own && best[i][j] === own + best[i + 1][j + 1]) {
      pairs.push([i, j]);
      i += 1;
      j += 1;
    } else if (best[i][j] === best[i + 1][j]) i += 1;
    else j += 1;
  }
  return pairs;
}

/** What each model did on both sides. Time and tokens are sums over turns that report them.
 * @param {Turn[][]} both */
export function byModel(...both) {
  const empty = () => ({ turns: 0, us: /** @type {number | null} */ (null), input: /** @type {number | null} */ (null), output: /** @type {number | null} */ (null) });
  /** @type {Map<string | null, ReturnType<typeof empty>[]>} */
  const models = new Map();
  for (const [side, turns] of both.entries()) {
    for (const turn of turns) {
      const sides = models.get(turn.model) ?? both.map(empty);
      models.set(turn.model, sides);
      const sum = sides[side];
      sum.turns += 1;
      if (turn.dur_us !== null) sum.us = (sum.us ?? 0) + turn.dur_us;
      if (turn.tokens?.input != null) sum.input = (sum.input ?? 0) + turn.tokens.input;
      if (turn.tokens?.output != null) sum.output = (sum.output ?? 0) + turn.tokens.output;
    }
  }
  return [...models].map(([name, sides]) => ({ name, sides })).sort((x, y) => y.sides[0].turns + y.sides[1].turns - x.sides[0].turns - x.sides[1].turns);
}
