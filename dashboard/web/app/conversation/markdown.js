// Markdown as a plain tree: text, and nodes of a few known tags. The text comes from an agent, so it is hostile: no HTML is read,
// nothing is fetched, only web addresses become links, and the work is bounded by size, depth and density. Pure.
/** @import { Token } from "../../vendor/marked.js" */
/** @import { Block } from "../../types/conversation" */
import { Lexer } from "../../vendor/marked.js";
import { safeLink } from "../format/text.js";

/** Longer texts are shown unformatted: a list of 16,000 items takes the lexer half a second. */
const TEXT_MAX = 24 * 1_024;
const LINES_MAX = 1_200;
/** Deeper lists and quotes are shown as text. Checked before the lexer starts, because it recurses. */
const DEPTH_MAX = 12;
const NODES_MAX = 3_000;
/** Characters that may begin emphasis, code or links. The lexer takes quadratic time in them, so a paragraph with more stays text. */
const MARKS_MAX = 500;
const INLINE_MAX = 12_000;
const MARK = /[_*~[\]<`\\&!@]/g;
/** The beginning of a quote or a list item. */
const OPENER = /\s*(?:>|[-*+](?=\s)|\d{1,9}[.)](?=\s))/y;
/** Shortest run of one character that the lexer may read again and again. */
const RUN = /([^\s\w])\1{60,}|[ \t]{400,}/;

/** @param {string} text @returns {(Block | string)[]} */
export function markdown(text) {
  const source = text.replace(/\r\n?/g, "\n");
  if (source.length > TEXT_MAX || tooMuch(source.split("\n"))) return plain(source);
  const left = { nodes: NODES_MAX };
  try {
    const lexer = new Lexer({ gfm: true });
    lexer.blockTokens(source, lexer.tokens);
    // Blocks put inline text into this queue; inline text adds none.
    for (const { src, tokens } of lexer.inlineQueue) inline(lexer, src, tokens);
    const blocks = lexer.tokens.flatMap((token) => block(token, 0, left));
    return left.nodes < 0 ? plain(source) : blocks;
  } catch {
    return plain(source);
  }
}

/** @param {string} text @returns {Block[]} */
const plain = (text) => [{ tag: "pre", kids: [text] }];

/** Whether the text has too many lines, or nests too deeply. @param {string[]} lines */
function tooMuch(lines) {
  if (lines.length > LINES_MAX) return true;
  for (const line of lines) {
    let depth = 0;
    OPENER.lastIndex = 0;
    while (depth <= DEPTH_MAX && OPENER.test(line)) depth += 1;
    // A level is indented by at least two spaces.
    if (depth > DEPTH_MAX || (/^\s*(?:[-*+>]|\d+[.)])/.test(line) && line.search(/\S/) > DEPTH_MAX * 4)) return true;
  }
  return false;
}

/** @param {Lexer} lexer @param {string} src @param {Token[]} tokens */
function inline(lexer, src, tokens) {
  const marks = src.match(MARK)?.length ?? 0;
  if (src.length > INLINE_MAX || marks > MARKS_MAX || RUN.test(src)) tokens.push({ type: "text", raw: src, text: src });
  else lexer.inlineTokens(src, tokens);
}

/** @param {Token} token @param {number} depth @param {{ nodes: number }} left @returns {(Block | string)[] | Block} */
function block(token, depth, left) {
  left.nodes -= 1;
  if (left.nodes < 0) return [];
  if (depth > DEPTH_MAX) return [token.raw];
  /** @param {Token[]} [tokens] */
  const below = (tokens) => (tokens ?? []).flatMap((one) => block(one, depth + 1, left));
  switch (token.type) {
    case "space": case "def": case "checkbox": return [];
    case "hr": return { tag: "hr", kids: [] };
    case "heading": return { tag: "p", name: `md-h md-h${Math.min(token.depth ?? 1, 4)}`, kids: below(token.tokens) };
    case "paragraph": return { tag: "p", kids: below(token.tokens) };
    case "blockquote": return { tag: "blockquote", kids: below(token.tokens) };
    case "code": return { tag: "pre", kids: [token.text ?? ""] };
    case "list": return list(token, below);
    case "table": return table(token, below);
    case "html":
      if (token.block) return { tag: "p", kids: [token.raw.trim()] };
      return /^<br\s*\/?>$/i.test(token.raw) ? { tag: "br", kids: [] } : [token.raw];
    default: return phrase(token, below);
  }
}

/** @param {Token} token @param {(tokens?: Token[]) => (Block | string)[]} below @returns {(Block | string)[] | Block} */
function phrase(token, below) {
  switch (token.type) {
    case "strong": return { tag: "strong", kids: below(token.tokens) };
    case "em": return { tag: "em", kids: below(token.tokens) };
    case "del": return { tag: "del", kids: below(token.tokens) };
    case "codespan": return { tag: "code", kids: [token.text ?? ""] };
    case "br": return { tag: "br", kids: [] };
    case "link": return link(token, below);
    case "image": return { tag: "span", name: "md-image", kids: [`image: ${entities(token.text ?? "")} (${entities(token.href ?? "")})`] };
    case "escape": return [token.text ?? ""];
    default: return token.tokens ? below(token.tokens) : [entities(token.text ?? token.raw)];
  }
}

/**
 * A link followed by its address, so that its text cannot deceive.
 * @param {Token} token @param {(tokens?: Token[]) => (Block | string)[]} below
 */
function link(token, below) {
  const address = entities(token.href ?? "");
  const url = safeLink(address);
  const kids = below(token.tokens);
  const same = token.text === token.href || token.raw === token.text;
  /** @type {(Block | string)[]} */
  const after = same ? [] : [{ tag: "span", name: "md-address", kids: [` (${address})`] }];
  return url === null ? [...kids, ...after] : [{ tag: "a", href: url, kids }, ...after];
}

/** @param {Token} token @param {(tokens?: Token[]) => (Block | string)[]} below @returns {Block} */
function list(token, below) {
  const start = token.ordered && typeof token.start === "number" && token.start !== 1 ? token.start : undefined;
  const kids = (token.items ?? []).map((item) => {
    const text = below(item.tokens);
    return { tag: "li", kids: item.task ? [item.checked ? "☑ " : "☐ ", ...text] : text };
  });
  return { tag: token.ordered ? "ol" : "ul", start, kids };
}

/** @param {Token} token @param {(tokens?: Token[]) => (Block | string)[]} below @returns {Block} */
function table(token, below) {
  /** @param {NonNullable<Token["header"]>} cells @param {string} tag @returns {Block} */
  const row = (cells, tag) => ({
    tag: "tr", kids: cells.map((cell) => ({ tag, name: cell.align === "right" ? "r" : undefined, kids: below(cell.tokens) })),
  });
  return { tag: "table", kids: [
    { tag: "thead", kids: [row(token.header ?? [], "th")] },
    { tag: "tbody", kids: (token.rows ?? []).map((cells) => row(cells, "td")) },
  ] };
}

/** @type {Record<string, string>} */
const NAMED = { amp: "&", lt: "<", gt: ">", quot: "\"", apos: "'", nbsp: "\u00A0", hellip: "…", mdash: "—", ndash: "–", copy: "©", rarr: "→", larr: "←", times: "×", middot: "·" };

/** Character references as characters. Unknown ones stay as they are. @param {string} text */
export function entities(text) {
  return text.replace(/&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([A-Za-z]{2,8}));/g, (whole, decimal, hex, name) => {
    if (name) return Object.hasOwn(NAMED, name) ? NAMED[name] : whole;
    const code = decimal ? Number(decimal) : parseInt(hex, 16);
    return code > 0 && code <= 0x10FFFF && !(code >= 0xD800 && code <= 0xDFFF) ? String.fromCodePoint(code) : "\uFFFD";
  });
}
