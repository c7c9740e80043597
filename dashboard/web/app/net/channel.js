// Messages between tabs of one browser, hidden from pages that another program served on this port.
import { door } from "./door.js";

const IV = 12;

export class Channel {
  /** @param {string} name @param {(packet: any) => unknown} heard */
  constructor(name, heard) {
    this.heard = heard;
    this.raw = new BroadcastChannel(name);
    /** Packets stay in order. */
    this.sending = Promise.resolve();
    this.hearing = Promise.resolve();
    /** @type {{ secret: Uint8Array, key: Promise<CryptoKey> } | null} */
    this.known = null;
    this.raw.addEventListener("message", ({ data }) => {
      this.hearing = this.hearing.then(() => this.take(data)).catch(() => {});
    });
  }

  /** @param {unknown} packet */
  send(packet) {
    this.sending = this.sending.then(() => this.seal(packet)).catch(() => {});
  }

  /** @param {unknown} packet */
  async seal(packet) {
    if (door.open) {
      this.raw.postMessage(packet);
      return;
    }
    const key = await this.key();
    if (!key) return;
    const iv = crypto.getRandomValues(new Uint8Array(IV));
    const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv }, key, new TextEncoder().encode(JSON.stringify(packet)));
    this.raw.postMessage({ iv, sealed });
  }

  /** @param {any} data */
  async take(data) {
    if (door.open) {
      this.heard(data);
      return;
    }
    const key = await this.key();
    if (!key || !(data?.sealed instanceof ArrayBuffer)) return;
    const text = await crypto.subtle.decrypt({ name: "AES-GCM", iv: data.iv }, key, data.sealed);
    this.heard(JSON.parse(new TextDecoder().decode(text)));
  }

  /** @returns {Promise<CryptoKey> | null} */
  key() {
    const secret = door.channel;
    if (!secret) return null;
    if (this.known?.secret !== secret) {
      const raw = /** @type {BufferSource} */ (secret);
      this.known = { secret, key: crypto.subtle.importKey("raw", raw, "AES-GCM", false, ["encrypt", "decrypt"]) };
    }
    return this.known?.key ?? null;
  }
}
