import assert from "node:assert/strict";
import { test } from "node:test";
import { ASKS_PERSON, ERROR, OK } from "../../app/trace/columns.js";
import { coverage, usedLanes } from "../../app/waterfall/coverage.js";
import { axis } from "../../app/waterfall/axis.js";
import { Model } from "../../app/waterfall/model.js";
import { rowAt } from "../../app/waterfall/keys.js";
import { about, beyond, fitting } from "../../app/waterfall/row.js";
import { marks } from "../../app/waterfall/ruler.js";
import { fit, TimeWindow } from "../../app/waterfall/time-window.js";
import { Store } from "../../app/ui/store.js";
import { annotations, turnToOpen } from "../../app/session/turns.js";
import { turnsByRow, turnsOf } from "../../app/trace/turns.js";
import { byTool } from "../../app/trace/tool-totals.js";
import { trace } from "./trace.js";

const LINES = [
  [0, "session", "session", 0, 400_000],
  [1, "turn", "turn 1 look", 0, 10_000],
  [2, "tools", "Read a.rs", 1_000, 500],
  [2, "tools", "Read b.rs", 2_000, 500],
  [2, "tools", "Read c.rs", 3_000, 500],
  [2, "tools", "Read d.rs", 4_000, 500],
  [2, "shell", "Shell make", 5_000, 1_000, ERROR],
  [1, "turn", "turn 2 mend", 300_000, 100_000],
  [2, "shell", "Shell make", 310_000, 20_000],
];

function shown(lines = LINES) {
  const model = new Model();
  model.show(trace(lines), 500e6);
  return model;
}

test("rows are the tree with groups and idle gaps, and every span knows its place", () => {
  const model = shown();
  assert.deepEqual(model.rows, [0, 1, 2, 6, -1, 7, 8]);
  assert.deepEqual(model.idle, [[10e6, 300e6, 1]]);
  assert.deepEqual(model.cuts, [[10e6, 300e6]]);
  assert.equal(model.at(6), 3);
  assert.equal(model.at(4), undefined, "within a folded group");
  assert.equal(model.at(undefined), undefined);
  assert.equal(model.groupOf(4), 2);
  assert.equal(model.turnOf(4), 1);
  assert.equal(model.endOfRow(2), 4.5e6, "a group lasts until its last member");
});

test("a row that is hidden by a fold or a group is revealed, and nothing else changes", () => {
  const model = shown();
  model.toggle(1);
  assert.deepEqual(model.rows, [0, 1, -1, 7, 8]);
  assert.equal(model.isExpanded(1), false);
  assert.equal(model.reveal(8), false, "shown already");
  assert.equal(model.reveal(4), true);
  assert.deepEqual(model.rows, [0, 1, 2, 3, 4, 5, 6, -1, 7, 8]);
  assert.equal(model.isExpanded(2), true);
});

test("every change has a version of its own, and a leaf cannot be folded", () => {
  const model = shown();
  const before = model.version;
  assert.equal(model.toggle(6), false);
  assert.equal(model.version, before);
  assert.equal(model.toggle(2), true);
  assert.ok(model.version > before);
  assert.equal(model.rows.length, 10);
});

test("turns fold together and everything unfolds, groups too", () => {
  const model = shown();
  model.foldTurns();
  model.layout();
  assert.deepEqual(model.rows, [0, 1, -1, 7]);
  model.unfoldAll();
  assert.deepEqual(model.rows, [0, 1, 2, 3, 4, 5, 6, -1, 7, 8]);
});

test("the window fits the rows in view; the session and parents that leave the view do not count", () => {
  const model = shown();
  const [from, to] = fit(model, 2, 4);
  assert.ok(from > 0.9e6 && from <= 1e6 && to >= 6e6 && to < 6.1e6, `${from} ${to}`);
  const [, end] = fit(model, 1, 3);
  assert.ok(end < 5e6, "the turn goes on below the view");
  assert.deepEqual(fit(model, 0, 1), model.span, "the session alone");
});

test("while rows scroll the window is fitted at every fourth frame, and a kept window stays", () => {
  const model = shown(Array.from({ length: 200 }, (_, i) => [0, "turn", `turn ${i}`, i * 1_000, 900]));
  const time = new TimeWindow();
  const frame = (first, same = true) => {
    const { range, scrolling } = time.range(model, first, first + 20, same);
    time.place(range, 600, model.cuts);
    return { from: time.axis.from, scrolling };
  };
  frame(0, false);
  const fitted = [1, 2, 3, 4, 5, 6, 7, 8].map((first) => frame(first));
  assert.equal(new Set(fitted.map(({ from }) => from)).size, 2);
  assert.ok(fitted.every(({ scrolling }) => scrolling));
  assert.equal(frame(8).scrolling, false, "the frame after the last one fits exactly");
  time.manual = [5e6, 6e6];
  assert.deepEqual([frame(50).from, time.toggled()], [5e6, null]);
  time.manual = null;
  assert.equal(time.range(model, 50, 70, false).scrolling, false);
});

