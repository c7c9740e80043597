import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { barText, readBar } from "../../app/pages/session-filter.js";
import { edges, grid, strength } from "../../app/pages/latency-grid.js";
import { pieces } from "../../app/format/marks.js";
import { rank } from "../../app/ui/palette.js";
import { mix, PARTS } from "../../app/trace/time-parts.js";
import { gauge, stack } from "../../app/pages/now-cards.js";
import { upsert } from "../../app/pages/live-rows.js";

test("the filter of the list and the address say the same", () => {
  for (const text of ["deploy", "flaky test tool:Shell", "kind:mcp dur>2s", "dur>1500ms", "a:b c", ""]) {
    assert.equal(barText(readBar(text, new URLSearchParams("state=done"))), text);
  }
  const params = readBar("x dur>2s tool:Read", new URLSearchParams("state=done&cursor=9&tool=Old"));
  assert.equal(params.toString(), "state=done&min_us=2000000&tool=Read&q=x");
  assert.equal(barText(new URLSearchParams("min_us=nonsense&tool=A")), "tool:A");
  const fields = readBar("project:api status:error boat", new URLSearchParams("project=docs&model=m"));
  assert.equal(fields.toString(), "project=api&model=m&status=error&q=boat");
  assert.equal(barText(fields), "boat");
});

test("marks split a text without losing any of it, wherever they lie", () => {
  const text = "deliver timeout";
  for (const [marks, expected] of [
    [[[0, 7], [8, 15]], ["[deliver]", " ", "[timeout]"]],
    [[], ["deliver timeout"]],
    [[[8, 99]], ["deliver ", "[timeout]"]],
    [[[0, 9], [3, 7]], ["[deliver t]", "imeout"]],
    [[[99, 120]], ["deliver timeout"]],
  ]) {
    assert.deepEqual(pieces(text, marks).map((one) => (one.marked ? `[${one.text}]` : one.text)), expected);
  }
  assert.deepEqual(pieces("a\u202eb", [[0, 2]]).map(({ text: part }) => part), ["a[U+202E]", "b"]);
});

test("a heatmap's grid finds every count and paints one call visibly", () => {
  const heat = grid({ buckets: [10, 11, 12], columns: 5, counts: [[0, 0, 3], [4, 2, 900]] });
  assert.deepEqual([heat.columns, heat.rows, heat.most], [5, 3, 900]);
  assert.deepEqual([heat.at(0, 0), heat.at(4, 2), heat.at(1, 1)], [3, 900, 0]);
  assert.ok(strength(1, 900) > 0.15 && strength(900, 900) === 1 && strength(0, 900) === 0);
  assert.deepEqual(edges(10), [1_024, 2_048]);
  assert.equal(grid({ buckets: [], counts: [] }).rows, 0);
});

test("the palette wants every word and puts what begins with the first one first", () => {
  const entries = ["Overview", "Sessions", "Live", "next theme"].map((name) => ({ group: "page", name }));
  assert.deepEqual(rank(entries, "").map(({ name }) => name), ["Overview", "Sessions", "Live", "next theme"]);
  assert.deepEqual(rank(entries, "se").map(({ name }) => name), ["Sessions"]);
  assert.deepEqual(rank(entries, "e").map(({ name }) => name), ["Overview", "Sessions", "Live", "next theme"]);
  assert.deepEqual(rank(entries, "page li").map(({ name }) => name), ["Live"]);
  assert.deepEqual(rank(entries, "nothing such"), []);
});

test("the shares of a turn fill the bar and leave out what is zero", () => {
  const none = { thinking_us: 0, responding_us: 0, hooks_us: 0, tools_us: 0, shell_us: 0, mcp_us: 0, edits_us: 0, subagent_us: 0, wait_us: 0, other_us: 0 };
  assert.equal(mix(none), undefined);
  assert.equal(mix({ ...none, shell_us: 3, other_us: 1 }), "linear-gradient(90deg, var(--k-shell) 0.0% 75.0%, var(--k-other) 75.0% 100.0%)");
});

test("every part of the time has a colour in each theme", () => {
  const css = readFileSync(new URL("../../app/styles/theme.css", import.meta.url), "utf8");
  for (const part of PARTS) assert.match(css, new RegExp(` --k-${part}: (light-dark\\(#[0-9a-f]{6}, #[0-9a-f]{6}\\)|#[0-9a-f]{6});`), part);
});

test("the live page keeps the newest thousand rows, each once and as it is now", () => {
  const row = (n, status = "ok") => ({ row: n, start_us: n * 10, status });
  let rows = [];
  for (let from = 0; from < 2_500; from += 50) rows = upsert(rows, Array.from({ length: 50 }, (_, i) => row(from + i)));
  assert.equal(rows.length, 1_000);
  assert.deepEqual([rows[0].row, rows.at(-1).row], [2_499, 1_500]);
  rows = upsert(rows, [row(2_000, "error")]);
  assert.equal(rows.length, 1_000);
  assert.deepEqual(rows.filter((one) => one.row === 2_000), [row(2_000, "error")]);
});

test("a gauge holds the usual times and the time so far, and without usual times it shows none", () => {
  assert.deepEqual(gauge(5, null, null), { took: 0, p50: null, p95: null });
  assert.deepEqual(gauge(70, 50, 100), { took: 50, p50: 35.7, p95: 71.4 });
  assert.deepEqual(gauge(1_000, 50, 100), { took: 100, p50: 5, p95: 10 }, "the scale grows with the call");
});

test("a column of the last ten minutes shares its room among kinds, and a subagent has what its calls leave", () => {
  const [one, two, three] = stack({ from_us: 0, step_us: 10, lanes: [{ kind: "shell", busy: [60, 0, 100] }, { kind: "edits", busy: [20, 0, 50] }, { kind: "subagent", busy: [100, 0, 100] }] });
  assert.deepEqual([one.height, one.words], [100, "shell 60 %, edits 20 %, subagent 20 %"]);
  assert.match(one.paint, /--k-shell\) 0.0% 60.0%.*--k-edits\) 60.0% 80.0%/);
  assert.deepEqual(two, { height: 0, paint: undefined, words: "" });
  assert.equal(three.height, 100, "side by side is not twice as busy");
  assert.equal(stack({ from_us: 0, step_us: 10, lanes: [] }).length, 60);
});
