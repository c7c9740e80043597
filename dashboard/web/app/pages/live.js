// Every span as it happens, newest first.
/** @import { SessionRow, SpanRow } from "../../types/answers" */
/** @import { Failure } from "../../types/app" */
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../ui/html.js";
import { enc, get } from "../net/api.js";
import { bind } from "../ui/keys.js";
import { duration } from "../format/quantity.js";
import { clock } from "../format/time.js";
import { visible } from "../format/text.js";
import { throttle } from "../net/throttle.js";
import { useRows } from "../ui/chosen-row.js";
import { useNow } from "../ui/clock.js";
import { Page, useTitle } from "../ui/page.js";
import { useLive } from "../ui/use-answer.js";
import { live } from "../net/event-stream.js";
import { KEPT_MAX, upsert } from "./live-rows.js";
import { sheet } from "../ui/sheet.js";

await sheet("pages");

/** @type {Record<string, string>} */
const STATUS = { error: "✕ failed", ok: "✓ ok", open: "… open", unknown: "? no end" };

export function Live() {
  const [rows, setRows] = useState(/** @type {SpanRow[] | null} */ (null));
  const [held, setHeld] = useState(/** @type {SpanRow[] | null} */ (null));
  const [error, setError] = useState(/** @type {Failure | null} */ (null));
  const [names, setNames] = useState(/** @returns {Map<string, SessionRow>} */ () => new Map());
  const paused = useRef(false);
  const seen = useRef(/** @type {Set<number>} */ (new Set()));
  useTitle("Live");
  const load = async () => {
    try {
      const items = await newest(seen.current);
      seen.current = new Set(items.map((row) => row.row));
      setError(null);
      if (paused.current) setHeld((old) => upsert(old ?? [], items));
      else setRows((old) => upsert(old ?? [], items));
    } catch (failure) {
      setError(/** @type {Failure} */ (failure));
    }
  };
  const name = () => get("sessions?limit=100").then(({ items }) => setNames(new Map(items.map((one) => [one.id, one]))), () => {});
  const soon = useMemo(() => throttle(load, 300), []);
  const nameSoon = useMemo(() => throttle(name, 2_000), []);
  useEffect(() => {
    load();
    name();
  }, []);
  useLive((event) => {
    if (event === "spans" || event === "resync") soon();
    if (event === "session" || event === "resync") nameSoon();
  }, []);
  const known = useMemo(() => new Set(rows?.map((row) => row.row)), [rows]);
  const waiting = (held ?? []).filter((row) => !known.has(row.row)).length;
  const toggle = () => {
    paused.current = !paused.current;
    if (!paused.current && held) setRows((old) => upsert(old ?? [], held));
    setHeld(paused.current ? [] : null);
  };
  const { at, list, keys } = useRows(rows?.length ?? 0);
  useLayoutEffect(() => bind({ ...keys, " ": toggle }), [rows, at, held]);
  const now = useNow(Boolean(rows?.some(runs)));
  const tools = html`<span class=${live.state === "connected" ? "good" : "warn"}>${live.state === "connected" ? "● following" : "○ waiting for the collector"}</span>
    <button type="button" aria-pressed=${held !== null} onClick=${toggle}>${held !== null ? `resume (${waiting} new)` : "pause"}</button>`;
  return html`<${Page} title="Live" tools=${tools} error=${error} reload=${load} ready=${rows}>${() => rows && (rows.length === 0
    ? html`<p class="dim pad-y">Nothing yet: what Cursor's agent does appears here as it happens.</p>`
    : html`<table class="list live" ref=${list}><thead><tr><th>time</th><th>session</th><th>kind</th><th class="wide">span</th><th class="r">duration</th><th>status</th></tr></thead>
    <tbody>${rows.map((row, i) => html`<tr key=${row.row} class=${i === at ? "chosen" : ""}><td class="num dim">${clock(row.start_us).slice(0, 10)}</td>
      <td class="dim blurry">${visible(names.get(row.session)?.project ?? row.session.slice(0, 8))}</td><td><i class=${`dot k-${row.kind}`}></i>${row.kind}</td>
      <td class="wide"><a class="blurry" href=${row.url}>${visible(row.label)}</a></td>
      <td class="r num">${row.dur_us === null ? !runs(row) ? "?" : `${duration(Math.max(0, Math.floor((now - row.start_us) / 1e6) * 1e6))} …` : duration(row.dur_us)}</td>
      <td class=${row.status === "error" ? "bad" : row.status === "open" ? "warn" : "dim"}>${STATUS[row.status] ?? "other"}</td></tr>`)}</tbody></table>`)}<//>`;
}

/** Whether it still runs. @param {SpanRow} row */
const runs = (row) => row.status === "open";

/** The newest spans, back to one that was already loaded, so that none is missed. @param {Set<number>} seen */
async function newest(seen) {
  /** @type {SpanRow[]} */
  const all = [];
  /** @type {string | null} */
  let cursor = null;
  do {
    /** @type {import("../../types/answers").Answer<"spans">} */
    const page = await get(`spans?limit=200${cursor ? `&cursor=${enc(cursor)}` : ""}`);
    all.push(...page.items);
    cursor = page.next;
  } while (cursor && seen.size && all.length < KEPT_MAX && !all.some((row) => seen.has(row.row)));
  return all;
}
