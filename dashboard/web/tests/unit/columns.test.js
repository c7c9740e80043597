import assert from "node:assert/strict";
import { test } from "node:test";
import { decode, ERROR, merge } from "../../app/trace/columns.js";
import { matches, parse, withTerm } from "../../app/trace/filter.js";
import { busy, visibleRows } from "../../app/trace/rows.js";

const S = 1e6;

/** Makes an answer of the API from rows of `[row, parent row, kind, label, start, dur, status]` in pre-order. */
function answer(rows, { delta = false, rev = 1, total = rows.length, t0 = 1_000 * S } = {}) {
  const strs = [...new Set(rows.map((row) => row[3]))];
  const kinds = [...new Set(rows.map((row) => row[2]))];
  const at = new Map(rows.map((row, i) => [row[0], i]));
  const diff = (values) => values.map((value, i) => value - (i ? values[i - 1] : 0));
  return {
    v: 1, rev, n: rows.length, total, t0_us: t0, kinds, strs,
    row: diff(rows.map((row) => row[0])),
    label: rows.map((row) => strs.indexOf(row[3])),
    kind: rows.map((row) => kinds.indexOf(row[2])),
    up: delta ? [] : rows.map((row, i) => (row[1] ? i - at.get(row[1]) : 0)),
    ...(delta ? { parent: rows.map((row) => row[1]) } : {}),
    start_us: diff(rows.map((row) => row[4])),
    dur_us: rows.map((row) => row[5]),
    status: rows.map((row) => row[6] ?? 0),
    flags: rows.map(() => 0),
    wait: [],
  };
}

const STORY = [
  [1, 0, "session", "session", 0, 500 * S],
  [2, 1, "turn", "turn 1", 0, 100 * S],
  [4, 2, "shell", "Shell cargo test", 10 * S, 20 * S, ERROR],
  [5, 2, "subagent", "explore", 40 * S, 50 * S],
  [6, 5, "tools", "Read a", 41 * S, 1 * S],
  [3, 1, "turn", "turn 2", 400 * S, 100 * S],
  [7, 3, "shell", "Shell cargo test", 410 * S, -1, 2],
];

const labels = (trace, rows) => rows.map((i) => (i < 0 ? "idle" : trace.strs[trace.label[i]]));

test("columns become depth, ends of subtrees and times", () => {
  const trace = decode(answer(STORY));
  assert.deepEqual([...trace.depth], [0, 1, 2, 2, 3, 1, 2]);
  assert.deepEqual([...trace.last], [7, 5, 3, 5, 5, 7, 7]);
  assert.deepEqual([...trace.row], [1, 2, 4, 5, 6, 3, 7]);
  assert.equal(trace.start[6], 410 * S);
  assert.equal(trace.dur[6], -1);
});

test("a delta changes, adds and moves rows as a full answer would", () => {
  const base = decode(answer(STORY));
  const changed = [
    [7, 3, "shell", "Shell cargo test", 410 * S, 30 * S],
    [8, 3, "mcp", "search", 405 * S, 2 * S],
    [6, 2, "tools", "Read a", 41 * S, 1 * S],
  ];
  const merged = merge(base, answer(changed, { delta: true, rev: 2, total: 8 }));
  const whole = decode(answer([
    ...STORY.slice(0, 4), [6, 2, "tools", "Read a", 41 * S, 1 * S], STORY[5],
    [8, 3, "mcp", "search", 405 * S, 2 * S], [7, 3, "shell", "Shell cargo test", 410 * S, 30 * S],
  ], { rev: 2 }));
  for (const name of ["row", "start", "dur", "status", "parent", "depth", "last"]) {
    assert.deepEqual([...merged[name]], [...whole[name]], name);
  }
  assert.equal(merged.rev, 2);
});

test("a delta may begin before the first row", () => {
  const base = decode(answer(STORY));
  const early = answer([[9, 1, "turn", "turn 0", 0, S]], { delta: true, rev: 2, total: 8, t0: 900 * S });
  const merged = merge(base, early);
  assert.equal(merged.t0, 900 * S);
  assert.deepEqual([...merged.row], [1, 9, 2, 4, 5, 6, 3, 7]);
  assert.equal(merged.start[merged.index.get(2)], 100 * S);
});

