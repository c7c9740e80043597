// Signing in. The token arrives in the fragment, is erased at once, and becomes a cookie that scripts cannot read.
/** @import { Failure, Go } from "../../types/app" */
import { onText } from "../ui/fields.js";
import { html, useEffect, useState } from "../ui/html.js";
import { post } from "../net/api.js";
import { setTitle } from "../ui/title.js";
import { Trouble } from "../ui/page.js";

/** The token of `#t=…`. It is taken out of the address before anything else happens. */
export function takeToken() {
  const token = /^#t=(.+)$/.exec(location.hash)?.[1];
  if (!token) return null;
  history.replaceState(null, "", location.pathname + location.search);
  return decodeURIComponent(token);
}

/** @param {string} token */
export async function signIn(token) {
  await post("login", { token });
}

/** @param {{ failed: Failure | null, go: Go }} props */
export function Login({ failed, go }) {
  const [error, set] = useState(failed);
  const [token, type] = useState("");
  useEffect(() => { setTitle("Sign in"); }, []);
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    signIn(token.trim().replace(/^.*#t=/, "")).then(() => go("/"), set);
  };
  return html`<section class="card narrow">
    <h1>Sign in</h1>
    <p>Run <code>hookspan open</code>: it opens this dashboard signed in. Or paste the token, or the whole address, that
      <code> hookspan status</code> prints.</p>
    <form onSubmit=${submit}>
      <label>Token <input type="password" autocomplete="off" value=${token} onInput=${onText(type)} /></label>
      <button type="submit">Sign in</button>
    </form>
    ${error && html`<${Trouble} error=${{ message: error.message, detail: error.detail, hint: error.hint }} />`}
  </section>`;
}
