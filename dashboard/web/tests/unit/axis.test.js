import assert from "node:assert/strict";
import { test } from "node:test";
import { axis, gaps, ticks, toTime, toX } from "../../app/waterfall/axis.js";

const S = 1e6;

const near = (found, expected, why) => assert.ok(Math.abs(found - expected) < 1e-6, `${why ?? ""} ${found}, not ${expected}`);

test("gaps are what no interval covers", () => {
  assert.deepEqual(gaps([[0, 10 * S], [200 * S, 210 * S], [5 * S, 100 * S]]), [[100 * S, 200 * S]]);
  assert.deepEqual(gaps([[0, 10 * S], [60 * S, 70 * S]]), [], "shorter than a minute");
  assert.deepEqual(gaps([]), []);
});

test("without cuts the axis is linear", () => {
  const a = axis(0, 100 * S, 500);
  near(toX(a, 0), 0);
  near(toX(a, 50 * S), 250);
  near(toX(a, 100 * S), 500);
  near(toX(a, 200 * S), 1_000, "beyond the edge");
  near(toTime(a, 250), 50 * S);
});

test("a cut has a fixed width and what is around it one scale", () => {
  const a = axis(0, 3_700 * S, 1_024, [[50 * S, 3_650 * S]]);
  near(toX(a, 50 * S), 500);
  near(toX(a, 3_650 * S), 524);
  near(toX(a, 3_700 * S), 1_024);
  near(toX(a, 1_850 * S), 512, "half way through the cut");
});

test("many cuts take at most a fifth of the width", () => {
  const cuts = Array.from({ length: 100 }, (_, i) => [(i * 200 + 10) * S, (i * 200 + 190) * S]);
  const a = axis(0, 20_000 * S, 600, cuts);
  const cut = a.parts.filter((p) => p.cut).reduce((sum, p) => sum + (p.t1 - p.t0) * p.scale, 0);
  assert.ok(cut <= 120.001, String(cut));
  assert.ok(Math.abs(toX(a, 20_000 * S) - 600) < 0.01);
});

test("pixels and times are each other's inverse, within cuts too", () => {
  const a = axis(7 * S, 9_000 * S, 777, [[100 * S, 900 * S], [2_000 * S, 8_000 * S]]);
  for (let t = 7 * S; t <= 9_000 * S; t += 33 * S) {
    assert.ok(Math.abs(toTime(a, toX(a, t)) - t) < 1, String(t));
  }
});

test("a window inside a gap shows the gap as it is", () => {
  const a = axis(200 * S, 300 * S, 100, [[100 * S, 900 * S]]);
  near(toX(a, 250 * S), 50);
});

test("ticks are round, apart, and never in a cut", () => {
  for (const [from, to, cuts] of [
    [0, 100 * S, []],
    [0, 3_700 * S, [[50 * S, 3_650 * S]]],
    [3 * S, 3.002 * S, []],
    [0, 60 * 3_600 * S, [[3_600 * S, 50 * 3_600 * S]]],
  ]) {
    const a = axis(from, to, 900, cuts);
    const { step, ticks: marks } = ticks(a, 90);
    assert.ok(marks.length >= 2, `${from} ${to}: ${marks.length}`);
    let last = -Infinity;
    for (const { t, x } of marks) {
      assert.ok(Math.abs(x - toX(a, t)) < 1, "a tick stands where its time is drawn");
      assert.ok(x - last >= 80, "apart");
      assert.ok(!cuts.some(([lo, hi]) => t > lo && t < hi), "not in a cut");
      assert.ok(t % step === 0 || t % S === 0, `${t} is round`);
      last = x;
    }
  }
});

test("an empty or reversed window still has an axis", () => {
  for (const [from, to] of [[5, 5], [9, 3], [0, 0]]) assert.ok(toX(axis(from, to, 100), from) === 0);
});
