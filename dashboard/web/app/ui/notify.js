// Short messages at the foot of the page. Screen readers speak them.

/** @param {string} text */
export function notify(text) {
  dispatchEvent(new CustomEvent("hookspan:notify", { detail: text }));
}

/** Copies the address of this view to the clipboard, and says so. */
export function copyAddress() {
  navigator.clipboard?.writeText(location.href).then(() => notify("link copied"), () => notify("the browser did not allow copying"));
}

/** Calls `listener` for every message. Returns a function that stops. @param {(text: string) => void} listener */
export function onNotify(listener) {
  /** @param {Event} event */
  const heard = (event) => listener(/** @type {CustomEvent<string>} */ (event).detail);
  addEventListener("hookspan:notify", heard);
  return () => removeEventListener("hookspan:notify", heard);
}
