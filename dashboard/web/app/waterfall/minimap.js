// The minimap. It has one strip per kind; the opacity of a column is the busy share of its time. The canvas is painted
// once per trace and size. The waterfall's window is a box over the canvas.
/** @import { Interval, Trace } from "../../types/trace" */
/** @import { Axis } from "../../types/waterfall" */
import { colors } from "../ui/theme.js";
import { axis, toTime, toX } from "./axis.js";
import { coverage, LANES, usedLanes } from "./coverage.js";
import { make } from "./dom.js";

const LANE_PX = 9;
const NAME_PX = 76;
const ERROR_PX = 4;
/** A shorter drag is a click. */
const DRAG_PX = 4;
/** So near to an edge of the window a drag moves that edge. */
const EDGE_PX = 5;

/** @typedef {{ onJump: (t: number) => void, onBrush: (from: number, to: number) => void }} Callbacks */

export class Minimap {
  /** @param {HTMLElement} host @param {Callbacks} callbacks a click jumps, a drag brushes */
  constructor(host, { onJump, onBrush }) {
    this.host = host;
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    this.names = make("div", "lane-names");
    this.box = make("div", "lane-window");
    this.brush = make("div", "lane-brush");
    this.brush.hidden = true;
    host.replaceChildren(this.names, this.canvas, this.box, this.brush);
    /** @type {Axis | null} */
    this.axis = null;
    /** Where the window is, in pixels. */
    this.place = [0, 0];
    this.drag(onJump, onBrush);
  }

  /** @param {Trace} trace @param {Interval} span @param {Interval[]} cuts @param {number} now */
  paint(trace, [from, to], cuts, now) {
    const width = Math.max(50, this.host.clientWidth - NAME_PX - 12);
    const scale = axis(from, to, width, cuts);
    this.axis = scale;
    const used = usedLanes(trace);
    const height = used.length * LANE_PX + ERROR_PX + 4;
    const c = this.resize(width, height);
    this.names.replaceChildren(...used.map((name) => {
      const line = make("div", "");
      line.textContent = name;
      return line;
    }));
    const { lanes, errors } = coverage(trace, scale, Math.floor(width), now);
    const failed = errors.reduce((sum, one) => sum + one, 0);
    this.canvas.setAttribute("aria-label", `Where the time went, by kind, over the session: ${used.join(", ")}; errors at ${failed} places. The rows below hold the same as text.`);
    if (!c) return;
    const color = colors(this.canvas);
    used.forEach((name, row) => {
      c.fillStyle = color(`--k-${name}`);
      this.paintLane(c, lanes[LANES.indexOf(name)], ERROR_PX + 2 + row * LANE_PX);
    });
    c.globalAlpha = 1;
    c.fillStyle = color("--error");
    for (let x = 0; x < errors.length; x += 1) if (errors[x]) c.fillRect(x, 0, 2, ERROR_PX);
    c.fillStyle = color("--line");
    for (const p of scale.parts) if (p.cut) c.fillRect(p.x0 + ((p.t1 - p.t0) * p.scale) / 2, 0, 1, height);
  }

  /** Sizes the canvas for the screen's pixels. @param {number} width @param {number} height */
  resize(width, height) {
    const ratio = Math.min(2, devicePixelRatio || 1);
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.host.style.height = `${height + 6}px`;
    const c = this.canvas.getContext("2d");
    c?.scale(ratio, ratio);
    return c;
  }

  /** @param {CanvasRenderingContext2D} c @param {Float32Array} shares @param {number} y */
  paintLane(c, shares, y) {
    for (let x = 0; x < shares.length; x += 1) {
      if (shares[x] <= 0) continue;
      c.globalAlpha = Math.min(1, 0.3 + 0.7 * shares[x]);
      c.fillRect(x, y, 1, LANE_PX - 2);
    }
  }

  /** Moves the box to the window of the waterfall. @param {number} from @param {number} to */
  window(from, to) {
    if (!this.axis) return;
    const x0 = Math.max(0, toX(this.axis, from));
    const x1 = Math.min(this.axis.width, toX(this.axis, to));
    this.place = [x0, x1];
    this.box.style.transform = `translateX(${NAME_PX + x0}px)`;
    this.box.style.width = `${Math.max(3, x1 - x0)}px`;
  }

  /** What a drag from `x` does: moves the window or one of its edges, or draws a new window. A window over everything cannot move.
   * @param {number} x @returns {"from" | "to" | "window" | "new"} */
  grip(x) {
    const [x0, x1] = this.place;
    if (!this.axis || x1 - x0 > this.axis.width - 2 * EDGE_PX) return "new";
    // A narrow window has no room for edges beside a middle.
    const edge = Math.min(EDGE_PX, (x1 - x0) / 4);
    if (Math.abs(x - x0) <= edge) return "from";
    if (Math.abs(x - x1) <= edge) return "to";
    return x > x0 && x < x1 ? "window" : "new";
  }

  /** The window after a drag by `by` pixels. @param {"from" | "to" | "window"} grip @param {number[]} place @param {number} by */
  moved(grip, [x0, x1], by) {
    const width = this.axis?.width ?? 0;
    if (grip === "from") return [Math.max(0, Math.min(x1 - 2, x0 + by)), x1];
    if (grip === "to") return [x0, Math.min(width, Math.max(x0 + 2, x1 + by))];
    const at = Math.max(0, Math.min(width - (x1 - x0), x0 + by));
    return [at, at + x1 - x0];
  }

  /** @param {Callbacks["onJump"]} onJump @param {Callbacks["onBrush"]} onBrush */
  drag(onJump, onBrush) {
    /** @type {number | null} */
    let from = null;
    /** @type {ReturnType<Minimap["grip"]>} */
    let grip = "new";
    let place = this.place;
    /** @param {PointerEvent} event */
    const x = (event) => Math.max(0, Math.min(this.axis?.width ?? 0, event.clientX - this.canvas.getBoundingClientRect().left));
    const stop = () => {
      from = null;
      this.brush.hidden = true;
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !this.axis) return;
      from = x(event);
      grip = this.grip(from);
      place = this.place;
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      const to = x(event);
      if (from === null || !this.axis) {
        const over = this.grip(to);
        this.canvas.style.cursor = over === "window" ? "grab" : over === "new" ? "" : "ew-resize";
        return;
      }
      if (grip !== "new") {
        if (Math.abs(to - from) < DRAG_PX) return;
        const [a, b] = this.moved(grip, place, to - from);
        onBrush(toTime(this.axis, a), toTime(this.axis, b));
        return;
      }
      this.brush.hidden = Math.abs(to - from) < DRAG_PX;
      this.brush.style.transform = `translateX(${NAME_PX + Math.min(from, to)}px)`;
      this.brush.style.width = `${Math.abs(to - from)}px`;
    });
    this.canvas.addEventListener("pointerup", (event) => {
      if (from === null || !this.axis) return;
      const [a, b] = [from, x(event)].sort((one, other) => one - other);
      stop();
      if (b - a < DRAG_PX) onJump(toTime(this.axis, a));
      else if (grip === "new") onBrush(toTime(this.axis, a), toTime(this.axis, b));
    });
    this.canvas.addEventListener("pointercancel", stop);
  }
}
