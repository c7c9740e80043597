// The token arrives in the fragment, is erased at once, and becomes a cookie that scripts cannot read.
import { html, useEffect, useState } from "../ui/html.js";
import { post } from "../net/api.js";
import { setTitle } from "../ui/title.js";
import { Trouble } from "../ui/pieces.js";

/** The token of `#t=…`, taken out of the address before anything else happens. */
export function takeToken() {
  const token = /^#t=(.+)$/.exec(location.hash)?.[1];
  if (!token) return null;
  history.replaceState(null, "", location.pathname + location.search);
  return decodeURIComponent(token);
}

export async function signIn(token) {
  await post("login", { token });
}

export function Login({ failed, go }) {
  const [error, set] = useState(failed);
  const [token, type] = useState("");
  useEffect(() => { setTitle("Sign in"); }, []);
  const submit = (event) => {
    event.preventDefault();
    signIn(token.trim().replace(/^.*#t=/, "")).then(() => go("/"), set);
  };
  return html`<section class="card narrow">
    <h1>Sign in</h1>
    <p>Run <code>hookspan open</code>: it opens this dashboard signed in. Or paste the token, or the whole address, that
      <code> hookspan status</code> prints.</p>
    <form onSubmit=${submit}>
      <label>Token <input type="password" autocomplete="off" value=${token} onInput=${(e) => type(e.target.value)} /></label>
      <button type="submit">Sign in</button>
    </form>
    ${error && html`<${Trouble} error=${{ ...error, status: 0, message: error.message, detail: error.detail, hint: error.hint }} />`}
  </section>`;
}
