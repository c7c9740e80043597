import assert from "node:assert/strict";
import { test } from "node:test";
import { age, bytes, count, duration, offset } from "../../app/format/quantity.js";

const check = (format, cases) => {
  for (const [input, expected] of cases) assert.equal(format(input), expected, String(input));
};

test("durations", () => check(duration, [
  [0, "0ms"], [302, "302µs"], [63_000, "63ms"], [999_600, "1.0s"], [20_100_000, "20.1s"], [59_960_000, "1m00s"],
  [358e6, "5m58s"], [3_599.6e6, "1h00m"], [7_800e6, "2h10m"], [3_600e6 * 57.99, "57h59m"], [3_600e6 * 124, "5d4h"], [-1, "…"], [null, "…"],
]));

test("ages are whole seconds", () => check(age, [[-5, "0s"], [14.9e6, "14s"], [130e6, "2m10s"], [10_920e6, "3h02m"], [500_000e6, "5d"]]));

test("offsets", () => {
  assert.equal(offset(405e6), "+0:06:45");
  assert.equal(offset(405_250_000, 5e4), "+0:06:45.25");
  assert.equal(offset(-2e6), "-0:00:02");
});

test("counts and bytes", () => {
  check(count, [[470, "470"], [1_500, "1.5k"], [31_000, "31k"], [1_234_567, "1.2M"], [null, "–"]]);
  check(bytes, [[12, "12 B"], [49_152, "48 KB"], [5_242_880, "5.0 MB"]]);
});
