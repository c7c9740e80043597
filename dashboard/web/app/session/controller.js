// Connects the parts of a session's page: network, waterfall, minimap, address and state. Not a component, so that a
// keystroke redraws none.
/** @import { SpanDetail, StreamEvent, Turn } from "../../types/answers" */
/** @import { Failure } from "../../types/app" */
/** @import { SessionState } from "../../types/session" */
/** @import { Trace } from "../../types/trace" */
/** @import { Store } from "../ui/store.js" */
import { enc, get } from "../net/api.js";
import { throttle } from "../net/throttle.js";
import { criticalPath } from "../trace/critical-path.js";
import { matches, parse } from "../trace/filter.js";
import { kindIndex } from "../trace/rows.js";
import { subtree } from "../trace/subtree.js";
import { turnsOf } from "../trace/turns.js";
import { onTheme } from "../ui/theme.js";
import { jump, seek } from "../waterfall/keys.js";
import { Minimap } from "../waterfall/minimap.js";
import { Waterfall } from "../waterfall/waterfall.js";
import { Address, spanIn } from "./address.js";
import { Following } from "./following.js";
import { Loader } from "./loader.js";
import { annotations, runs, turnToOpen } from "./turns.js";

/** Minimum time between two changes of the axis in the address. */
const ADDRESS_MS = 400;

export class SessionController {
  /**
   * @param {string} id @param {Store<SessionState>} store
   * @param {{ host: HTMLElement, strip: HTMLElement }} places of the waterfall and of the minimap
   * @param {{ query: string, hash: string }} at the address at the start
   */
  constructor(id, store, { host, strip }, at) {
    this.id = id;
    this.strip = strip;
    this.store = store;
    this.address = new Address(at);
    /** @type {ReturnType<typeof parse>} */
    this.query = null;
    /** Row key of the subagent that is shown alone. @type {number | null} */
    this.focusRow = null;
    /** Row key of the span whose critical path is marked. @type {number | null} */
    this.criticalRow = null;
    this.saveAxis = throttle(() => this.loader.alive && this.address.set("t", this.waterfall.window.manual?.map(Math.round).join(",") ?? null), ADDRESS_MS);
    this.waterfall = new Waterfall(host, {
      onSelect: (i) => {
        this.store.set({ chosen: String(this.model.trace.row[i]) });
        this.following.chosen();
      },
      onAxis: ({ from, to }) => {
        this.minimap.window(from, to);
        this.saveAxis();
      },
    });
    this.model = this.waterfall.model;
    this.following = new Following(this, host);
    this.waterfall.window.manual = this.address.range;
    this.minimap = new Minimap(strip, {
      onJump: (t) => this.goToTime(t, null),
      onBrush: (from, to) => this.goToTime(from, to),
    });
    this.loader = new Loader(id, {
      onWhole: (session, turns, trace) => this.loaded(session, turns, trace),
      onChange: (turns, trace, before) => this.changed(turns, trace, before),
      onError: (error) => this.fail(error),
    });
    this.stopTheme = onTheme(() => this.repaint());
    // Also fires when the page's other view is closed.
    this.sized = new ResizeObserver(() => this.repaint());
    this.sized.observe(strip);
    this.loader.whole();
  }

  unmount() {
    this.loader.stop();
    this.sized.disconnect();
    this.stopTheme();
    this.waterfall.destroy();
  }

  /** @param {Failure} error */
  fail(error) {
    this.store.set({ error });
  }

  /** The time now, from the session's start. */
  now() {
    return Date.now() * 1_000 - (this.loader.trace?.t0 ?? 0);
  }

  /** @param {NonNullable<SessionState["session"]>} session @param {Turn[]} turns @param {Trace} trace */
  async loaded(session, turns, trace) {
    this.store.set({ error: null, session, turns });
    const keep = this.model.loaded ? undefined : this.foldAtStart(trace);
    this.show();
    const { focus, span } = this.address;
    this.address.focus = null;
    this.address.span = null;
    if (focus) await this.focusOn(focus);
    if (span) await this.goToSpan(span);
    else if (keep !== undefined && this.focusRow === null) {
      this.goTo(trace.row[keep]);
      if (runs(session)) this.following.begin();
    }
  }

