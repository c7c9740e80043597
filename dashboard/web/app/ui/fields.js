// Filters and choices in a page's bar. Stored in the address.
/** @import { QueryParams, Go } from "../../types/app" */
import { html, useMemo } from "./html.js";

/** The parameters of the address, and how to set one. @param {string} path @param {string} query @param {Go} go @returns {QueryParams} */
export function useQuery(path, query, go) {
  const params = useMemo(() => new URLSearchParams(query), [query]);
  /** @param {string | Record<string, string>} name a parameter, or several with their values @param {string} [text] */
  const set = (name, text = "") => {
    const changed = new URLSearchParams(location.search);
    changed.delete("cursor");
    for (const [key, value] of typeof name === "string" ? [[name, text]] : Object.entries(name)) {
      if (value) changed.set(key, value);
      else changed.delete(key);
    }
    go(`${path}${changed.size ? `?${changed}` : ""}`, { replace: true });
  };
  return { params, set };
}

/** A handler that passes on the text of the field or choice. @param {(text: string) => unknown} action @returns {(event: Event) => unknown} */
export const onText = (action) => (event) => action(/** @type {HTMLInputElement | HTMLSelectElement} */ (event.currentTarget).value);

/** A handler that passes on whether the box is ticked. @param {(ticked: boolean) => unknown} action @returns {(event: Event) => unknown} */
export const onTick = (action) => (event) => action(/** @type {HTMLInputElement} */ (event.currentTarget).checked);

/** A filter of the bar: a text field, or a choice when there are `options`.
 * @param {QueryParams & { name: string, label?: string, options?: string[], size?: number | string }} props */
export function Field({ name, label = name, params, set, options, size = 10 }) {
  const value = params.get(name) ?? "";
  if (options) {
    return html`<label class="field">${label} <select value=${value} onChange=${onText((text) => set(name, text))}>
      ${options.map((option) => html`<option value=${option}>${option ? option.replace("_", " ") : "all"}</option>`)}</select></label>`;
  }
  return html`<label class="field">${label} <input size=${size} value=${value} onChange=${onText((text) => set(name, text.trim()))} /></label>`;
}

/**
 * A group of buttons, one of them pressed.
 * @template {string | number} T
 * @param {{ name: string, values: T[], now: T, choose: (value: T) => unknown, word?: (value: T) => string | number }} props
 */
export function Choice({ name, values, now, choose, word = (value) => value }) {
  return html`<span class="choice" role="group" aria-label=${name}>${values.map((value) => html`
    <button type="button" aria-pressed=${value === now} onClick=${() => choose(value)}>${word(value)}</button>`)}</span>`;
}

/** The head of a column by which a list can be sorted; `now` is the direction in force. A second press reverses the order.
 * @param {{ label: string, now: "asc" | "desc" | null, sort: () => unknown }} props */
export function SortHead({ label, now, sort }) {
  return html`<th class="r" aria-sort=${now && `${now}ending`}><button type="button" class="sort" onClick=${sort}>${label}${now ? (now === "asc" ? " ▴" : " ▾") : ""}</button></th>`;
}

/** The order that the address asks for: its column, and what heads of columns need.
 * @param {QueryParams} query @param {string} first the column unless another is asked for */
export function useSort({ params, set }, first) {
  const sort = params.get("sort") ?? first;
  /** @type {"asc" | "desc"} */
  const order = params.get("order") === "asc" ? "asc" : "desc";
  /** @param {string} name @param {string} [label] */
  const head = (name, label = name) => html`<${SortHead} label=${label} now=${sort === name ? order : null} sort=${() => set({
    sort: name === first ? "" : name, order: sort === name && order === "desc" ? "asc" : "",
  })} />`;
  return { sort, order, head };
}
