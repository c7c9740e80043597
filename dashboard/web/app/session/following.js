// Follows the running row until the user scrolls or chooses another row.
/** @import { Trace } from "../../types/trace" */
/** @import { SessionController } from "./controller.js" */

/** The innermost row that runs and began last; -1 if nothing runs. @param {Trace} trace */
export function runningRow(trace) {
  let found = -1;
  for (let i = 0; i < trace.n; i += 1) if (trace.dur[i] < 0 && (found < 0 || trace.start[i] >= trace.start[found])) found = i;
  return found;
}

export class Following {
  /** @param {SessionController} controller @param {HTMLElement} host of the waterfall */
  constructor(controller, host) {
    this.controller = controller;
    /** Whether this class chooses the row at this moment, and not the user. */
    this.leads = false;
    for (const event of ["wheel", "touchmove"]) host.addEventListener(event, () => this.end(), { passive: true });
  }

  get on() {
    return this.controller.store.value.following;
  }

  begin() {
    const { model: { trace }, store } = this.controller;
    store.set({ following: true });
    const i = runningRow(trace);
    if (i < 0) return;
    this.leads = true;
    if (trace.row[i] === Number(store.value.chosen)) this.controller.waterfall.scrollToChosen();
    else this.controller.goTo(trace.row[i]);
    this.leads = false;
  }

  end() {
    if (this.on) this.controller.store.set({ following: false });
  }

  /** A row was chosen. */
  chosen() {
    if (!this.leads) this.end();
  }

  /** Rows were added, or have ended. */
  changed() {
    if (this.on) this.begin();
  }
}
