// Styles of some pages, fetched with their scripts and as safe as these: the address belongs to this build.

/** @type {Map<string, Promise<void>>} */
const sheets = new Map();

/** Adds a style sheet of `styles/` before the last one, which overrides the others. A module that awaits it is not drawn unstyled.
 * @param {string} name @returns {Promise<void>} */
export function sheet(name) {
  const known = sheets.get(name);
  if (known) return known;
  const link = document.createElement("link");
  /** @type {Promise<void>} */
  const here = new Promise((resolve) => { link.onload = link.onerror = () => resolve(); });
  sheets.set(name, here);
  link.rel = "stylesheet";
  link.href = new URL(`../styles/${name}.css`, import.meta.url).href;
  const all = document.querySelectorAll('link[rel="stylesheet"]');
  document.head.insertBefore(link, all[all.length - 1] ?? null);
  return here;
}
