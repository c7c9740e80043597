// What needs the user now. Requested once; shown by the overview, the rail, the tab's title and icon.
/** @import { Need } from "../../types/answers" */
import { plural } from "../format/quantity.js";
import { visible } from "../format/text.js";
import { useEffect, useMemo, useState } from "./html.js";
import { live } from "../net/event-stream.js";
import { setCount } from "./title.js";
import { throttle } from "../net/throttle.js";
import { useAnswer } from "./use-answer.js";

/** @type {Record<string, [icon: string, word: string, hint: string]>} */
export const NEEDS = {
  approval_likely: ["✋", "approval likely", "open far longer than usual; no hook reports an approval"],
  question: ["?", "question", "the agent asks"],
  your_turn: ["▲", "your turn", ""],
  failed: ["✕", "failed", ""],
  stalled: ["–", "stalled", "no event for ten minutes"],
};

/** The needs as a sentence for screen readers. @param {Need[]} needs */
export function said(needs) {
  if (!needs.length) return "Nothing needs you.";
  return `${plural(needs.length, "session")} waiting: ${needs.map((need) => `${NEEDS[need.kind]?.[1] ?? "needs you"}, ${visible(need.project ?? need.session)}`).join("; ")}`;
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
  const needs = data?.needs.length ?? 0;
  useEffect(() => setCount(needs), [needs]);
  return { data, error, reload };
}
