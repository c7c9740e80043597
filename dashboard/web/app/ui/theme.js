// Theme and blur: attributes of the document, kept between visits. `boot.js` sets them before the first paint.
import { write } from "./local-storage.js";

export const THEMES = ["system", "dark", "light"];

/** @param {string} theme one of `THEMES` */
export function setTheme(theme) {
  write("hookspan.theme", theme === "system" ? null : theme);
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

/** @param {boolean} on */
export function setBlur(on) {
  write("hookspan.blur", on ? "1" : null);
  if (on) document.documentElement.dataset.blur = "1";
  else delete document.documentElement.dataset.blur;
}

/**
 * Reads colours of the theme for a canvas. The variables hold both themes (`light-dark()`), so the browser must resolve
 * them: the element's text colour is set to the variable and read back.
 * @param {HTMLElement} element an element whose text colour nobody sees @returns {(name: string) => string}
 */
export function colors(element) {
  const style = getComputedStyle(element);
  return (name) => {
    element.style.color = `var(${name})`;
    return style.color;
  };
}

/** Calls `action` when the theme changes, by the user or the system. Returns a function that stops. @param {() => unknown} action */
export function onTheme(action) {
  const chosen = new MutationObserver(action);
  chosen.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  const system = matchMedia("(prefers-color-scheme: light)");
  system.addEventListener("change", action);
  return () => {
    chosen.disconnect();
    system.removeEventListener("change", action);
  };
}
