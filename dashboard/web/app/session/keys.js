// The keys of a session's page.
/** @import { PageActions } from "../../types/session" */
/** @import { KeyMap } from "../../types/app" */
/** @import { SessionController } from "./controller.js" */
import { get } from "../net/api.js";
import { ERROR, repeats } from "../trace/columns.js";
import { kindIndex } from "../trace/rows.js";
import { subagentOf } from "../trace/subtree.js";
import { copyAddress, notify } from "../ui/notify.js";
import { seek, waterfallKeys } from "../waterfall/keys.js";

/** @param {SessionController} controller @param {PageActions} page @returns {KeyMap} */
export function sessionKeys(controller, { focusFilter, star, clear, leave, views, view }) {
  const waterfall = view === "waterfall";
  // The conversation adds its own keys. These choose rows in both views.
  const { c: _, ...both } = traceKeys(controller);
  const shown = waterfall ? { ...waterfallKeys(controller.waterfall), ...traceKeys(controller), F: () => controller.following.begin() } : view === "conversation" ? both : {};
  return {
    ...whenLoaded(controller, shown),
    ...views,
    "/": focusFilter,
    "*": star,
    y: () => copySpan(controller),
    Escape: () => {
      if (controller.query) clear();
      else if (controller.criticalRow !== null && waterfall) controller.toggleCritical();
      else if (controller.focusRow !== null) controller.unfocus();
      else leave();
    },
  };
}

/** Makes keys do nothing until the session is loaded. @param {SessionController} controller @param {KeyMap} keys @returns {KeyMap} */
function whenLoaded(controller, keys) {
  /** @type {KeyMap} */
  const ready = {};
  for (const [key, action] of Object.entries(keys)) ready[key] = (event) => controller.model.loaded && action(event);
  return ready;
}

/** @param {SessionController} controller @returns {KeyMap} */
function traceKeys(controller) {
  return {
    e: () => seekError(controller, 1), E: () => seekError(controller, -1),
    n: () => controller.nextMatch(1), N: () => controller.nextMatch(-1),
    s: () => toggleSubagent(controller), c: () => controller.toggleCritical(),
  };
}

/** Goes to the next failed call; without one, to the next failed row. @param {SessionController} controller @param {number} step */
function seekError({ waterfall, model: { trace } }, step) {
  const session = kindIndex(trace, "session");
  /** A call that repeats the failure of its subagent is no failure of its own. @param {number} i */
  const failed = (i) => trace.status[i] === ERROR && !repeats(trace, i);
  return seek(waterfall, step, (i) => failed(i) && trace.last[i] === i + 1)
    || seek(waterfall, step, (i) => failed(i) && trace.kind[i] !== session);
}

/** Shows the chosen row's subagent alone, or the session again. @param {SessionController} controller */
function toggleSubagent(controller) {
  const { model: { trace, selected }, focusRow } = controller;
  const at = selected < 0 ? -1 : subagentOf(trace, selected);
  if (at >= 0 && trace.row[at] !== focusRow) controller.focus(trace.row[at]);
  else if (focusRow !== null) controller.unfocus();
  else notify("this row is not in a subagent; choose a row of a subagent");
}

/** Copies the chosen row's address, which the address bar may not show yet. @param {SessionController} controller */
async function copySpan(controller) {
  const { model } = controller;
  if (model.selected >= 0) {
    await get(`spans/${model.trace.row[model.selected]}`).then((span) => controller.named(span), () => {});
  }
  copyAddress();
}
