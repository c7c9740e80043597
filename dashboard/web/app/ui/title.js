// The tab's title and icon: the page's name, and how many sessions need the user.
import { visible } from "../format/text.js";

let name = "hookspan";
let count = 0;

function show() {
  const text = `${count ? `(${count}) ` : ""}${name}`;
  if (document.title !== text) document.title = text;
}

/** Sets the page's name, which may contain hostile text. @param {string} text */
export function setTitle(text) {
  name = `${visible(text).slice(0, 80)} · hookspan`;
  show();
}

/** Shows the number of needs in title and icon. Each icon is a file, because our policy refuses `data:`. @param {number} needs */
export function setCount(needs) {
  count = needs;
  show();
  const icon = document.querySelector('link[rel="icon"]');
  if (!icon) return;
  const file = needs === 0 ? "icon.svg" : needs > 9 ? "icon-many.svg" : `icon-${needs}.svg`;
  const url = new URL(`../icons/${file}`, import.meta.url).pathname;
  if (icon.getAttribute("href") !== url) icon.setAttribute("href", url);
}