test("zooming goes to the chosen row when it is in view, else to the middle, and stays within the session", () => {
  const model = shown();
  const time = new TimeWindow();
  assert.equal(time.zoomed(model, 0.5), null, "nothing was drawn yet");
  time.place([0, 400e6], 600, []);
  assert.deepEqual(time.zoomed(model, 0.5), [100e6, 300e6]);
  model.selected = 8;
  assert.deepEqual(time.zoomed(model, 0.5), [200e6, 400e6], "moved away from the end, and as long as asked for");
  // If the window is not at an edge, it grows equally on both sides.
  time.place([0, 10e6], 600, []);
  model.selected = -1;
  assert.deepEqual(time.zoomed(model, 2), [0, 20e6]);
  time.place([390e6, 400e6], 600, []);
  assert.deepEqual(time.zoomed(model, 2), [380e6, 400e6]);
  time.place([0, 400e6], 600, []);
  assert.deepEqual(time.zoomed(model, 2), [0, 400e6], "no further than the session");
});

test("the wheel zooms around the pointer and pans, and a double click fits a row, all within the session", () => {
  const model = shown();
  const time = new TimeWindow();
  assert.equal(time.zoomedAt(model, 5, 0.5), null);
  assert.equal(time.panned(model, 5), null);
  time.place([100e6, 200e6], 600, []);
  assert.deepEqual(time.zoomedAt(model, 125e6, 0.5), [112.5e6, 162.5e6], "a quarter before the pointer, as before");
  assert.deepEqual(time.zoomedAt(model, 200e6, 10), [0, 400e6]);
  assert.deepEqual(time.panned(model, 60), [110e6, 210e6]);
  assert.deepEqual(time.panned(model, -60), [90e6, 190e6]);
  time.place([350e6, 400e6], 600, []);
  assert.deepEqual(time.panned(model, 300), [350e6, 400e6], "no further than the end");
  assert.deepEqual(time.over(model, 8), [309e6, 331e6]);
});

test("what lies beyond the axis says where, and a tooltip says what a row is", () => {
  const scale = axis(100e6, 200e6, 600);
  assert.equal(beyond(scale, 10e6, 40e6), "◂ 1m00s earlier");
  assert.equal(beyond(scale, 260e6, 300e6), "1m00s later ▸");
  assert.equal(beyond(scale, 90e6, 110e6), "");
  const model = shown();
  assert.match(about(model, 6), /^Shell make\n1\.0s · ✕ failed\n\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} – .* · \+0:00:05\.0\n/);
  assert.match(about(model, 2), /^4 × Read\nΣ 2\.0s\n/);
});

test("strips hold the busy share of each pixel and where errors are; a call that delegates is its subagent's", () => {
  const one = trace([
    [0, "turn", "turn 1", 0, 100],
    [1, "tools", "Task", 0, 50],
    [2, "subagent", "explore", 0, 50],
    [1, "shell", "Shell make", 50, 25, ERROR],
  ]);
  const { lanes, errors } = coverage(one, axis(0, 100e3, 4), 4, 0);
  assert.deepEqual(usedLanes(one), ["tools", "shell", "subagent"]);
  assert.deepEqual(lanes.map((lane) => Array.from(lane, (share) => Math.round(share * 1e6) / 1e6)).filter((lane) => lane.some(Boolean)), [[0, 0, 1, 0], [1, 1, 0, 0]]);
  assert.deepEqual([...errors], [0, 0, 1, 0]);
});

test("a question to a person is in the strip of waiting and is no tool's time", () => {
  const one = trace([[0, "turn", "turn 1", 0, 100], [1, "tools", "AskQuestion", 25, 50, OK, ASKS_PERSON]]);
  const { lanes } = coverage(one, axis(0, 100e3, 4), 4, 0);
  assert.deepEqual(usedLanes(one).at(-1), "wait");
  assert.deepEqual(lanes.map((lane) => Math.round(lane.reduce((sum, share) => sum + share, 0))), [0, 0, 0, 0, 0, 0, 2]);
  assert.deepEqual(byTool(one, 0).map(({ name, n, us }) => [name, n, us]), [["AskQuestion", 1, null]]);
});

test("thousands of short calls in a pixel are visible and do not look like a busy one", () => {
  const one = trace([[0, "turn", "turn 1", 0, 10_000], ...Array.from({ length: 900 }, (_, i) => [1, "tools", "Read", i, 0.001])]);
  const [share] = coverage(one, axis(0, 10e6, 10), 10, 0).lanes[1];
  assert.ok(share > 0 && share < 0.1, String(share));
});