test("a total that does not fit means a removal: all is to be read again", () => {
  const base = decode(answer(STORY));
  assert.equal(merge(base, answer([], { delta: true, total: 6 })), null);
  assert.equal(merge(base, answer([[9, 1, "turn", "x", 0, 1]], { delta: true, total: 7 })), null);
  assert.equal(merge(base, answer([], { delta: true, rev: 9, total: 7 })).rev, 9);
});

test("rows in a circle are shown, not lost", () => {
  const base = decode(answer(STORY));
  const circle = [[2, 5, "turn", "turn 1", 0, 100 * S], [5, 2, "subagent", "explore", 40 * S, 50 * S]];
  const merged = merge(base, answer(circle, { delta: true, rev: 2, total: 7 }));
  assert.deepEqual([...merged.row].sort(), [1, 2, 3, 4, 5, 6, 7]);
});

test("folded rows hide what is below, idle time between turns has a row", () => {
  const trace = decode(answer(STORY));
  const shown = visibleRows(trace, new Set([2]), null, 500 * S);
  assert.deepEqual(labels(trace, shown.rows), ["session", "turn 1", "idle", "turn 2", "Shell cargo test"]);
  assert.deepEqual(shown.idle, [[100 * S, 400 * S, 1]]);
  assert.equal(visibleRows(trace, new Set(), null, 500 * S).rows.length, 8);
});

test("a filter keeps matches with their ancestors, whatever is folded", () => {
  const trace = decode(answer(STORY));
  const { hit, count } = matches(trace, parse("read"));
  assert.equal(count, 1);
  const shown = visibleRows(trace, new Set([2]), hit, 0);
  assert.deepEqual(labels(trace, shown.rows), ["session", "turn 1", "explore", "Read a"]);
});

test("terms of a filter must all hold", () => {
  const trace = decode(answer(STORY));
  const count = (text) => matches(trace, parse(text)).count;
  assert.equal(count("cargo"), 2);
  assert.equal(count("cargo status:error"), 1);
  assert.equal(count("status:open"), 1);
  assert.equal(count("kind:shell dur>5s"), 1);
  assert.equal(count("dur<2s"), 1);
  assert.equal(count("cargo nothing"), 0);
  assert.equal(count("tool:Shell"), 2);
  assert.equal(parse("   "), null);
});

test("a term with a minus takes rows away, a flag of a command does not, and a term replaces its opposite", () => {
  const trace = decode(answer(STORY));
  const count = (text) => matches(trace, parse(text)).count;
  assert.equal(count("-kind:shell"), trace.n - count("kind:shell"));
  assert.equal(count("cargo -status:error"), 1);
  assert.equal(count("-tool:Shell -kind:turn -kind:session -kind:subagent"), trace.n - count("kind:shell") - count("kind:turn") - count("kind:session") - count("kind:subagent"));
  assert.deepEqual(parse("cargo -p").words, ["cargo", "-p"]);
  assert.deepEqual(parse("KIND:Shell").kind, "shell");
  assert.equal(withTerm("a kind:shell", "-kind:shell"), "a -kind:shell");
  assert.equal(withTerm("-kind:shell", "kind:shell"), "kind:shell");
  assert.equal(withTerm("a", "a"), "a");
});

test("what a turn covers is busy", () => {
  const trace = decode(answer(STORY));
  assert.deepEqual(busy(trace, 0), [[0, 100 * S], [400 * S, 500 * S]]);
});

test("a hundred thousand rows are searched and laid out in a moment", () => {
  const rows = [[1, 0, "session", "session", 0, 1e12]];
  for (let i = 2; i <= 100_000; i += 1) {
    rows.push(i % 100 === 2 ? [i, 1, "turn", `turn ${i}`, i * S, 100 * S] : [i, i - ((i - 2) % 100), "tools", `Read ${i % 400}`, i * S, S]);
  }
  const trace = decode(answer(rows));
  const start = performance.now();
  matches(trace, parse("read 17"));
  visibleRows(trace, new Set(), null, 0);
  assert.ok(performance.now() - start < 500);
});
