import assert from "node:assert/strict";
import { test } from "node:test";
import { columns, day, daysBetween, inUtc, midnight } from "../../app/format/local-days.js";
import { align, byModel } from "../../app/pages/alignment.js";
import { bounds } from "../../app/pages/calendar.js";
import { blocks } from "../../app/pages/file-blocks.js";
import { stack } from "../../app/pages/sums.js";
import { csv } from "../../app/ui/csv.js";

// Node reads TZ when it starts a date calculation, so a zone can be set within a test.
function within(zone, check) {
  const before = process.env.TZ;
  process.env.TZ = zone;
  try {
    check();
  } finally {
    if (before === undefined) delete process.env.TZ;
    else process.env.TZ = before;
  }
}

test("days are those of the browser's zone, also where the clock changes", () => {
  for (const [zone, from, expected] of [
    ["UTC", "2026-03-28T00:00:00Z", "1440*3"],
    ["Europe/Berlin", "2026-03-27T23:00:00Z", "1440,1380,1440"],
    ["America/New_York", "2026-10-31T04:00:00Z", "1440,1500,1440"],
    ["Asia/Kathmandu", "2026-03-27T18:15:00Z", "1440*3"],
    ["Australia/Lord_Howe", "2026-04-03T13:00:00Z", "1440,1470,1440"],
  ]) {
    within(zone, () => {
      const start = Date.parse(from) * 1_000;
      assert.equal(midnight(start), start, zone);
      const end = midnight(start, 3);
      assert.equal(columns(start, end), expected, zone);
      assert.equal(daysBetween(start, end), 3, zone);
      assert.equal(day(end - 1), day(midnight(start, 2)), zone);
    });
  }
});

test("weeks are columns of seven days, and the last one is whole", () => {
  within("UTC", () => assert.equal(columns(0, 10 * 86_400e6, 7), `${7 * 1_440}*2`));
});

test("a day east of Greenwich is not the one before, just after its midnight", () => {
  // As reported of other dashboards: local midnight that goes through UTC becomes the day before, and the day before it two days.
  within("Asia/Manila", () => {
    const now = Date.parse("2026-09-04T16:30:00Z") * 1_000;
    assert.equal(day(now), "2026-09-05");
    assert.equal(day(midnight(now, -1)), "2026-09-04");
  });
  within("Asia/Tokyo", () => assert.equal(inUtc("from:2026-08-29 to:2026-09-01"), "from:2026-08-28T15:00:00.000Z to:2026-09-01T14:59:59.999Z"));
});

test("quarters of a day end when the clock says so, also on the day of a change", () => {
  within("Europe/Berlin", () => {
    const days = [midnight(Date.parse("2026-10-24T12:00:00Z") * 1_000), midnight(Date.parse("2026-10-26T12:00:00Z") * 1_000)];
    assert.equal(columns(days[0], days[1], 0.25), "360*4,420,360*3");
    assert.equal(columns(days[0], days[1], 1 / 24), "60*49");
  });
  within("Asia/Kathmandu", () => {
    const start = midnight(Date.parse("2026-10-24T12:00:00Z") * 1_000);
    assert.equal(columns(start, midnight(start, 1), 0.25), "360*4");
  });
});

test("days in a search are those of the browser's zone, and nothing else is changed", () => {
  within("America/New_York", () => {
    assert.equal(inUtc("cargo from:2026-11-01 to:2026-11-01"), "cargo from:2026-11-01T04:00:00.000Z to:2026-11-02T04:59:59.999Z");
  });
  within("Europe/Berlin", () => {
    assert.equal(inUtc("from:2026-03-29"), "from:2026-03-28T23:00:00.000Z");
    assert.equal(inUtc("to:2026-03-29 x"), "to:2026-03-29T21:59:59.999Z x");
    for (const same of ["from:2026-11-30T09:15:00Z", "xfrom:2026-11-30", '"from:2026-11-30"', "from:yesterday"]) assert.equal(inUtc(same), same);
  });
});

