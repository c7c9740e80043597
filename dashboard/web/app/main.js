// Starts the dashboard: signs in with a token from the address, then draws the frame.
/** @import { Failure } from "../types/app" */
import { Frame } from "./frame.js";
import { live } from "./net/event-stream.js";
import { signIn, takeToken } from "./pages/login.js";
import { html, render } from "./ui/html.js";
import { start as startKeys } from "./ui/keys.js";
import { followLinks, go } from "./ui/router.js";

async function main() {
  const token = takeToken();
  /** @type {Failure | null} */
  let failed = null;
  if (token) {
    try {
      await signIn(token);
      if (location.pathname === "/login") go("/", { replace: true });
    } catch (error) {
      failed = /** @type {Failure} */ (error);
      go("/login", { replace: true });
    }
  }
  followLinks();
  startKeys();
  const root = document.getElementById("app");
  if (root) render(html`<${Frame} failed=${failed} />`, root);
  live.start();
}

main();
