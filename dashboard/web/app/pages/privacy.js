// What is stored, what is sent, and how to delete it.
/** @import { PostAnswer } from "../../types/answers" */
/** @import { Failure } from "../../types/app" */
import { onText } from "../ui/fields.js";
import { html, useRef, useState } from "../ui/html.js";
import { enc, post, save } from "../net/api.js";
import { door } from "../net/door.js";
import { plural } from "../format/quantity.js";
import { visible } from "../format/text.js";
import { Page, Trouble, useTitle } from "../ui/page.js";
import { useAnswer } from "../ui/use-answer.js";
import { sheet } from "../ui/sheet.js";

await sheet("pages");

const DAY_US = 86_400e6;
/** @type {Record<string, string>} */
const MODES = { none: "nothing", full: "everything", redacted: "without secrets" };

export function Privacy() {
  const { data, error, reload } = useAnswer("privacy");
  useTitle("Privacy");
  /** @param {string} mode */
  const word = (mode) => MODES[mode] ?? visible(mode);
  return html`<${Page} title="Privacy" error=${error} reload=${reload} ready=${data}>${() => data && html`
    <section aria-labelledby="kept"><h2 id="kept">What is kept, and what leaves</h2>
      <table class="list narrow-table"><thead><tr><th>content</th><th>kept on this machine</th><th>in the search index</th><th>sent to destinations</th></tr></thead>
        <tbody>${data.classes.map((one) => html`<tr key=${one.name}><td>${visible(one.name).replaceAll("_", " ")}</td><td>${word(one.mode)}</td><td class="dim">${word(one.indexed)}</td>
          <td class=${one.exported === "none" ? "good" : "warn"}>${one.exported === "none" ? "✓ " : "▲ "}${word(one.exported)}</td></tr>`)}</tbody></table>
      <dl class="tiles privacy-tiles">
        <div><dt>retention</dt><dd>${data.retention_days ? plural(data.retention_days, "day") : "forever"}</dd></div>
        <div><dt>secrets redacted in the index</dt><dd>${data.redacted.toLocaleString("en")}</dd></div>
        <div><dt>sign-in required</dt><dd class=${data.token_required ? "good" : "warn"}>${data.token_required ? "✓ yes" : "▲ no"}</dd></div>
      </dl>
      ${data.destinations.length > 0 && html`<p>Preview what a destination would get of the last session: ${data.destinations.map((name) => html`<button type="button" class="link" key=${name} onClick=${() => save(`privacy/preview?destination=${enc(name)}`)}>${visible(name)}</button> `)}</p>`}
      <p class="dim"><code>hookspan config show</code> prints the settings in use. Press <kbd>b</kbd> to blur texts while you share your screen.</p></section>
    <${Access} />
    <${Audit} />
    <${Purge} done=${reload} />`}<//>`;
}

/** Who may read: signed-in browsers, and tokens of scripts. */
function Access() {
  const { data, error, reload } = useAnswer("access");
  const [failed, setFailed] = useState(/** @type {Failure | null} */ (null));
  /** @param {{ session: string } | { token: string }} what */
  const end = (what) => post("access/revoke", what).then(reload, setFailed);
  const trouble = failed ?? error;
  return html`<section aria-labelledby="access"><h2 id="access">Who may read this</h2>
    ${data && html`<table class="list narrow-table"><thead><tr><th>browser or script</th><th>since</th><th>last used</th><th>expires</th><th>action</th></tr></thead>
      <tbody>${data.sessions.map((one) => html`<tr key=${one.id}><td>${visible(one.browser)}${one.current ? " (this one)" : ""}</td><td class="num">${at(one.created_us)}</td><td class="num">${at(one.used_us)}</td><td class="num">${at(one.expires_us)}</td>
        <td><button type="button" aria-label=${`sign out ${visible(one.browser)}`} onClick=${() => (one.current ? post("logout", {}).finally(() => door.leave()) : end({ session: one.id }))}>sign out</button></td></tr>`)}
      ${data.tokens.map((one) => html`<tr key=${`token ${one.name}`}><td>token <code>${visible(one.name)}</code></td><td class="num">${at(one.created_us)}</td><td class="num">${at(one.used_us)}</td><td class="dim">when revoked</td>
        <td><button type="button" aria-label=${`revoke ${visible(one.name)}`} onClick=${() => end({ token: one.name })}>revoke</button></td></tr>`)}
      ${data.sessions.length + data.tokens.length === 0 && html`<tr><td colspan="5" class="dim">No sign-in is required, so nobody is signed in.</td></tr>`}</tbody></table>`}
    <p class="dim"><code>hookspan open</code> signs a browser in, <code>hookspan token create NAME</code> makes a token for a script.</p>
    ${trouble && html`<${Trouble} error=${trouble} />`}</section>`;
}