  /** @param {Turn[]} turns @param {Trace} trace @param {Trace} before */
  changed(turns, trace, before) {
    this.store.set({ turns });
    // A turn that begins while the user watches is unfolded.
    if (trace !== before) for (const i of turnsOf(trace)) if (!before.index.has(trace.row[i])) this.model.folded.delete(trace.row[i]);
    this.show();
    this.following.changed();
  }

  /** Folds every turn except the one that the user probably wants. @param {Trace} trace */
  foldAtStart(trace) {
    const turns = turnsOf(trace);
    const keep = turnToOpen(trace, turns);
    for (const i of turns) if (i !== keep) this.model.folded.add(trace.row[i]);
    return keep;
  }

  /** Shows the session as it is now, or one subagent of it. The chosen row stays chosen. */
  show() {
    const full = this.loader.trace;
    if (!full) return;
    const { model } = this;
    const chosen = model.selected >= 0 ? model.trace.row[model.selected] : null;
    const top = this.focusRow === null ? undefined : full.index.get(this.focusRow);
    const trace = top === undefined ? full : subtree(full, top);
    model.selected = chosen === null ? -1 : trace.index.get(chosen) ?? -1;
    model.hit = null;
    model.marked = null;
    const { notes, mixes } = annotations(trace, this.store.value.turns);
    model.notes = notes;
    model.mixes = mixes;
    this.waterfall.show(trace, this.now());
    this.repaint();
    if (this.query) this.applyFilter();
    this.applyCritical();
    this.store.set({ trace, rev: full.rev });
  }

  /** Paints the minimap again, for a new trace, size or theme. */
  repaint() {
    const { model } = this;
    if (!model.loaded || this.strip.clientWidth === 0) return;
    this.minimap.paint(model.trace, model.span, model.cuts, this.now());
    // The next frame places the minimap's window again.
    this.waterfall.refresh();
  }

  /** Open spans grow. */
  tick() {
    if (!this.model.loaded) return;
    this.model.now = this.now();
    this.waterfall.refresh();
  }

  /** @param {StreamEvent} event @param {any} data */
  event(event, data) {
    if (event === "resync") this.loader.whole();
    // An event of a session has neither marks nor cost, so these keep their old values.
    const { session } = this.store.value;
    if (event === "session" && data.id === this.id && session) this.store.set({ session: { ...session, ...data } });
    if (event === "spans" && data.session === this.id) this.loader.soon();
  }

  /** Follows the address after back, forward, or a link of this page. @param {{ query: string, hash: string }} at */
  follow(at) {
    if (!this.loader.trace || !this.address.moved(at)) return;
    if (!new URLSearchParams(at.query).get("focus") && this.focusRow !== null) this.unfocus();
    const span = spanIn(at.hash);
    if (span) this.goToSpan(span).catch((error) => this.fail(error));
  }

  /** Goes to a span by its id. An id that is not there (any more) changes nothing. @param {string} id */
  async goToSpan(id) {
    try {
      const span = await get(`spans/${enc(id)}`);
      if (this.loader.alive) this.goTo(span.row);
    } catch (error) {
      if (/** @type {Failure} */ (error).status !== 404) throw error;
    }
  }

  /** Goes to a row by its key. @param {number} row */
  goTo(row) {
    const { model } = this;
    if (model.loaded && !model.trace.index.has(row) && this.loader.trace?.index.has(row)) this.unfocus();
    const i = model.trace.index.get(row);
    if (i === undefined) return;
    if (model.hit && model.at(i) === undefined) this.waterfall.filter(null);
    this.waterfall.select(i);
  }

  /** Goes to a time. With an end, the axis stays on that period. @param {number} from @param {number | null} to */
  goToTime(from, to) {
    this.waterfall.setManual(to === null ? null : [from, to]);
    jump(this.waterfall, from, to ?? from);
  }