test("a session opens at the turn that runs, else at the last with an error, else at the last one", () => {
  const running = trace([...LINES.slice(0, 8), [1, "turn", "turn 3 go on", 400_000, -1]]);
  assert.equal(turnToOpen(running, turnsOf(running)), 8);
  const one = trace(LINES);
  assert.deepEqual(turnsOf(one), [1, 7]);
  assert.equal(turnToOpen(one, [1, 7]), 1);
  assert.equal(turnToOpen(one, [7]), 7);
  assert.equal(turnToOpen(trace([[0, "session", "session", 0, 1]]), []), undefined);
});

test("a turn says its calls, errors and tokens beside its bar", () => {
  const one = trace(LINES);
  const parts = Object.fromEntries(["thinking", "responding", "hooks", "tools", "shell", "mcp", "edits", "subagent", "wait", "other"].map((key) => [`${key}_us`, key === "shell" ? 1 : 0]));
  // The turn's row may begin earlier than the turn, because a child started before it. So turns are matched by number.
  const turn = { n: 2, start_us: 305e6, calls: 1, errors: 2, tokens: { input: 30_000, output: 1_000 }, cost: null, parts };
  const { notes, mixes } = annotations(one, [turn]);
  assert.deepEqual([...notes], [[one.row[7], "1 call · 2 err · 31.0k tok"]]);
  assert.match(mixes.get(one.row[7]), /--k-shell/);
});

test("turns are found by their number, and those of a subagent are not taken for them", () => {
  const one = trace([
    [0, "session", "session", 0, 100],
    [1, "turn", "turn 1 look", 0, 50],
    [2, "subagent", "explore", 10, 20],
    [3, "turn", "turn 1 of the child", 10, 20],
    [1, "turn", "turn", 60, 10],
  ]);
  const found = turnsByRow(one, [{ n: 1 }, { n: 7 }]);
  assert.deepEqual([...found], [[1, { n: 1 }]]);
});

test("a time leads to what ran then: the call, its folded turn, or the next call", () => {
  const model = shown();
  assert.equal(rowAt(model, 5.5e6), 6, "the call that ran");
  assert.equal(rowAt(model, 2.2e6), 2, "a folded group stands for its members");
  assert.equal(rowAt(model, 8e6), 1, "no call ran: the turn that did");
  assert.equal(rowAt(model, 200e6), 7, "nothing ran: what comes next");
  assert.equal(rowAt(model, 450e6), -1);
  model.foldTurns();
  model.layout();
  assert.equal(rowAt(model, 5.5e6), 1, "a folded turn, not the one after it");
});

test("a stretch of time leads to the first row that begins in it, and never to one outside", () => {
  const model = shown();
  assert.equal(rowAt(model, 4.9e6, 200e6), 6);
  assert.equal(rowAt(model, 5.5e6, 6.5e6), 6, "nothing begins in it: what ran");
  assert.equal(rowAt(model, 100e6, 200e6), -1, "nothing is in it");
});

test("a session that waits for its person does not stretch the axis; a running turn does", () => {
  const waiting = [[0, "session", "session", 0, -1], [1, "turn", "turn 1", 0, 10_000]];
  const model = new Model();
  model.show(trace(waiting), 3_600e6);
  assert.deepEqual(model.span, [0, 10e6]);
  model.show(trace([...waiting, [1, "turn", "turn 2", 20_000, -1]]), 3_600e6);
  assert.deepEqual(model.span, [0, 3_600e6]);
});

test("a note loses its later parts where it has no room, and is left out at last", () => {
  const note = "9 calls · 1 err · 31.0k tok";
  assert.equal(fitting(note, 400), note);
  assert.equal(fitting(note, 120), "9 calls · 1 err");
  assert.equal(fitting(note, 60), "9 calls");
  assert.equal(fitting(note, 20), "");
});

test("no two labels of the ruler stand on each other, at any length", () => {
  const times = [30e6, 600e6, 7_200e6, 40 * 86_400e6, 4_000 * 86_400e6];
  for (const length of times) {
    for (const width of [160, 600, 900]) {
      for (const cuts of [[], [[length * 0.2, length * 0.3]], [[length * 0.2, length * 0.3], [length * 0.31, length * 0.6], [length * 0.62, length * 0.9]]]) {
        const found = marks(axis(0, length, width, cuts)).map(({ x, text, cut }) => (cut ? [x - text.length * 3.3, x + text.length * 3.3] : [x, x + text.length * 6.6])).sort((a, b) => a[0] - b[0]);
        for (let i = 1; i < found.length; i += 1) assert.ok(found[i][0] >= found[i - 1][1], `${length} ${width} ${JSON.stringify(found)}`);
      }
    }
  }
});

test("a store tells its listeners after every change, and no longer when they have stopped", () => {
  const store = new Store({ a: 1, b: 2 });
  const heard = [];
  const stop = store.subscribe(() => heard.push(store.value));
  store.set({ b: 3 });
  stop();
  store.set({ a: 9 });
  assert.deepEqual(heard, [{ a: 1, b: 3 }]);
  assert.deepEqual(store.value, { a: 9, b: 3 });
});
