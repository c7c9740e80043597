// The tab: what the page is called, and how many sessions need the person.
import { visible } from "../format/text.js";

let name = "hookspan";
let count = 0;

function show() {
  const text = `${count ? `(${count}) ` : ""}${name}`;
  if (document.title !== text) document.title = text;
}

/** Names the page. Text of payloads may be part of it. */
export function setTitle(text) {
  name = `${visible(text).slice(0, 80)} · hookspan`;
  show();
}

/** Puts the count of needs into the title and the icon. The icon is a file each: `data:` is not allowed. */
export function setCount(needs) {
  count = needs;
  show();
  const icon = document.querySelector('link[rel="icon"]');
  if (!icon) return;
  const file = needs === 0 ? "icon.svg" : needs > 9 ? "icon-many.svg" : `icon-${needs}.svg`;
  const url = new URL(`../${file}`, import.meta.url).pathname;
  if (icon.getAttribute("href") !== url) icon.setAttribute("href", url);
}
