// Shown before the first hook: which steps are done and which remain. The first hook changes the page without a reload.
import { html, useEffect } from "../ui/html.js";
import { visible } from "../format/text.js";
import { useAnswer } from "../ui/use-answer.js";

/** @type {Record<string, string>} */
const TITLES = {
  install: "Attach hookspan to Cursor's hooks",
  restart: "Restart Cursor",
  first_hook: "Send a prompt: waiting for the first hook",
};
/** @type {Record<string, [icon: string, word: string]>} */
const ICONS = { ok: ["✓", "done"], todo: ["○", "to do"], failed: ["✕", "failed"] };
// Shown until the collector answers. The steps are always the same.
const STEPS = [
  { id: "install", state: "todo", command: "hookspan install", hint: "adds hookspan to hooks.json; everything else in it stays" },
  { id: "restart", state: "todo", command: null, hint: "Cursor reads its hooks when it starts" },
  { id: "first_hook", state: "todo", command: null, hint: "the session appears here without a reload" },
];

export function Waiting() {
  const { data, reload } = useAnswer("install", (event) => event === "install" || event === "session");
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && reload(), 5_000);
    return () => clearInterval(timer);
  }, []);
  const steps = data?.steps?.length ? data.steps : STEPS;
  const next = steps.findIndex((step) => step.state !== "ok");
  return html`<section class="card narrow waiting" aria-labelledby="waiting">
    <h2 id="waiting">Waiting for the first hook</h2>
    <ol>${steps.map((step, i) => {
      const [icon, word] = ICONS[step.state] ?? ["?", "other"];
      return html`<li key=${step.id} class=${`step step-${step.state}${i === next ? " step-next" : ""}`}>
        <span class="step-icon"><span aria-hidden="true">${icon}</span><span class="sr">${word}</span></span>
        <div><b>${TITLES[step.id] ?? visible(step.id)}</b>
          ${step.command && step.state !== "ok" && html` <code>${visible(step.command)}</code>`}
          <p class="dim">${visible(step.hint ?? "")}</p></div></li>`;
    })}</ol>
    <p class="dim">Or look around first: <code>hookspan demo</code> opens a dashboard with sample data, kept separate from your own.
      <code>hookspan doctor</code> checks each step.</p>
  </section>`;
}
