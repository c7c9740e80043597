// What the browser keeps for us between visits. A browser that keeps nothing still shows everything.

/** @param {string} key */
export function read(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** Keeps a value, or forgets it when the value is null. @param {string} key @param {string | null} value */
export function write(key, value) {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
  } catch {
    // The browser refuses storage: the value holds until the page is left.
  }
}
