// Ctrl-K: pages, commands, saved views and sessions by name.
/** @import { SessionRow } from "../../types/answers" */
/** @import { Entry, Go } from "../../types/app" */
/** @import { RefObject } from "preact" */
import { closeBeside } from "./dialog.js";
import { onText } from "./fields.js";
import { html, useEffect, useMemo, useState } from "./html.js";
import { get } from "../net/api.js";
import { visible } from "../format/text.js";
import { read, write } from "./local-storage.js";

const SHOWN_MAX = 12;
const SAVED_MAX = 30;

/** Saved views. @returns {{ name: string, url: string }[]} */
export function saved() {
  try {
    const list = JSON.parse(read("hookspan.views") ?? "[]");
    return Array.isArray(list) ? list.filter((one) => typeof one?.name === "string" && typeof one.url === "string" && /^\/(?!\/)/.test(one.url)) : [];
  } catch {
    return [];
  }
}

/** @param {string} name */
function keep(name) {
  const url = location.pathname + location.search + location.hash;
  const rest = saved().filter((one) => one.name !== name);
  write("hookspan.views", JSON.stringify([{ name, url }, ...rest].slice(0, SAVED_MAX)));
}

/**
 * Entries that contain every word of the text, best first. Pure.
 * @template {{ group: string, name: string }} T @param {T[]} entries @param {string} text
 */
export function rank(entries, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return entries
    .flatMap((entry, order) => {
      const name = `${entry.group} ${entry.name}`.toLowerCase();
      if (!words.every((word) => name.includes(word))) return [];
      const start = words.length && entry.name.toLowerCase().startsWith(words[0]) ? 0 : 1;
      return [{ entry, order: start * 1_000 + order }];
    })
    .sort((a, b) => a.order - b.order)
    .map(({ entry }) => entry);
}

/** @param {{ dialog: RefObject<HTMLDialogElement>, pages: string[][], commands: Omit<Entry, "group">[], go: Go }} props */
export function Palette({ dialog, pages, commands, go }) {
  const [text, type] = useState("");
  const [at, setAt] = useState(0);
  const [sessions, setSessions] = useState(/** @type {SessionRow[]} */ ([]));
  const [open, setOpen] = useState(0);
  useEffect(() => {
    const shown = () => {
      type("");
      setAt(0);
      setOpen((n) => n + 1);
    };
    dialog.current?.addEventListener("hookspan:open", shown);
    return () => dialog.current?.removeEventListener("hookspan:open", shown);
  }, []);
  useEffect(() => {
    if (!open) return undefined;
    const control = new AbortController();
    const timer = setTimeout(() => {
      get(`sessions?limit=8${text.trim() ? `&q=${encodeURIComponent(text.trim())}` : ""}`, { signal: control.signal })
        .then(({ items }) => setSessions(items), () => setSessions([]));
    }, text ? 120 : 0);
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  }, [text, open]);
  const entries = useMemo(() => {
    /** @type {Entry[]} */
    const fixed = [
      ...pages.map(([url, name, keys]) => ({ group: "page", name, hint: keys, run: () => go(url) })),
      ...saved().map(({ name, url }) => ({ group: "view", name, hint: url, run: () => go(url) })),
      ...commands.map((one) => ({ group: "do", ...one })),
    ];
    const found = rank(fixed, text);
    /** @type {Entry[]} */
    const named = sessions.map((one) => ({
      group: "session", name: one.first_prompt ?? one.id, hint: one.project ?? "", blur: true, run: () => go(one.url),
    }));
    const word = text.trim();
    /** @type {Entry[]} */
    const asked = word ? [
      { group: "search", name: `search everywhere: ${word}`, run: () => go(`/search?q=${encodeURIComponent(word)}`) },
      { group: "save", name: `save this view as: ${word}`, run: () => keep(word) },
    ] : [];
    return [...found.slice(0, word ? 6 : SHOWN_MAX - 4), ...named, ...asked].slice(0, SHOWN_MAX + 4);
  }, [text, sessions, open]);
  const chosen = Math.min(at, entries.length - 1);
  /** @param {Entry | undefined} entry */
  const run = (entry) => {
    dialog.current?.close();
    entry?.run();
  };
  /** @param {KeyboardEvent} event */
  const key = (event) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step) {
      event.preventDefault();
      setAt((chosen + step + entries.length) % Math.max(1, entries.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      run(entries[chosen]);
    }
  };
  return html`<dialog class="palette" ref=${dialog} aria-label="Go to or do" onClick=${closeBeside(dialog)}>
    <input type="text" role="combobox" aria-expanded="true" aria-controls="palette-list" aria-autocomplete="list"
      aria-activedescendant=${entries.length ? `palette-${chosen}` : null} aria-label="Page, session or command" placeholder="page, session, command, or words to search for"
      value=${text} onInput=${onText((words) => { type(words); setAt(0); })} onKeyDown=${key} autofocus />
    <ul id="palette-list" role="listbox" aria-label="Choices">${entries.map((entry, i) => html`
      <li key=${`${entry.group} ${entry.name} ${i}`} id=${`palette-${i}`} role="option" aria-selected=${i === chosen} onClick=${() => run(entry)}>
        <span class="dim">${entry.group}</span><span class=${entry.blur ? "what blurry" : "what"}>${visible(entry.name)}</span><span class="dim hint">${visible(entry.hint ?? "")}</span></li>`)}</ul>
  </dialog>`;
}
