// Dialogs. Keys and buttons open them; Escape, a click outside, or the same key closes them.
/** @import { RefObject } from "preact" */

/** Opens a closed dialog and closes an open one. @param {HTMLDialogElement | null} dialog */
export function toggle(dialog) {
  if (!dialog) return;
  if (dialog.open) {
    dialog.close();
    return;
  }
  dialog.showModal();
  dialog.dispatchEvent(new Event("hookspan:open"));
}

/** A click handler that closes the dialog when the click is beside its content.
 * @param {RefObject<HTMLDialogElement>} dialog @returns {(event: Event) => void} */
export const closeBeside = (dialog) => (event) => {
  if (event.target === dialog.current) dialog.current?.close();
};