  /** The pane shows a span, whose address becomes the page's. @param {SpanDetail} span */
  named(span) {
    this.address.write((url) => { url.hash = span.id; });
  }

  /** @param {string} text */
  search(text) {
    this.query = parse(text);
    if (text.trim() || new URL(location.href).searchParams.has("q")) this.address.set("q", text.trim() ? text : null);
    if (this.model.loaded) this.applyFilter();
  }

  applyFilter() {
    const found = this.query ? matches(this.model.trace, this.query) : null;
    this.waterfall.filter(found?.hit ?? null);
    this.store.set({ found: found?.count ?? null });
  }

  /** @param {number} step */
  nextMatch(step) {
    const { hit } = this.model;
    if (hit) seek(this.waterfall, step, (i) => hit[i] === 1);
  }

  /** Number of equal siblings that a folded row represents, else 0. @param {string | null} key */
  group(key) {
    const i = this.model.trace.index.get(Number(key));
    const group = i === undefined ? undefined : this.model.groups.get(i);
    return group && !group.open ? group.count : 0;
  }

  /** Shows one subagent alone, or with null the session again. @param {string | number | null} ref */
  focus(ref) {
    if (ref === null) this.unfocus();
    else this.focusOn(ref).catch((error) => this.fail(error));
  }

  /** @param {string | number} ref id or row key of a subagent */
  async focusOn(ref) {
    const found = await this.subagent(ref);
    const full = this.loader.trace;
    if (!found || !this.loader.alive || !full) return;
    const { span } = found;
    const top = full.index.get(span.row);
    if (top === undefined) return;
    this.focusRow = span.row;
    this.model.folded.delete(span.row);
    // Folds subagents below it, because the user asked for this one.
    const kind = kindIndex(full, "subagent");
    for (let i = top + 1; i < full.last[top]; i += 1) if (full.kind[i] === kind) this.model.folded.add(full.row[i]);
    this.waterfall.setManual(null);
    this.address.set("focus", span.id);
    this.store.set({ focus: found });
    this.show();
    if (this.model.selected < 0) this.goTo(span.row);
  }

  /** A subagent with its path; null means the whole session. @param {string | number} ref */
  async subagent(ref) {
    try {
      const [columns, { path }] = await Promise.all([get(`sessions/${enc(this.id)}/spans?focus=${enc(ref)}`), get(`spans/${enc(ref)}`)]);
      return "focus" in columns && columns.focus ? { span: columns.focus, path } : null;
    } catch (error) {
      const { status } = /** @type {Failure} */ (error);
      if (status === 404 || status === 400) return null;
      throw error;
    }
  }

  unfocus() {
    const from = this.focusRow;
    this.focusRow = null;
    this.address.set("focus", null);
    this.store.set({ focus: null });
    this.waterfall.setManual(null);
    this.show();
    if (from !== null && this.model.selected < 0) this.goTo(from);
  }

  /** Marks the critical path of the chosen turn, or removes the marks. */
  toggleCritical() {
    const { model } = this;
    if (this.criticalRow !== null || !model.loaded) {
      this.criticalRow = null;
    } else {
      const i = Math.max(0, model.selected);
      const turn = model.turnOf(i);
      this.criticalRow = model.trace.row[turn >= 0 ? turn : i];
      if (turn >= 0) this.waterfall.toggle(turn, true);
    }
    this.applyCritical();
  }

  applyCritical() {
    const { trace } = this.model;
    const top = this.criticalRow === null ? undefined : trace.index.get(this.criticalRow);
    if (top === undefined) {
      this.criticalRow = null;
      this.waterfall.mark(null);
      this.store.set({ critical: null });
      return;
    }
    const { marked, steps, own } = criticalPath(trace, top, this.now());
    this.waterfall.mark(marked);
    this.store.set({ critical: { own, steps: steps.length } });
  }
}
