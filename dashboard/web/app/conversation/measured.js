// Heights of rows: measured, or else estimated.
/** @import { Script } from "./script.js" */
/** @import { Texts } from "./texts.js" */
import { LINE_PX } from "./row.js";

/** Likely heights, pixels. */
const LIKELY = { prompt: 112, answer: 130, edit: 24, idle: 24, call: 24, thought: 24, agent: 24, note: 24 };
/** Measured heights that are kept. */
const MEASURED_MAX = 50_000;

export class Measured {
  /** @param {Script} script @param {Texts} texts */
  constructor(script, texts) {
    this.script = script;
    this.texts = texts;
    /** Measured heights by row key, and by how far the row is open. @type {Map<string, number>} */
    this.known = new Map();
  }

  clear() {
    this.known.clear();
  }

  /** @param {number} at */
  key(at) {
    const { script } = this;
    const i = script.rows[at];
    if (i < 0) return "";
    const { trace } = script;
    const open = !script.isGroup(i) && script.isOpen(i, this.texts.of(trace.row[i]));
    return `${trace.row[i]}${!open ? "" : script.isWhole(i) ? "+" : "-"}`;
  }

  /** @param {number} at @param {number} px */
  set(at, px) {
    if (this.known.size > MEASURED_MAX) this.known.clear();
    this.known.set(this.key(at), px);
  }

  /** @param {number} at */
  likely(at) {
    const { script } = this;
    const i = script.rows[at];
    if (i < 0 || script.isGroup(i)) return LINE_PX;
    const form = script.form(i);
    const known = this.known.size > 0 ? this.known.get(this.key(at)) : undefined;
    return known ?? (form === "answer" && !script.isOpen(i) ? LINE_PX : LIKELY[form]);
  }
}
