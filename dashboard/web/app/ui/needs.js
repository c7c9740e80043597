// What needs the user now. Requested once; shown by the overview, the rail, the tab's title and icon.
/** @import { Need } from "../../types/answers" */
import { tell } from "./alerts.js";
import { plural } from "../format/quantity.js";
import { visible } from "../format/text.js";
import { useEffect, useMemo, useState } from "./html.js";
import { isMuted } from "./muted.js";
import { live } from "../net/event-stream.js";
import { setCount } from "./title.js";
import { throttle } from "../net/throttle.js";
import { useAnswer } from "./use-answer.js";

/** @type {Record<string, [icon: string, word: string, hint: string]>} */
export const NEEDS = {
  approval_likely: ["▲", "approval likely", "open far longer than usual; no hook reports an approval"],
  question: ["?", "question", "the agent asks"],
  turn_ended: ["✓", "turn ended", ""],
  failed: ["✕", "failed", ""],
  stalled: ["–", "stalled", "no event for ten minutes"],
};

/** How many sessions need the person, in the words of `hookspan watch`. @param {number} n */
export const needWords = (n) => (n === 0 ? "nothing needs you" : n === 1 ? "1 needs you" : `${n} need you`);

/** How many turns ended. @param {number} n */
export const endedWords = (n) => `${plural(n, "turn")} ended`;

/** The needs as a sentence for screen readers. @param {Need[]} needs */
export function said(needs) {
  if (!needs.length) return "Nothing needs you.";
  return `${needWords(needs.length)}: ${needs.map((need) => `${NEEDS[need.kind]?.[1] ?? "needs you"}, ${visible(need.project ?? need.session)}`).join("; ")}`;
}

function midnight() {
  const day = new Date();
  day.setHours(0, 0, 0, 0);
  return day.getTime() * 1_000;
}

/** The answer of `GET overview` for the user's day. Renewed when a session changes, and every minute. @param {boolean} on */
export function useOverview(on) {
  const [from, setFrom] = useState(midnight);
  const { data, error, reload } = useAnswer(on ? `overview?from_us=${from}` : null);
  const soon = useMemo(() => throttle(reload, 1_000), [on]);
  useEffect(() => live.listen((event) => {
    if (event === "session" || event === "resync" || event === "install") soon();
  }), [soon]);
  useEffect(() => {
    const timer = setInterval(() => {
      setFrom(midnight());
      if (!document.hidden) soon();
    }, 60_000);
    return () => clearInterval(timer);
  }, [soon]);
  const [, drawn] = useState(0);
  useEffect(() => {
    const muted = () => drawn((n) => n + 1);
    addEventListener("hookspan:muted", muted);
    return () => removeEventListener("hookspan:muted", muted);
  }, []);
  // Muted needs are not counted; Now still shows them.
  const needs = (data?.needs ?? []).filter((need) => !isMuted({ session: need.session, status: need.kind, since: need.since_us }));
  useEffect(() => setCount(needs.length), [needs.length]);
  useEffect(() => { if (data) tell(needs, data.ended); }, [data]);
  return { data, needs, error, reload };
}
