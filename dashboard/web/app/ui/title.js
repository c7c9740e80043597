// The tab's title and icon: the name of the page, and how many sessions need the person.
import { visible } from "../format/text.js";

let name = "hookspan";
let count = 0;

function show() {
  const text = `${count ? `(${count}) ` : ""}${name}`;
  if (document.title !== text) document.title = text;
}

/** Names the page. The name may hold hostile text. @param {string} text */
export function setTitle(text) {
  name = `${visible(text).slice(0, 80)} · hookspan`;
  show();
}

/** Shows the count of needs in the title and the icon. Each icon is a file, since our policy refuses `data:`. @param {number} needs */
export function setCount(needs) {
  count = needs;
  show();
  const icon = document.querySelector('link[rel="icon"]');
  if (!icon) return;
  const file = needs === 0 ? "icon.svg" : needs > 9 ? "icon-many.svg" : `icon-${needs}.svg`;
  const url = new URL(`../icons/${file}`, import.meta.url).pathname;
  if (icon.getAttribute("href") !== url) icon.setAttribute("href", url);
}
