// Starts the dashboard: signs in with a code from the address, then draws the frame.
/** @import { Failure } from "../types/app" */
import { Frame } from "./frame.js";
import { door } from "./net/door.js";
import { live } from "./net/event-stream.js";
import { removeWorkers } from "./net/workers.js";
import { takeCode } from "./pages/login.js";
import { prepare } from "./routes.js";
import { html, render } from "./ui/html.js";
import { start as startKeys } from "./ui/keys.js";
import { followLinks, go } from "./ui/router.js";

async function main() {
  prepare(location.pathname);
  const code = takeCode();
  /** @type {Failure | null} */
  let failed = null;
  await removeWorkers();
  try {
    if (code) await door.signIn(code);
    else await door.enter();
    if (location.pathname === "/login") go("/", { replace: true });
  } catch (error) {
    failed = /** @type {Failure} */ (error);
  }
  followLinks();
  startKeys();
  const root = document.getElementById("app");
  if (root) render(html`<${Frame} failed=${code ? failed : null} />`, root);
  live.start();
}

main();
