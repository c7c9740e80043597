// Short messages at the foot of the page. Screen readers speak them.

/** @param {string} text */
export function notify(text) {
  dispatchEvent(new CustomEvent("hookspan:notify", { detail: text }));
}

/** Copies a text to the clipboard, and says so. @param {string} text */
export function copyText(text, said = "copied") {
  navigator.clipboard?.writeText(text).then(() => notify(said), () => notify("the browser did not allow copying"));
}

/** Copies the address of this view. */
export const copyAddress = () => copyText(location.href, "link copied");

/** Calls `listener` for every message. Returns a function that stops. @param {(text: string) => void} listener */
export function onNotify(listener) {
  /** @param {Event} event */
  const heard = (event) => listener(/** @type {CustomEvent<string>} */ (event).detail);
  addEventListener("hookspan:notify", heard);
  return () => removeEventListener("hookspan:notify", heard);
}
