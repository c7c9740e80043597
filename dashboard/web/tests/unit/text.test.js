import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { runs } from "../../app/format/ansi.js";
import { safeLink, visible } from "../../app/format/text.js";

const corpus = JSON.parse(readFileSync(new URL("../corpus/ansi.json", import.meta.url), "utf8"));

for (const { name, input, visible: expected } of corpus) {
  test(`terminal output: ${name}`, () => {
    assert.equal(runs(input).map((run) => run.text).join(""), expected);
  });
}

test("colours and bold become numbers, nothing else", () => {
  assert.deepEqual(runs("\u001b[1;31ma\u001b[22mb\u001b[92mc\u001b[39md"), [
    { text: "a", bold: true, color: 1 },
    { text: "b", bold: false, color: 1 },
    { text: "c", bold: false, color: 10 },
    { text: "d", bold: false, color: null },
  ]);
});

test("a megabyte of escapes takes no time worth speaking of", () => {
  for (const piece of ["\u001b[31m", "\u001b]0;", "\u001b", "\u009b", "\u001b[" + ";".repeat(1_000)]) {
    const start = performance.now();
    runs(piece.repeat(Math.ceil(1e6 / piece.length)));
    assert.ok(performance.now() - start < 2_000, JSON.stringify(piece.slice(0, 5)));
  }
});

const hidden = JSON.parse(readFileSync(new URL("../corpus/hidden.json", import.meta.url), "utf8"));

for (const { name, input, visible: expected } of hidden) {
  test(`hidden characters: ${name}`, () => {
    assert.equal(visible(input), expected);
    assert.equal(visible(expected), expected, "twice is once");
  });
}

test("lines end as they did, and half a pair is no text", () => {
  assert.equal(visible("a\r\nb\tc\n"), "a\nb\tc\n");
  assert.equal(visible("a\ud800b\udc00"), "a\ufffdb\ufffd");
});

test("text without anything odd is returned as it is", () => {
  assert.equal(visible("plain text"), "plain text");
  assert.equal(visible(null), "");
  assert.equal(visible(12), "12");
});

test("only http and https become links", () => {
  assert.equal(safeLink("https://example.org/a"), "https://example.org/a");
  for (const bad of ["JavaScript:alert(1)", "data:text/html,x", "file:///etc/passwd", " vbscript:x", "not a link", ""]) {
    assert.equal(safeLink(bad), null, bad);
  }
});
