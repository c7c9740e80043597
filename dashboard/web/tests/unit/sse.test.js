import assert from "node:assert/strict";
import { test } from "node:test";
import { Parser, readEvents } from "../../app/net/sse.js";

const TEXT = "retry: 2000\nid: 1:2\nevent: hello\ndata: {\"a\":1}\n\n: alive\n\nevent: spans\ndata: one\ndata:two\nid\n\ndata: é\r\n\r\nevent: cut\ndata: off\n";
const EXPECTED = [
  { event: "hello", data: '{"a":1}', id: "1:2" },
  { event: "spans", data: "one\ntwo", id: "" },
  { event: "message", data: "é", id: "" },
];

test("events are cut where the empty lines are, however the text arrives", async () => {
  const bytes = new TextEncoder().encode(TEXT);
  for (const size of [1, 2, 3, 7, 1_000]) {
    const found = [];
    const body = new ReadableStream({
      start(control) {
        for (let at = 0; at < bytes.length; at += size) control.enqueue(bytes.slice(at, at + size));
        control.close();
      },
    });
    await readEvents(body, (message) => found.push(message));
    assert.deepEqual(found, EXPECTED, `${size} bytes at a time`);
  }
});

test("an event without data is none", () => {
  const found = [];
  new Parser((message) => found.push(message)).push("event: x\n\nid: 5\n\n");
  assert.deepEqual(found, []);
});
