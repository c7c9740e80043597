// Runs before the first paint, so that neither the theme nor unblurred text flashes.
(() => {
  /** @param {string} key */
  const get = (key) => { try { return localStorage.getItem(key); } catch { return null; } };
  const root = document.documentElement;
  const theme = get("hookspan.theme");
  if (theme === "dark" || theme === "light") root.dataset.theme = theme;
  if (get("hookspan.blur") === "1") root.dataset.blur = "1";
})();
