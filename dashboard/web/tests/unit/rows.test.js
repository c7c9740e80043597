import assert from "node:assert/strict";
import { test } from "node:test";
import { ERROR, TENTATIVE } from "../../app/trace/columns.js";
import { criticalPath } from "../../app/trace/critical-path.js";
import { boxes, flame } from "../../app/trace/flame-tree.js";
import { head, visibleRows } from "../../app/trace/rows.js";
import { runningRow } from "../../app/session/following.js";
import { subagentOf, subtree } from "../../app/trace/subtree.js";
import { byTool } from "../../app/trace/tool-totals.js";
import { trace } from "./trace.js";

const SESSION = [
  [0, "session", "session", 0, 1_000],
  [1, "turn", "turn 1 look", 0, 500],
  [2, "tools", "Read a.rs", 10, 5],
  [2, "tools", "Read b.rs", 20, 5],
  [2, "tools", "Read c.rs", 30, 5],
  [2, "tools", "Read d.rs", 40, 5],
  [2, "tools", "Read e.rs", 50, 5, ERROR],
  [2, "tools", "Read f.rs", 60, 5],
  [2, "tools", "Delegate", 100, 350],
  [3, "subagent", "explore it", 110, 300],
  [4, "shell", "Shell make", 120, 100],
  [4, "shell", "Shell make", 230, 100],
  [4, "shell", "Shell make check", 340, 10],
  [4, "shell", "Shell make clean", 355, 10],
];

test("equal calls in a row are one row, failures stand alone, and other commands are not equal", () => {
  const one = trace(SESSION);
  const { rows, groups } = visibleRows(one, new Set(), null, 0, new Set());
  assert.deepEqual([...groups], [[2, { last: 6, count: 4, open: false }]]);
  assert.deepEqual(rows, [0, 1, 2, 6, 7, 8, 9, 10, 11, 12, 13]);
  const open = visibleRows(one, new Set(), null, 0, new Set([one.row[2]]));
  assert.deepEqual(open.rows, SESSION.map((_, i) => i));
  assert.equal(visibleRows(one, new Set(), null, 0).groups.size, 0);
});

test("a filter shows every match by itself", () => {
  const one = trace(SESSION);
  const hit = new Uint8Array(one.n);
  hit[3] = hit[4] = 1;
  assert.deepEqual(visibleRows(one, new Set(), hit, 0, new Set()).rows, [0, 1, 3, 4]);
});

test("the tool is the first word", () => {
  assert.equal(head("Read src/a.rs"), "Read");
  assert.equal(head("thought"), "thought");
  assert.equal(head(""), "");
});

test("a subtree is a trace of its own with the same keys and times", () => {
  const one = trace(SESSION);
  const part = subtree(one, 9);
  assert.equal(part.n, 5);
  assert.deepEqual([...part.parent], [-1, 0, 0, 0, 0]);
  assert.deepEqual([...part.depth], [0, 1, 1, 1, 1]);
  assert.deepEqual([...part.last], [5, 2, 3, 4, 5]);
  assert.equal(part.row[1], one.row[10]);
  assert.equal(part.start[1], one.start[10]);
  assert.equal(part.index.get(one.row[12]), 3);
  assert.equal(one.parent[9], 8, "the whole is not touched");
});

test("the subagent of a row is the nearest one above, or the one a call started", () => {
  const one = trace(SESSION);
  assert.equal(subagentOf(one, 11), 9);
  assert.equal(subagentOf(one, 9), 9);
  assert.equal(subagentOf(one, 8), 9);
  assert.equal(subagentOf(one, 3), -1);
  assert.equal(subagentOf(one, -1), -1);
});

