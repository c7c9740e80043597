// Saved filters of a list, as chips. The collector stores them, so every browser shows them.
/** @import { Go } from "../../types/app" */
import { visible } from "../format/text.js";
import { post } from "../net/api.js";
import { html, useState } from "./html.js";
import { notify } from "./notify.js";
import { useAnswer } from "./use-answer.js";

/** The query as a text, which does not depend on the order of parameters. @param {URLSearchParams} params */
function text(params) {
  const all = new URLSearchParams(params);
  all.delete("cursor");
  all.sort();
  return all.toString();
}

/** @param {{ page: "sessions" | "files" | "errors", params: URLSearchParams }} props */
export function Saved({ page, params }) {
  const { data, reload } = useAnswer("filters");
  const [naming, setNaming] = useState(false);
  const now = text(params);
  const kept = data?.items.filter((one) => one.page === page) ?? [];
  const known = kept.some((one) => text(new URLSearchParams(one.query)) === now);
  if (!kept.length && !now) return null;
  /** @param {"filters" | "filters/delete"} path @param {object} body */
  const send = (path, body) => post(path, { page, ...body }).then(() => {
    setNaming(false);
    reload();
  }, (error) => notify(error.detail ?? error.message));
  /** @param {SubmitEvent} event */
  const keep = (event) => {
    event.preventDefault();
    const { value } = /** @type {HTMLInputElement} */ (/** @type {HTMLFormElement} */ (event.currentTarget).elements.namedItem("name"));
    if (value.trim()) send("filters", { name: value, query: now });
  };
  return html`<nav class="saved" aria-label="Kept filters">
    ${kept.map(({ name, query, url }) => html`<span class="chip" key=${name}><a href=${url} aria-current=${text(new URLSearchParams(query)) === now ? "true" : null}>${visible(name)}</a>
      <button type="button" class="link" aria-label=${`forget the filter ${visible(name)}`} onClick=${() => send("filters/delete", { name })}>✕</button></span>`)}
    ${now && !known && (naming ? html`<form onSubmit=${keep}><input name="name" size="14" maxLength="40" placeholder="name" aria-label="Name of this filter" ref=${(/** @type {HTMLInputElement | null} */ field) => field?.focus()} onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === "Escape" && setNaming(false)} /></form>`
      : html`<button type="button" class="link" onClick=${() => setNaming(true)}>keep this filter</button>`)}</nav>`;
}
