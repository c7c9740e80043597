import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { age, bytes, cost, count, duration, plural, tokenTotal } from "../../app/format/quantity.js";
import { clock, date, offset } from "../../app/format/time.js";

// Times of day are in the browser's zone, and the test cases are in UTC.
process.env.TZ = "UTC";
const corpus = JSON.parse(readFileSync(new URL("../corpus/quantities.json", import.meta.url), "utf8"));

for (const [name, show] of Object.entries({ duration, age, count, bytes, clock })) {
  test(`${name} reads as it does in the terminal`, () => {
    assert.ok(corpus[name].length > 2);
    for (const [given, expected] of corpus[name]) assert.equal(show(given), expected, `${name} of ${given}`);
  });
}

test("no duration below a thousand days takes more than six characters, and a longer one never reads as a shorter one", () => {
  const units = { "µs": 1, ms: 1e3, s: 1e6, m: 60e6, h: 3_600e6, d: 86_400e6 };
  const value = (text) => [...text.matchAll(/([\d.]+)(µs|ms|[smhd])/g)].reduce((sum, [, n, unit]) => sum + Number(n) * units[unit], 0);
  let before = -1;
  for (let us = 0; us < 999 * 86_400e6; us = Math.ceil(us * 1.0007) + 1) {
    const text = duration(us);
    assert.ok(text.length <= 6, `${us}: ${text}`);
    assert.ok(value(text) >= before, `${us}: ${text} after ${before} µs`);
    before = value(text);
  }
});

test("what is unknown or open is a sign, not a number", () => {
  for (const us of [null, undefined, -1]) assert.equal(duration(us), "…");
  assert.equal(count(null), "–");
  assert.equal(bytes(undefined), "–");
  assert.equal(count(tokenTotal({ input: null, output: null })), "–");
  assert.equal(tokenTotal({ input: null, output: 7 }), 7);
  assert.equal(tokenTotal({ input: 0, output: 0 }), 0);
});

test("offsets", () => {
  assert.equal(offset(405e6), "+0:06:45");
  assert.equal(offset(405_250_000, 5e4), "+0:06:45.25");
  assert.equal(offset(-2e6), "-0:00:02");
});

test("dates, plurals and estimates", () => {
  assert.equal(date(1_767_189_731_204_000), "2025-12-31 14:02");
  assert.deepEqual([plural(1, "turn"), plural(3, "turn"), plural(73_285, "span")], ["1 turn", "3 turns", "73,285 spans"]);
  assert.equal(cost({ estimated: 0, currency: "USD", unpriced_tokens: 31_000 }), "– (31.0k tok unpriced)", "no price is no zero");
  assert.equal(cost({ estimated: 0, currency: "USD", unpriced_tokens: 0 }), "≈ 0.00 USD est.");
  assert.equal(cost({ estimated: 1.005, currency: "USD", unpriced_tokens: 31_000 }), "≈ 1.00 USD est. (31.0k tok unpriced)");
});
