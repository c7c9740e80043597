// What the browser stores for us between visits. Everything works without it.

/** @param {string} key */
export function read(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** Stores a value, or removes it if it is null. @param {string} key @param {string | null} value */
export function write(key, value) {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
  } catch {
    // The browser refuses storage. The value lasts until the page is left.
  }
}