test("the critical path goes back from the end through what ended last, and its times sum to the whole", () => {
  const one = trace([
    [0, "turn", "turn 1", 0, 100],
    [1, "tools", "short", 0, 30],
    [1, "tools", "long", 5, 60],
    [1, "shell", "after", 70, 20],
    [1, "tools", "hidden", 72, 5],
  ]);
  const { marked, steps, own } = criticalPath(one, 0, 0);
  assert.deepEqual([...marked], [1, 1, 1, 1, 0]);
  assert.deepEqual(steps.map(({ i, us }) => [i, us]), [[1, 5_000], [2, 60_000], [3, 20_000]]);
  assert.equal(own, 15_000);
  assert.equal(own + steps.reduce((sum, step) => sum + step.us, 0), 100_000);
});

test("a path into a subagent names what ran inside it", () => {
  const one = trace(SESSION);
  const { steps, own } = criticalPath(one, 1, 0);
  assert.equal(own + steps.reduce((sum, step) => sum + step.us, 0), 500_000);
  assert.ok(steps.some(({ i }) => i === 10) && steps.some(({ i }) => i === 11));
});

test("a flame graph puts equal paths together and never draws children beyond their parent", () => {
  const one = trace([
    [0, "session", "session", 0, 200],
    [1, "turn", "turn 1", 0, 50],
    [2, "shell", "Shell make", 0, 40],
    [2, "shell", "Shell make", 0, 40, ERROR],
    [1, "turn", "turn 2", 100, 50],
    [2, "tools", "Read a", 100, 10],
  ]);
  const root = flame(one, 0);
  assert.equal(root.us, 100_000);
  assert.equal(root.children[0].count, 2);
  const make = root.children[0].children[0];
  assert.deepEqual([make.name, make.us, make.count, make.errors], ["Shell make", 80_000, 2, 1]);
  const drawn = boxes(root);
  assert.equal(drawn.length, 4);
  for (const { x, w } of drawn) assert.ok(x >= 0 && x + w <= 1 + 1e-9, `${x} ${w}`);
  assert.equal(boxes(root, { max: 2 }).length, 2);
});

test("calls that are too narrow to read share one box of the flame graph, and none of their time is lost", () => {
  const one = trace([[0, "session", "session", 0, 2_000], [1, "turn", "turn 1", 0, 2_000], [2, "shell", "Shell long", 0, 1_000],
    ...Array.from({ length: 50 }, (_, i) => [2, "tools", `Read ${i}`, 1_000 + i * 20, 20])]);
  const drawn = boxes(flame(one, 0));
  assert.equal(drawn.length, 4);
  const [rest] = drawn.filter(({ node }) => node.name === "50 others");
  assert.deepEqual([rest.node.us, rest.node.count, rest.node.kind, rest.w], [1_000_000, 50, "tools", 0.5]);
});

test("a call that repeats the failure of its subagent is no failure of its own", () => {
  const one = trace([[0, "turn", "turn 1", 0, 100], [1, "tools", "Task look", 0, 90, ERROR], [2, "subagent", "explore", 0, 90, ERROR]]);
  one.flags[1] = TENTATIVE;
  assert.equal(byTool(one, 0).reduce((sum, row) => sum + row.errors, 0), 1);
  assert.equal(flame(one, 0).children[0].children[0].errors, 0);
});

test("the row that runs is the innermost of the newest", () => {
  const one = trace([[0, "session", "session", 0, -1], [1, "turn", "turn 1", 0, -1], [2, "subagent", "explore", 5, -1], [3, "shell", "make", 9, -1], [2, "tools", "Read", 20, 1]]);
  assert.equal(runningRow(one), 3);
  assert.equal(runningRow(trace(SESSION)), -1);
});

test("sums per tool count calls, failures and time", () => {
  const sums = byTool(trace(SESSION), 0);
  assert.deepEqual(sums.find((row) => row.name === "Read"), { name: "Read", kind: "tools", n: 6, errors: 1, us: 30_000 });
  assert.equal(sums[0].name, "Delegate");
  assert.ok(!sums.some((row) => row.kind === "turn"));
});