test("cells of a file are text, and no spreadsheet runs them", () => {
  assert.equal(csv(["a"], [["＝1+1"], ["＠x"]]), "a\r\n'＝1+1\r\n'＠x\r\n");
  const rows = [["=1+1", "a,b", 'say "x"'], ["-5", -5, null], ["line\nbreak", "+x", "@y"]];
  assert.equal(csv(["a", "b", "c"], rows), "a,b,c\r\n'=1+1,\"a,b\",\"say \"\"x\"\"\"\r\n'-5,-5,\r\n\"line\nbreak\",'+x,'@y\r\n");
});

const turn = (n, prompt, more = {}) => ({ n, prompt, model: "m", dur_us: 1, tokens: null, ...more });

test("turns are paired by what was asked, and else by their place", () => {
  const a = [turn(1, "fix the lamp"), turn(2, "add a test for the lamp"), turn(3, "write the docs")];
  const b = [turn(1, "hello"), turn(2, "please fix the lamp"), turn(3, "write the docs now"), turn(4, "thanks")];
  assert.deepEqual(align(a, b).map(([x, y]) => [x?.n ?? null, y?.n ?? null]), [[null, 1], [1, 2], [2, null], [3, 3], [null, 4]]);
  assert.deepEqual(align([turn(1, null)], [turn(1, null)]).map(([x, y]) => [x.n, y.n]), [[1, 1]]);
  assert.deepEqual(align([], [turn(1, "x")]).map(([x, y]) => [x, y.n]), [[null, 1]]);
});

test("what models did counts what is known, and 0 only where it was told", () => {
  const models = byModel([turn(1, "", { dur_us: null }), turn(2, "", { dur_us: 5, tokens: { input: 0, output: null } })], [turn(1, "", { model: null })]);
  assert.deepEqual(models, [
    { name: "m", sides: [{ turns: 2, us: 5, input: 0, output: null }, { turns: 0, us: null, input: null, output: null }] },
    { name: null, sides: [{ turns: 0, us: null, input: null, output: null }, { turns: 1, us: 1, input: null, output: null }] },
  ]);
});

test("a block of touches ends with its session and at a long pause", () => {
  const touch = (session, minutes) => ({ session, at_us: minutes * 60e6 });
  const found = blocks([touch("a", 0), touch("a", 5), touch("b", 6), touch("a", 7), touch("a", 70)]);
  assert.deepEqual(found.map((one) => [one.session, one.touches.length, one.gap_us]), [["a", 2, null], ["b", 1, 60e6], ["a", 1, 60e6], ["a", 1, 63 * 60e6]]);
});

test("shades are fifths of the days that have something", () => {
  assert.deepEqual(bounds([0, 0, 1, 2, 3, 4, 5]), [2, 3, 4, 5]);
  assert.deepEqual(bounds([0, 0]), [Infinity, Infinity, Infinity, Infinity]);
});

test("a column's colours are its shares, and kinds have no tokens", () => {
  const parts = Object.fromEntries(["thinking", "responding", "tools", "shell", "mcp", "edits", "subagent", "wait", "hooks", "other"].map((key) => [`${key}_us`, key === "shell" ? 7 : 0]));
  const column = { from_us: 0, to_us: 1, turns: 1, errors: 0, active_us: 7, parts, input_tokens: 3, output_tokens: null, cost: null, shares: [{ of: 0, active_us: 5, turns: 1, tokens: 3, cost: null }, { of: null, active_us: 2, turns: 1, tokens: null, cost: null }] };
  const data = { total: { cost: null }, items: [{ project: "api" }], models: [{ model: null }], days: [column] };
  const time = stack(data, "project", "time");
  assert.deepEqual(time.columns[0].parts.map((one) => [one.name, one.tone, one.value]), [["api", "tone-0", 5], ["others", "tone-rest", 2]]);
  assert.deepEqual([stack(data, "project", "tokens").columns[0].sum, stack(data, "project", "cost").known], [3, false]);
  assert.ok(stack(data, "kind", "tokens").refused);
  assert.deepEqual(stack(data, "kind", "time").legend.map((one) => one.tone), ["k-shell"]);
  assert.equal(stack(data, "model", "time").legend[0].name, "not named");
});
