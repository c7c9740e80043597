// A value with a menu: show only rows with this value, show only the others, search for the value, copy it.
/** @import { Children } from "../../types/app" */
import { visible } from "../format/text.js";
import { enc } from "../net/api.js";
import { html, useState } from "./html.js";
import { copyText } from "./notify.js";

/**
 * An entry of the menu: its name, its key on the value if it has one, and what it does or where it leads.
 * @typedef {[name: string, key: string, act: string | (() => unknown)]} Act
 */

/** @param {{ value: string, acts?: Act[], children?: Children }} props */
export function Value({ value, acts = [], children }) {
  const [open, setOpen] = useState(false);
  /** @type {Act[]} */
  const all = [...acts, ["search", "/", `/search?q=${enc(`"${value}"`)}`], ["copy", "c", () => copyText(value)]];
  /** @param {KeyboardEvent} event */
  const key = (event) => {
    const found = all.find(([, one]) => one === event.key);
    if (event.key === "Escape" && open) setOpen(false);
    else if (found && typeof found[2] === "function") found[2]();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return html`<span class="value" onKeyDown=${key}><button type="button" class="plain-button blurry" aria-expanded=${open} title="filter, exclude, copy" onClick=${() => setOpen(!open)}>${children ?? visible(value)}</button>
    ${open && html`<span class="acts" role="group" aria-label=${`with ${visible(value)}`}>${all.map(([name, , act]) => typeof act === "string" ? html`<a href=${act}>${name}</a>`
      : html`<button type="button" class="link" onClick=${() => { setOpen(false); act(); }}>${name}</button>`)}</span>`}</span>`;
}
