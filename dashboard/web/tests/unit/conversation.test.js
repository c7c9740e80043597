// Tests the rows of a conversation: their heights, their texts and their copy.
import assert from "node:assert/strict";
import { test } from "node:test";
import { asMarkdown } from "../../app/conversation/copy.js";
import { Heights } from "../../app/conversation/heights.js";
import { Script } from "../../app/conversation/script.js";
import { around } from "../../app/conversation/strip.js";
import { Texts } from "../../app/conversation/texts.js";
import { outcome, readableInput, title } from "../../app/conversation/words.js";
import { ERROR } from "../../app/trace/columns.js";
import { trace } from "./trace.js";

const SESSION = [
  [0, "session", "session", 0, 9_000],
  [1, "turn", "turn 1 look", 0, 500],
  [2, "thinking", "thought where is it", 1, 5],
  [2, "tools", "Read src/a.rs", 10, 5],
  [2, "tools", "Read src/b.rs", 20, 5],
  [2, "tools", "Read src/c.rs", 30, 5],
  [2, "tools", "Read src/d.rs", 40, 5],
  [2, "edits", "Edit src/a.rs", 50, 5],
  [2, "edits", "Edit src/a.rs", 56, 5],
  [2, "edits", "Edit src/a.rs", 62, 5],
  [2, "edits", "Edit src/a.rs", 68, 5],
  [2, "shell", "Shell make", 80, 10, ERROR],
  [2, "tools", "Task explore it", 100, 350],
  [3, "subagent", "explore it", 110, 300],
  [4, "shell", "Shell rg a", 120, 100],
  [4, "subagent", "deeper one", 230, 100],
  [5, "tools", "Grep b", 240, 10],
  [2, "response", "response", 490, 0],
  [1, "turn", "turn 2 again", 5_000, 100],
  [2, "response", "response", 5_090, 0],
];
const [TURN, THOUGHT, READ, EDIT, MAKE, TASK, AGENT, DEEPER, GREP, ANSWER, SECOND] = [1, 2, 3, 7, 11, 12, 13, 15, 16, 17, 18];

function script(lines = SESSION) {
  const made = new Script();
  made.show(trace(lines), 0, null);
  return made;
}
const edit = (added, removed) => ({ row: 0, texts: [], message: null, exit_code: null, edit: { added, removed, hunks: [], left: 0 } });

test("the session and calls that only delegate have no row; edits stand alone, equal calls together", () => {
  const one = script();
  assert.deepEqual(one.rows, [TURN, THOUGHT, READ, EDIT, 8, 9, 10, MAKE, AGENT, 14, DEEPER, ANSWER, -1, SECOND, 19]);
  assert.deepEqual(title(one, READ), ["4 × Read", "a.rs, b.rs, c.rs, d.rs"]);
  assert.equal(one.level[AGENT], 0, "a subagent stands where its call would");
  assert.equal(one.level[14], 1);
  assert.equal(one.top[GREP], TURN);
});

test("open at first: failures, small edits, one level of subagents and the answer", () => {
  const one = script();
  assert.equal(one.isOpen(MAKE), true);
  assert.equal(one.isOpen(ANSWER), true);
  assert.equal(one.isOpen(AGENT), true);
  assert.equal(one.isOpen(DEEPER), false);
  assert.equal(one.isOpen(THOUGHT), false);
  assert.equal(one.isOpen(EDIT), false, "until it is known how large it is");
  assert.equal(one.isOpen(EDIT, edit(5, 3)), true);
  assert.equal(one.isOpen(EDIT, edit(6, 3)), false);
  assert.equal(one.isWhole(MAKE), false, "a failure shows its first lines");
});

test("what the person opens or closes wins, and a hidden row is found by what stands for it", () => {
  const one = script();
  one.toggle(ANSWER, false);
  assert.equal(one.isOpen(ANSWER), false);
  assert.equal(one.at(GREP), one.position[DEEPER], "the closed subagent above it");
  assert.equal(one.at(TASK), one.position[AGENT]);
  assert.equal(one.at(0), 0, "the session is its first prompt");
  one.reveal(GREP);
  assert.equal(one.rows[one.at(GREP)], GREP);
  one.reveal(5);
  assert.equal(one.rows[one.at(5)], 5, "a member of a group");
  one.setMode("prompts");
  assert.deepEqual(one.rows, [TURN, -1, SECOND]);
  one.setMode("all");
  assert.ok(one.rows.includes(GREP) && one.rows.includes(5) && one.isOpen(THOUGHT));
});

test("a filter shows matches with what they belong to", () => {
  const one = script();
  const hit = new Uint8Array(SESSION.length);
  hit[GREP] = 1;
  one.show(one.trace, 0, hit);
  assert.deepEqual(one.rows, [TURN, AGENT, DEEPER, GREP]);
  assert.equal(one.at(ANSWER), one.position[TURN]);
});

test("a subagent alone is a conversation, too", () => {
  const one = script([[0, "subagent", "explore", 0, 100], [1, "shell", "Shell ls", 5, 5]]);
  assert.deepEqual(one.rows, [0, 1]);
  assert.equal(one.top[1], 0);
});

