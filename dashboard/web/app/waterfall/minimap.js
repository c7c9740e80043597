// The minimap: one strip per kind, opacity = busy share of the pixel column. Painted once per trace and size; the window on
// it is a DOM box.
import { ERROR } from "../trace/columns.js";
import { axis, toTime, toX } from "./axis.js";
import { endOf } from "../trace/rows.js";

const LANES = [
  ["thinking", "thinking"],
  ["tools", "tools"],
  ["shell", "shell"],
  ["mcp", "mcp"],
  ["edits", "edits"],
  ["subagent", "subagent"],
  ["wait", "wait"],
];
const ROW_PX = 9;
const NAME_PX = 76;
const ERROR_PX = 4;

/** Busy share per lane and pixel column, and which columns hold an error. Pure. */
export function coverage(trace, scale, columns, now) {
  const lanes = LANES.map(() => new Float32Array(columns));
  const errors = new Uint8Array(columns);
  const laneOf = trace.kinds.map((kind) => LANES.findIndex(([name]) => name === kind));
  const wait = LANES.length - 1;
  const session = trace.kinds.indexOf("session");
  const subagent = trace.kinds.indexOf("subagent");
  const add = (lane, from, to) => {
    const x0 = Math.max(0, toX(scale, from));
    // Half a pixel at least: thousands of calls of a millisecond are still seen.
    const x1 = Math.min(columns, Math.max(toX(scale, to), x0 + 0.5));
    const first = Math.floor(x0);
    const last = Math.min(columns - 1, Math.floor(x1));
    for (let x = first; x <= last; x += 1) {
      lanes[lane][x] += Math.min(x + 1, x1) - Math.max(x, x0);
    }
  };
  for (let i = 0; i < trace.n; i += 1) {
    const lane = laneOf[trace.kind[i]];
    // A call that only delegates is not what the time went into: its subagent is.
    const delegates = trace.last[i] > i + 1 && trace.kind[i] !== subagent;
    if (lane >= 0 && !delegates) add(lane, trace.start[i], endOf(trace, i, now));
    if (trace.wait[i] > 0) add(wait, trace.start[i] - trace.wait[i], trace.start[i]);
    if (trace.status[i] === ERROR && trace.kind[i] !== session) {
      const x = Math.floor(toX(scale, trace.start[i]));
      if (x >= 0 && x < columns) errors[x] = 1;
    }
  }
  return { lanes, errors };
}

/** The minimap in `host`; `onJump(t)` on a click, `onBrush(from, to)` on a drag. */
export class Lanes {
  constructor(host, { onJump, onBrush }) {
    this.host = host;
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    this.names = document.createElement("div");
    this.names.className = "lane-names";
    this.box = document.createElement("div");
    this.box.className = "lane-window";
    this.brush = document.createElement("div");
    this.brush.className = "lane-brush";
    this.brush.hidden = true;
    host.replaceChildren(this.names, this.canvas, this.box, this.brush);
    this.axis = null;
    this.drag(onJump, onBrush);
  }

  paint(trace, from, to, cuts, now) {
    const width = Math.max(50, this.host.clientWidth - NAME_PX - 12);
    this.axis = axis(from, to, width, cuts);
    const used = LANES.filter(([name]) => name === "wait" ? trace.wait.some((us) => us > 0) : trace.kinds.includes(name));
    const height = used.length * ROW_PX + ERROR_PX + 4;
    const ratio = Math.min(2, devicePixelRatio || 1);
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.host.style.height = `${height + 6}px`;
    this.names.replaceChildren(...used.map(([name]) => {
      const line = document.createElement("div");
      line.textContent = name;
      return line;
    }));
    const { lanes, errors } = coverage(trace, this.axis, Math.floor(width), now);
    const c = this.canvas.getContext("2d");
    const style = getComputedStyle(this.host);
    c.scale(ratio, ratio);
    used.forEach(([name], row) => {
      c.fillStyle = style.getPropertyValue(`--k-${name}`) || "#888";
      const shares = lanes[LANES.findIndex(([lane]) => lane === name)];
      const y = ERROR_PX + 2 + row * ROW_PX;
      for (let x = 0; x < shares.length; x += 1) {
        if (shares[x] <= 0) continue;
        c.globalAlpha = Math.min(1, 0.3 + 0.7 * shares[x]);
        c.fillRect(x, y, 1, ROW_PX - 2);
      }
    });
    c.globalAlpha = 1;
    c.fillStyle = style.getPropertyValue("--error") || "#d33";
    for (let x = 0; x < errors.length; x += 1) if (errors[x]) c.fillRect(x, 0, 2, ERROR_PX);
    c.fillStyle = style.getPropertyValue("--line");
    for (const p of this.axis.parts) if (p.cut) c.fillRect(p.x0 + (p.t1 - p.t0) * p.scale / 2, 0, 1, height);
    const failed = errors.reduce((sum, one) => sum + one, 0);
    this.canvas.setAttribute("aria-label", `Where the time went, by kind, over the session: ${used.map(([name]) => name).join(", ")}; errors at ${failed} places. The rows below hold the same as text.`);
  }

  window(from, to) {
    if (!this.axis) return;
    const x0 = Math.max(0, toX(this.axis, from));
    const x1 = Math.min(this.axis.width, toX(this.axis, to));
    this.box.style.transform = `translateX(${NAME_PX + x0}px)`;
    this.box.style.width = `${Math.max(3, x1 - x0)}px`;
  }

  drag(onJump, onBrush) {
    let from = null;
    const x = (event) => {
      const left = this.canvas.getBoundingClientRect().left;
      return Math.max(0, Math.min(this.axis?.width ?? 0, event.clientX - left));
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !this.axis) return;
      from = x(event);
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (from === null) return;
      const to = x(event);
      this.brush.hidden = Math.abs(to - from) < 4;
      this.brush.style.transform = `translateX(${NAME_PX + Math.min(from, to)}px)`;
      this.brush.style.width = `${Math.abs(to - from)}px`;
    });
    const end = (event) => {
      if (from === null) return;
      const to = x(event);
      const [a, b] = [Math.min(from, to), Math.max(from, to)];
      from = null;
      this.brush.hidden = true;
      if (b - a < 4) onJump(toTime(this.axis, a));
      else onBrush(toTime(this.axis, a), toTime(this.axis, b));
    };
    this.canvas.addEventListener("pointerup", end);
    this.canvas.addEventListener("pointercancel", () => {
      from = null;
      this.brush.hidden = true;
    });
  }
}
