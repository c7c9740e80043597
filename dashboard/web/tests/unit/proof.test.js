import assert from "node:assert/strict";
import { createHash, createHmac, randomBytes } from "node:crypto";
import { test } from "node:test";
import { hex, mac, sha256, unhex, xor } from "../../app/net/proof.js";

test("hashes are those of everybody else, at every length around a block", () => {
  for (const length of [0, 1, 3, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128, 1_000, 65_536]) {
    const bytes = randomBytes(length);
    assert.equal(hex(sha256(bytes)), createHash("sha256").update(bytes).digest("hex"), `${length} bytes`);
  }
});

test("authentication codes are those of everybody else", () => {
  for (const lines of [[""], ["server", "a", "b"], ["é", "x".repeat(300)]]) {
    const key = randomBytes(32);
    assert.equal(hex(mac(key, lines)), createHmac("sha256", key).update(lines.join("\n")).digest("hex"));
  }
});

test("digits are read whole or not at all", () => {
  const bytes = randomBytes(32);
  assert.deepEqual([...unhex(bytes.toString("hex"))], [...bytes]);
  for (const wrong of ["", "ab", "g".repeat(64), "a".repeat(65)]) assert.equal(unhex(wrong), null);
  assert.equal(hex(xor(bytes, bytes)), "00".repeat(32));
});