test("a hundred thousand rows are laid out at once", () => {
  const lines = [];
  for (let t = 0; t < 1_000; t += 1) {
    lines.push([0, "turn", `turn ${t % 9}`, t * 1_000, 900]);
    for (let k = 0; k < 99; k += 1) lines.push([1, "tools", `Read ${k}`, t * 1_000 + k, 1, k % 2 ? ERROR : undefined]);
  }
  const one = script(lines);
  const start = performance.now();
  one.show(one.trace, 0, null);
  // Quadratic work would take minutes. The limit is generous, because the machine may be busy.
  assert.ok(performance.now() - start < 5_000, `${performance.now() - start}`);
  assert.equal(one.rows.filter((i) => i >= 0).length, 100_000);
});

test("heights add up, and a place finds its row", () => {
  const heights = new Heights();
  heights.reset(1_000, (at) => 10 + (at % 7));
  const tops = [];
  let sum = 0;
  for (let at = 0; at < 1_000; at += 1) {
    tops.push(sum);
    sum += heights.of[at];
  }
  assert.equal(heights.total, sum);
  for (const at of [0, 1, 2, 17, 500, 998, 999]) {
    assert.equal(heights.top(at), tops[at]);
    assert.equal(heights.find(tops[at]), at);
    assert.equal(heights.find(tops[at] + 9), at);
  }
  assert.equal(heights.set(500, 300), 300 - (10 + (500 % 7)));
  assert.equal(heights.find(tops[500] + 299), 500);
  assert.equal(heights.find(tops[500] + 300), 501);
  assert.equal(heights.find(1e9), 999);
  assert.equal(heights.find(-5), 0);
  heights.reset(0, () => 1);
  assert.equal(heights.find(5), 0);
});

test("texts are asked for as they come into view, at most so many at once, and never twice at a time", async () => {
  const asked = [];
  const wait = [];
  let now = 0;
  const texts = new Texts((rows) => new Promise((done, fail) => { asked.push(rows); wait.push({ done, fail }); }), () => {}, () => now);
  const item = (row) => ({ row, texts: [], edit: null });
  const rows = Array.from({ length: 100 }, (_, i) => i + 1);
  texts.want(rows);
  texts.want(rows.slice(60));
  assert.equal(asked.length, 1);
  assert.equal(asked[0].length, 48);
  wait[0].done({ items: asked[0].slice(0, 40).map(item), left: asked[0].slice(40) });
  await new Promise(setImmediate);
  assert.deepEqual(asked[1].slice(0, 8), asked[0].slice(40), "what had no room comes first");
  assert.ok(!asked[1].includes(50), "what has left the view is not asked for");
  wait[1].fail(new Error("away"));
  await new Promise(setImmediate);
  texts.want([asked[1][0]]);
  assert.equal(asked.length, 2, "not again at once");
  now = 5_000;
  texts.want([asked[1][0]]);
  assert.equal(asked.length, 3);
  wait[2].done({ items: asked[2].map(item), left: [] });
  await new Promise(setImmediate);
  texts.outdate([1, 77_777]);
  texts.want([1, 2]);
  assert.deepEqual(asked[3], [1], "what changed is asked for again");
});

test("texts are kept in bounds", async () => {
  const texts = new Texts(async (rows) => ({ items: rows.map((row) => ({ row, texts: [] })), left: [] }), () => {});
  for (let from = 0; from < 4_000; from += 40) {
    texts.want(Array.from({ length: 40 }, (_, i) => from + i));
    await new Promise(setImmediate);
  }
  assert.ok(texts.known.size <= 1_200, String(texts.known.size));
  assert.ok(texts.of(3_999));
});

test("a turn is copied with its words in fences that hold", () => {
  const one = script();
  const text = (part, words) => ({ texts: [{ part, text: words }], message: null, exit_code: null, edit: null, label: "" });
  const steps = new Map([
    [one.trace.row[TURN], text("prompt", "look\nhere")],
    [one.trace.row[ANSWER], text("response", "It is **done**.")],
    [one.trace.row[MAKE], { ...text("output", "```\nerror"), label: "Shell `make`", message: "exit code 2", exit_code: 2 }],
    [one.trace.row[EDIT], { ...edit(1, 1), label: "Edit a.rs", edit: { hunks: [{ lines: [{ op: "-", text: "a" }, { op: "+", text: "b" }] }] } }],
  ]);
  const copy = asMarkdown(one, TURN, (row) => steps.get(row));
  assert.match(copy, /^## You, \w{3} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\n\n> look\n> here\n/);
  assert.ok(copy.includes("- `` Shell `make` `` (10ms, ✕ exit 2)\n\n````\n```\nerror\n````"), copy);
  assert.ok(copy.includes("```diff\n-a\n+b\n```"));
  assert.ok(copy.trimEnd().endsWith("It is **done**."));
  assert.ok(!copy.includes("turn 2"), "one turn alone");
});

test("words of a row", () => {
  const one = script();
  assert.equal(outcome(one, MAKE), "✕ failed");
  assert.equal(outcome(one, MAKE, { exit_code: 101 }), "✕ exit 101");
  assert.equal(readableInput('{"command":"ls","n":[1]}'), "command: ls\nn: [1]");
  assert.equal(readableInput("[1]"), "[1]");
  assert.equal(readableInput("{"), "{");
});

test("of many turns those around the chosen one are shown", () => {
  const turns = Array.from({ length: 200 }, (_, n) => n);
  for (const [at, from] of [[-1, 0], [0, 0], [100, 80], [199, 160]]) {
    const shown = around(turns, at);
    assert.equal(shown.from, from);
    assert.equal(shown.shown.length + shown.from + shown.after, 200);
  }
  assert.deepEqual(around([1, 2], 1), { from: 0, shown: [1, 2], after: 0 });
});
