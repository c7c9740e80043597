// Times that tick.
import { age } from "../format/quantity.js";
import { html, useEffect, useState } from "./html.js";

/** The time now in microseconds, renewed every second while `on`. */
export function useNow(on = true) {
  const [now, set] = useState(() => Date.now() * 1_000);
  useEffect(() => {
    if (!on) return undefined;
    const timer = setInterval(() => set(Date.now() * 1_000), 1_000);
    return () => clearInterval(timer);
  }, [on]);
  return now;
}

/** An age that is updated. Screen readers do not speak it. @param {{ since: number, suffix?: string }} props */
export function Age({ since, suffix = "" }) {
  const now = useNow();
  return html`<time class="num" dateTime=${new Date(since / 1_000).toISOString()}>${suffix === " ago" && now - since < 1e6 ? "just now" : age(now - since) + suffix}</time>`;
}