function Audit() {
  const { data, error } = useAnswer("audit");
  return html`<section aria-labelledby="audit"><h2 id="audit">Audit log</h2>
    ${data && html`<ul class="plain">${data.refused.map(({ what, count }) => html`<li key=${what}>${count} refused: ${what}</li>`)}
      ${data.items.slice(0, 50).map((one, i) => html`<li key=${i}>${at(one.at_us)} ${one.what} <span class="dim">${visible(one.detail)}</span></li>`)}</ul>`}
    ${error && html`<${Trouble} error=${error} />`}</section>`;
}

/** @param {number | null} us */
const at = (us) => (us === null ? "–" : new Date(us / 1_000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }));

/** @param {{ done: () => void }} props */
function Purge({ done }) {
  const [before, setBefore] = useState("");
  const [project, setProject] = useState("");
  const [plan, setPlan] = useState(/** @type {PostAnswer<"privacy/purge"> | null} */ (null));
  const [result, setResult] = useState(/** @type {PostAnswer<"privacy/purge"> | null} */ (null));
  const [error, setError] = useState(/** @type {Failure | null} */ (null));
  const [busy, setBusy] = useState(false);
  const yes = useRef(/** @type {HTMLElement | null} */ (null));
  const asked = () => {
    /** @type {{ before_us?: number, project?: string }} */
    const body = {};
    if (before) body.before_us = new Date(`${before}T00:00:00`).getTime() * 1_000;
    if (project.trim()) body.project = project.trim();
    return body;
  };
  /** @param {boolean} dry_run */
  const send = (dry_run) => {
    setBusy(true);
    setError(null);
    return post("privacy/purge", { ...asked(), dry_run }).then((answer) => {
      setPlan(dry_run ? answer : null);
      setResult(dry_run ? null : answer);
      if (dry_run) yes.current?.scrollIntoView({ block: "nearest" });
      else done();
    }, setError).finally(() => setBusy(false));
  };
  /** @param {(text: string) => void} action */
  const change = (action) => onText((text) => {
    action(text);
    setPlan(null);
    setResult(null);
  });
  const today = new Date(Date.now() + DAY_US / 1_000).toISOString().slice(0, 10);
  return html`<section aria-labelledby="purge" class="purge"><h2 id="purge">Delete sessions</h2>
    <p class="dim">Deletes rows, search index, raw hooks, and spans that wait to be sent. Spans already sent to a destination stay there.</p>
    <form class="filters" onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); send(true); }}>
      <label class="field">last used before <input type="date" max=${today} value=${before} onInput=${change(setBefore)} /></label>
      <label class="field">project <input value=${project} placeholder="name of its folder" onInput=${change(setProject)} /></label>
      <button type="submit" disabled=${busy || (!before && !project.trim())}>Preview</button></form>
    <div role="status">${plan && html`<p class="plan" ref=${yes}>${plan.sessions === 0 ? "No session matches: nothing would be deleted." : html`Would delete <b>${plural(plan.sessions, "session")}</b>${plan.more ? ", and more in a second run" : ""}. This cannot be undone.
      <button type="button" class="danger" disabled=${busy} onClick=${() => send(false)}>Delete ${plural(plan.sessions, "session")}</button>`}</p>`}
    ${result && html`<p class="calm">✓ Deleted ${plural(result.deleted_sessions, "session")}, ${plural(result.deleted_spans, "span")}, ${plural(result.deleted_hooks, "raw hook")}.${result.damaged_databases ? ` ${plural(result.damaged_databases, "damaged database")} moved aside may still contain some of it; \`hookspan prune --damaged\` deletes them.` : ""}</p>`}</div>
    ${error && html`<${Trouble} error=${error} />`}</section>`;
}
