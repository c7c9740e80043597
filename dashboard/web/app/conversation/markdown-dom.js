// Markdown on the page: makes DOM nodes from the tree of `markdown.js`. Its texts become text nodes.
/** @import { Block } from "../../types/conversation" */
import { visible } from "../format/text.js";
import { make } from "../waterfall/dom.js";
import { markdown } from "./markdown.js";

/** Allowed tags. Any other tag in a tree becomes a `span`. */
const TAGS = new Set([
  "p", "strong", "em", "del", "code", "pre", "ul", "ol", "li", "blockquote", "table", "thead", "tbody", "tr", "th", "td", "a", "br", "hr", "span",
]);

/** @param {string} text @returns {HTMLElement} */
export function rendered(text) {
  const host = make("div", "md blurry");
  host.append(...nodes(markdown(text)));
  return host;
}

/** @param {(Block | string)[]} blocks @returns {(Node | string)[]} */
function nodes(blocks) {
  return blocks.map((block) => (typeof block === "string" ? visible(block) : element(block)));
}

/** @param {Block} block */
function element({ tag, name, href, start, kids }) {
  const made = make(TAGS.has(tag) ? tag : "span", name ?? "");
  if (made instanceof HTMLAnchorElement && href) {
    made.href = href;
    made.target = "_blank";
    made.rel = "noopener noreferrer";
    made.title = visible(href);
  }
  if (made instanceof HTMLOListElement && start !== undefined) made.start = start;
  made.append(...nodes(kids));
  return made;
}
