// Which files a session changed, with a diff of each change. Hooks carry no position, so line numbers are relative.
/** @import { Go } from "../../types/app" */
import { html, useEffect, useLayoutEffect, useState } from "../ui/html.js";
import { enc } from "../net/api.js";
import { plural } from "../format/quantity.js";
import { bind } from "../ui/keys.js";
import { visible } from "../format/text.js";
import { Change } from "../ui/change.js";
import { Loading, Trouble } from "../ui/page.js";
import { useAnswer } from "../ui/use-answer.js";

/** @param {{ id: string, query: string, go: Go, rev: number }} props */
export function Edits({ id, query, go, rev }) {
  const { data, error, reload } = useAnswer(`sessions/${enc(id)}/edits`);
  useEffect(() => { if (data) reload(); }, [rev]);
  const items = data?.items ?? [];
  const asked = new URLSearchParams(query).get("file");
  const at = Math.max(0, items.findIndex((item) => item.path === asked));
  const file = items[at];
  /** @param {string} path */
  const choose = (path) => {
    const url = new URL(location.href);
    url.searchParams.set("file", path);
    go(url.href, { replace: true });
  };
  /** @param {number} step */
  const move = (step) => items[at + step] && choose(items[at + step].path);
  useLayoutEffect(() => bind({ j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1) }), [data, at]);
  if (error) return html`<section class="edits" aria-label="Edits"><${Trouble} error=${error} reload=${reload} /></section>`;
  if (!data) return html`<section class="edits" aria-label="Edits"><${Loading} /></section>`;
  if (!items.length) return html`<section class="edits" aria-label="Edits"><p class="dim pad pad-y">No file was edited in this session.</p></section>`;
  /** @param {"added" | "removed"} key */
  const sum = (key) => items.reduce((all, item) => all + item[key], 0);
  return html`<section class="edits" aria-label="Edits">
    <div class="edits-files"><p class="dim num">${plural(items.length, "file")} <span class="good">+${sum("added")}</span> <span class="bad">−${sum("removed")}</span></p>
      <ul class="plain">${items.map((item) => html`<li key=${item.path}><button type="button" class="plain-button" aria-pressed=${item === file} onClick=${() => choose(item.path)}>
        <span class="blurry file">${visible(item.path)}</span><span class="num good">+${item.added}</span><span class="num bad">−${item.removed}</span>
        <span class="dim num">${item.turns.length ? `turn ${item.turns.join(", ")}` : ""}${item.errors ? ` · ${item.errors} failed` : ""}</span></button></li>`)}</ul></div>
    <div class="edits-diffs" tabIndex="0" role="region" aria-label="Changes of the file"><h2 class="blurry">${visible(file.path)}${file.page_url && html` <a class="aside" href=${file.page_url}>all touches of this file</a>`}</h2>
      <p class="dim">Line numbers are relative to the text of each change.</p>
      ${file.spans.map((span) => html`<${Change} key=${span.id} span=${span} />`)}</div></section>`;
}
