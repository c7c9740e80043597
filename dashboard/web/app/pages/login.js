// Signing in. The code is in the fragment, which no request contains, and is erased at once.
/** @import { Failure, Go } from "../../types/app" */
import { onText } from "../ui/fields.js";
import { html, useEffect, useState } from "../ui/html.js";
import { door } from "../net/door.js";
import { setTitle } from "../ui/title.js";
import { Trouble } from "../ui/page.js";

/** The code of `#c=…`. It is taken out of the address before anything else happens. */
export function takeCode() {
  const found = /^#([ct])=(.+)$/.exec(location.hash);
  if (!found) return null;
  history.replaceState(null, "", location.pathname + location.search);
  // `#t=` held the token of an earlier version. The page says what to do.
  return found[1] === "c" ? found[2] : "an-old-address";
}

/** @param {{ failed: Failure | null, go: Go, stay?: boolean }} props `stay` shows the page that was asked for once it can be */
export function Login({ failed, go, stay = false }) {
  const [error, set] = useState(failed);
  const [code, type] = useState("");
  useEffect(() => { setTitle("Sign in"); }, []);
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    door.signIn(code.trim().replace(/^.*#c=/, "")).then(() => stay || go("/"), set);
  };
  const why = error ?? (door.out && { message: door.out.message, detail: door.out.detail });
  return html`<section class="card narrow">
    <h1>Sign in</h1>
    <p>This dashboard is for the account that runs hookspan. In a terminal of that account, run</p>
    <p><code>hookspan open</code></p>
    <p>It opens the dashboard signed in. Where it cannot start your browser, <code>hookspan open --print</code> prints an address that
      signs one browser in, within a minute: open it, or paste it here.</p>
    <form onSubmit=${submit}>
      <label>Address or code <input type="password" autocomplete="off" value=${code} onInput=${onText(type)} /></label>
      <button type="submit" disabled=${!code.trim()}>Sign in</button>
    </form>
    ${why && html`<${Trouble} error=${{ message: why.message, detail: why.detail }} />`}
  </section>`;
}
