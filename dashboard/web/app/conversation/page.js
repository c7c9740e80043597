// The conversation of a session: prompts, thoughts, actions and answers, each on one line with its bar.
/** @import { ConversationProps } from "../../types/conversation" */
/** @import { Session, Turn } from "../../types/answers" */
/** @import { KeyMap } from "../../types/app" */
/** @import { Trace } from "../../types/trace" */
import { plural } from "../format/quantity.js";
import { enc, get } from "../net/api.js";
import { turnsByRow } from "../trace/turns.js";
import { useNow } from "../ui/clock.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../ui/html.js";
import { notify } from "../ui/notify.js";
import { asMarkdown, copied } from "./copy.js";
import { conversationKeys } from "./keys.js";
import { Strip } from "./strip.js";
import { Talk } from "./talk.js";
import { Texts } from "./texts.js";

/** Rows in one question of a copy. */
const ASK_ROWS = 48;

/** @param {ConversationProps} props */
export function Conversation({ id, trace, rev, turns, session, chosen, named, hit, go, show, bind }) {
  const host = useRef(/** @type {HTMLElement | null} */ (null));
  const [talk, setTalk] = useState(/** @type {Talk | null} */ (null));
  const running = session !== null && (session.state === "running" || session.state === "tool_open");
  const now = useNow(running);
  const { rows, inOrder, byRow } = useMemo(() => inTurn(trace, turns), [trace, turns]);

  useLayoutEffect(() => {
    if (!host.current) return undefined;
    /** @param {number[]} asked */
    const ask = (asked) => get(`sessions/${enc(id)}/steps?rows=${asked.join(",")}`);
    /** @type {Talk} */
    let made;
    const texts = new Texts(ask, () => made.arrived());
    made = new Talk(host.current, texts, {
      onSelect: (i) => go(made.script.trace.row[i]),
      onWhole: (i) => (made.script.isWhole(i) ? show(made.script.trace.row[i]) : made.toggle(i, true)),
    });
    setTalk(made);
    return () => {
      texts.stop();
      made.destroy();
    };
  }, [id]);
  useLayoutEffect(() => talk ? bind(conversationKeys(talk, { copy: () => copy(id, talk), go })) : undefined, [talk]);
  useLayoutEffect(() => {
    if (!talk || !trace) return;
    const first = talk.script.trace.n === 0;
    outdate(talk, trace);
    if (first) talk.following = running && !named;
    talk.show(trace, now - trace.t0, hit, byRow);
  }, [talk, trace, rev, hit, byRow]);
  useLayoutEffect(() => {
    if (!talk || !trace || chosen === null) return;
    const i = trace.index.get(Number(chosen)) ?? -1;
    const first = talk.selected < 0;
    talk.choose(i, { scroll: !talk.following });
    if (first && i >= 0 && talk.script.form(i) === "prompt" && !talk.following) talk.toTop(i);
  }, [talk, chosen, trace]);
  useEffect(() => { if (running && trace) talk?.tick(now - trace.t0); }, [now]);

  const i = (chosen === null ? undefined : trace?.index.get(Number(chosen))) ?? -1;
  const at = trace ? rows.findIndex((row) => row <= i && i < trace.last[row]) : -1;
  /** @param {number} k */
  const jump = (k) => {
    if (!trace || !talk) return;
    talk.following = false;
    go(trace.row[rows[k]]);
    talk.toTop(rows[k]);
  };
  return html`<section class="cv" aria-label="Conversation">
    <${Strip} turns=${inOrder} at=${at} now=${now} go=${jump} />
    <div class="cv-tools"><span class="dim num">${plural(rows.length, "turn")}</span>
      <button type="button" class="link" title="Open every row (0)" onClick=${() => talk?.change(() => talk.script.setMode("all"))}>open all</button>
      <button type="button" class="link" title="Prompts alone (1)" onClick=${() => talk?.change(() => talk.script.setMode("prompts"))}>prompts</button>
      <button type="button" class="link" title="The turn as Markdown, without secrets (c)" onClick=${() => talk && copy(id, talk)}>copy turn as Markdown</button>
      ${running && html`<button type="button" class="link" title="Stay at the end while it runs (F)" onClick=${() => talk && follow(talk)}>follow</button>`}</div>
    <div class="cv-host" ref=${host}></div></section>`;
}

/** @param {Talk} talk */
export function follow(talk) {
  talk.following = true;
  talk.toEnd();
}

/**
 * The turns by their number. The order of rows is no help: a child that starts before its turn changes it.
 * @param {Trace | null} trace @param {Turn[]} turns
 */
function inTurn(trace, turns) {
  const found = trace ? [...turnsByRow(trace, turns)].sort(([, a], [, b]) => a.n - b.n) : [];
  return {
    rows: found.map(([i]) => i),
    inOrder: found.map(([, turn]) => turn),
    byRow: new Map(found.map(([i, turn]) => [trace?.row[i] ?? -1, turn])),
  };
}

/** Reads texts again if their row has ended or failed since. @param {Talk} talk @param {Trace} trace */
function outdate(talk, trace) {
  const before = talk.script.trace;
  const changed = [];
  for (const row of talk.texts.known.keys()) {
    const [i, j] = [before.index.get(row), trace.index.get(row)];
    if (i === undefined || j === undefined) continue;
    if (before.status[i] !== trace.status[j] || (before.dur[i] !== trace.dur[j] && trace.last[j] === j + 1)) changed.push(row);
  }
  talk.texts.outdate(changed);
}

/** Copies the turn of the chosen row. @param {string} id @param {Talk} talk */
async function copy(id, talk) {
  const { script } = talk;
  const i = talk.selected >= 0 ? talk.selected : script.rows.find((row) => row >= 0) ?? -1;
  if (i < 0) return;
  const top = script.top[i];
  const rows = copied(script, top).map((one) => script.trace.row[one]);
  const steps = new Map();
  try {
    while (rows.length) {
      const asked = rows.splice(0, ASK_ROWS);
      const { items, left } = await get(`sessions/${enc(id)}/steps?rows=${asked.join(",")}&purpose=copy`);
      for (const item of items) steps.set(item.row, item);
      if (items.length) rows.unshift(...left);
    }
    await navigator.clipboard.writeText(asMarkdown(script, top, (row) => steps.get(row)));
    notify("turn copied as Markdown, without secrets");
  } catch (error) {
    notify(error instanceof DOMException ? "the browser did not allow copying" : "the turn could not be read");
  }
}
