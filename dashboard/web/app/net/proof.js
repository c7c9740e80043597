// The cryptography of signing in: SHA-256, and HMAC-SHA-256 over lines of text. `dashboard/src/guard/proof.rs` is its
// counterpart. Browsers offer theirs only on https and loopback, and only asynchronously.

const K = Uint32Array.from(primes(64), (prime) => root(prime, 1 / 3));
const START = Uint32Array.from(primes(8), (prime) => root(prime, 1 / 2));
const BLOCK = 64;
const words = new Uint32Array(64);

/** The first 32 bits of a root's fraction. @param {number} prime @param {number} power */
function root(prime, power) {
  const value = prime ** power;
  return Math.floor((value - Math.floor(value)) * 2 ** 32);
}

/** @param {number} count */
function primes(count) {
  /** @type {number[]} */
  const found = [];
  for (let n = 2; found.length < count; n += 1) if (found.every((prime) => n % prime !== 0)) found.push(n);
  return found;
}

/** @param {number} x @param {number} by */
const turn = (x, by) => (x >>> by) | (x << (32 - by));

/** @param {Uint8Array} bytes @returns {Uint8Array} */
export function sha256(bytes) {
  const padded = new Uint8Array(Math.ceil((bytes.length + 9) / BLOCK) * BLOCK);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(bytes.length / 2 ** 29));
  view.setUint32(padded.length - 4, (bytes.length << 3) >>> 0);
  const state = START.slice();
  for (let at = 0; at < padded.length; at += BLOCK) block(state, view, at);
  const out = new DataView(new ArrayBuffer(32));
  state.forEach((word, i) => out.setUint32(4 * i, word));
  return new Uint8Array(out.buffer);
}

/** @param {Uint32Array} state @param {DataView} view @param {number} at */
function block(state, view, at) {
  for (let i = 0; i < 16; i += 1) words[i] = view.getUint32(at + 4 * i);
  for (let i = 16; i < 64; i += 1) {
    const x = words[i - 15];
    const y = words[i - 2];
    words[i] = words[i - 16] + (turn(x, 7) ^ turn(x, 18) ^ (x >>> 3)) + words[i - 7] + (turn(y, 17) ^ turn(y, 19) ^ (y >>> 10));
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let i = 0; i < 64; i += 1) {
    const one = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + words[i]) | 0;
    const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, i) => { state[i] += word; });
}

/** @param {string} text */
export const bytes = (text) => new TextEncoder().encode(text);

/** HMAC-SHA-256 of lines. @param {Uint8Array} key of 32 bytes @param {string[]} lines */
export function mac(key, lines) {
  const text = bytes(lines.join("\n"));
  const inner = new Uint8Array(BLOCK + text.length).fill(0x36, 0, BLOCK);
  const outer = new Uint8Array(BLOCK + 32).fill(0x5c, 0, BLOCK);
  key.forEach((byte, i) => {
    inner[i] ^= byte;
    outer[i] ^= byte;
  });
  inner.set(text, BLOCK);
  outer.set(sha256(inner), BLOCK);
  return sha256(outer);
}

/** @param {Uint8Array} raw */
export const hex = (raw) => Array.from(raw, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Reads 64 hexadecimal digits; null for anything else. @param {string} text */
export function unhex(text) {
  if (!/^[0-9a-f]{64}$/i.test(text)) return null;
  return Uint8Array.from({ length: 32 }, (_, i) => Number.parseInt(text.slice(2 * i, 2 * i + 2), 16));
}

/** @param {Uint8Array} left @param {Uint8Array} right */
export const xor = (left, right) => left.map((byte, i) => byte ^ right[i]);
