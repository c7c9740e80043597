// The frame of a page: bar, title, and what replaces missing content.
/** @import { Children, Failure, View } from "../../types/app" */
import { html, useEffect } from "./html.js";
import { setTitle } from "./title.js";

/** An error, and what to do. @param {{ error: Failure, reload?: () => unknown }} props */
export function Trouble({ error, reload }) {
  const signed = error.status === 401;
  // The API's messages about parameters are for programmers.
  const title = error.status === 400 ? "This address has a filter that is not valid" : error.message;
  const hint = error.hint?.includes("/api/") ? "" : error.hint;
  return html`<section class="trouble" role="alert">
    <h2>${signed ? "Signed out" : title}</h2>
    <p>${error.detail}</p>
    ${hint && html`<p class="dim">${hint}</p>`}
    ${reload && !signed && html`<button type="button" onClick=${reload}>Try again</button>`}
  </section>`;
}

/** An empty placeholder with the final height. */
export function Loading() {
  return html`<div class="loading" role="status">loading…</div>`;
}

/** Names the page. @param {string} title */
export function useTitle(title) {
  useEffect(() => setTitle(title), [title]);
}

/**
 * A page with a bar. `children` draws the content when `ready` is there.
 * @param {{ title: string, tools?: Children, error: Failure | null, reload: () => unknown, ready: unknown, children: () => View }} props
 */
export function Page({ title, tools, error, reload, ready, children }) {
  return html`<div class="page"><header class="bar"><h1>${title}</h1>${tools && html`<div class="tools">${tools}</div>`}</header>
    ${error && html`<${Trouble} error=${error} reload=${reload} />`}
    ${ready ? html`<div class="scroll">${children()}</div>` : !error && html`<${Loading} />`}</div>`;
}
