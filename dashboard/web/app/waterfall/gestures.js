// Handles the pointer on the waterfall. Ctrl and the wheel zoom, Shift and the wheel pan, dragging on the ruler selects
// a time, and a double click fits.
/** @import { Waterfall } from "./waterfall.js" */
import { toTime } from "./axis.js";
import { make } from "./dom.js";

/** How much a step of the wheel zooms. */
const WHEEL = 0.002;
/** A shorter drag is a click. */
const DRAG_PX = 4;
/** Pixels of a line and of a page. Some wheels report lines or pages. */
const LINE_PX = 16;
const PAGE_PX = 400;

/** @param {WheelEvent} event @param {number} by */
const pixels = (event, by) => by * (event.deltaMode === 1 ? LINE_PX : event.deltaMode === 2 ? PAGE_PX : 1);

/** @param {Waterfall} waterfall */
export function gestures(waterfall) {
  const { ruler, scroller } = waterfall;
  for (const place of [scroller, ruler.element]) place.addEventListener("wheel", (event) => wheel(waterfall, event), { passive: false });
  drag(waterfall);
}

/** @param {Waterfall} waterfall @param {WheelEvent} event */
function wheel(waterfall, event) {
  const { window: time, model } = waterfall;
  if (!model.loaded || !time.axis) return;
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    const at = toTime(time.axis, xOf(waterfall, event));
    waterfall.setManual(time.zoomedAt(model, at, Math.exp(Math.max(-200, Math.min(200, pixels(event, event.deltaY))) * WHEEL)));
  } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    event.preventDefault();
    // With Shift, some browsers report the wheel's movement as sideways.
    waterfall.setManual(time.panned(model, pixels(event, event.deltaX || event.deltaY)));
  }
}

/** The pixel of the track that the pointer is on. @param {Waterfall} waterfall @param {MouseEvent} event */
function xOf({ ruler, trackWidth }, event) {
  return Math.max(0, Math.min(trackWidth, event.clientX - ruler.track.getBoundingClientRect().left));
}

/** Shows the time between the two ends of a drag on the ruler. @param {Waterfall} waterfall */
function drag(waterfall) {
  const { track } = waterfall.ruler;
  const brush = make("div", "lane-brush");
  brush.hidden = true;
  track.append(brush);
  /** @type {number | null} */
  let from = null;
  track.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !waterfall.window.axis) return;
    from = xOf(waterfall, event);
    track.setPointerCapture(event.pointerId);
  });
  track.addEventListener("pointermove", (event) => {
    if (from === null) return;
    const to = xOf(waterfall, event);
    brush.hidden = Math.abs(to - from) < DRAG_PX;
    brush.style.transform = `translateX(${Math.min(from, to)}px)`;
    brush.style.width = `${Math.abs(to - from)}px`;
  });
  track.addEventListener("pointerup", (event) => {
    const { axis } = waterfall.window;
    if (from === null || !axis) return;
    const [a, b] = [from, xOf(waterfall, event)].sort((one, other) => one - other);
    from = null;
    brush.hidden = true;
    if (b - a >= DRAG_PX) waterfall.setManual([toTime(axis, a), toTime(axis, b)]);
  });
  track.addEventListener("pointercancel", () => {
    from = null;
    brush.hidden = true;
  });
}
