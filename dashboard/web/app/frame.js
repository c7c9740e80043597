// The frame around every page: navigation, help, palette, messages.
/** @import { Failure } from "../types/app" */
import { post } from "./net/api.js";
import { clock } from "./format/time.js";
import { door } from "./net/door.js";
import { live } from "./net/event-stream.js";
import { Login } from "./pages/login.js";
import { page, prefetch } from "./routes.js";
import { toggle } from "./ui/dialog.js";
import { Help } from "./ui/help.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./ui/html.js";
import { bind } from "./ui/keys.js";
import { said, useOverview } from "./ui/needs.js";
import { copyAddress, onNotify } from "./ui/notify.js";
import { Palette } from "./ui/palette.js";
import { PAGES, Rail } from "./ui/rail.js";
import { go, useRoute } from "./ui/router.js";
import { setBlur, setTheme, THEMES } from "./ui/theme.js";

const NOTE_MS = 2_500;
/** The other pages are fetched after the first one had time to draw. */
const PREFETCH_MS = 500;

/** @param {{ failed: Failure | null }} props why signing in failed */
export function Frame({ failed }) {
  const route = useRoute();
  const { connection, failing, lost } = useConnection();
  const [theme, chooseTheme] = useState(() => document.documentElement.dataset.theme ?? "system");
  const [blurred, chooseBlur] = useState(() => document.documentElement.dataset.blur === "1");
  const [spoken, speak] = useState("");
  const note = useNote();
  const help = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const palette = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const out = useSignedOut();
  useEffect(() => {
    if (out) return undefined;
    const timer = setTimeout(prefetch, PREFETCH_MS);
    return () => clearTimeout(timer);
  }, [out]);
  const overview = useOverview(!out && route.path !== "/login");
  // Spoken when the list changes, not when an age ticks.
  const needs = said(overview.needs);
  useEffect(() => { if (overview.data) speak(needs); }, [needs]);
  // Blurs at once and not at the next drawing, because somebody may be looking already.
  const toggleBlur = () => {
    const on = document.documentElement.dataset.blur !== "1";
    setBlur(on);
    chooseBlur(on);
  };
  // Bound before the browser draws, so that no key pressed at once is lost.
  useLayoutEffect(() => bind({
    "?": () => toggle(help.current),
    "Ctrl k": () => toggle(palette.current),
    y: copyAddress,
    b: toggleBlur,
    ...Object.fromEntries(PAGES.map(([url, , keys]) => [keys, () => go(url)])),
  }, { base: true }), []);
  const nextTheme = () => {
    const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    setTheme(next);
    chooseTheme(next);
  };
  const actions = {
    blurred, blur: toggleBlur, theme, nextTheme, goTo: () => toggle(palette.current), help: () => toggle(help.current),
  };
  const commands = [
    { name: blurred ? "show text again" : "blur text, for a shared screen", hint: "b", run: actions.blur },
    { name: "next theme: system, dark, light", run: nextTheme },
    { name: "keys", hint: "?", run: actions.help },
    { name: "copy the address of this view", hint: "y", run: copyAddress },
    { name: "sign out", run: () => post("logout", {}).finally(() => door.leave()) },
  ];
  return html`<div class=${lost ? "frame frame-lost" : "frame"}>
    <${Rail} path=${route.path} waiting=${overview.needs.length} failing=${failing} connection=${connection} actions=${actions} />
    <p class="sr" role="status">${spoken}</p>
    <main id="main" tabindex="-1">${lost && !out && html`<p class="lost" role="alert">Can't reach hookspan since ${clock(lost * 1_000).slice(0, 5)}. Hooks are kept in the journal; this page continues by itself.</p>`}${out ? html`<${Login} failed=${failed} go=${go} stay=${route.path !== "/login"} />` : page(route, failed, { ...overview, lost })}</main>
    <p class="toast" role="status">${note}</p>
    <${Palette} dialog=${palette} pages=${PAGES} commands=${commands} go=${go} />
    <${Help} dialog=${help} />
  </div>`;
}

/** Whether this page is not signed in. */
function useSignedOut() {
  const [out, set] = useState(door.out !== null);
  useEffect(() => {
    set(door.out !== null);
    return door.listen(() => set(door.out !== null));
  }, []);
  return out;
}

/** The stream's state, since when it is lost, and which destinations fail. */
function useConnection() {
  const [connection, setConnection] = useState(live.state);
  const [failing, setFailing] = useState(/** @type {string[]} */ ([]));
  const [lost, setLost] = useState(live.lost);
  useEffect(() => {
    // The stream may have changed between the first drawing and now.
    setConnection(live.state);
    setLost(live.lost);
    return live.listen((event, data) => {
      if (event === "state") {
        setConnection(data);
        setLost(live.lost);
      }
      if (event === "health") setFailing(data.failing);
    });
  }, []);
  return { connection, failing, lost };
}

/** The last message, for a short time. */
function useNote() {
  const [note, setNote] = useState("");
  useEffect(() => {
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    return onNotify((text) => {
      clearTimeout(timer);
      setNote(text);
      timer = setTimeout(() => setNote(""), NOTE_MS);
    });
  }, []);
  return note;
}
