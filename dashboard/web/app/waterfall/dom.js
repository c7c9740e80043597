// Writes only changes to the DOM. Writing an unchanged style still costs a style pass per row and frame.

/** @param {HTMLElement} element @param {string} name */
export function setClass(element, name) {
  if (element.className !== name) element.className = name;
}

/** @param {HTMLElement} element @param {boolean} hidden */
export function setHidden(element, hidden) {
  if (element.hidden !== hidden) element.hidden = hidden;
}

/** @param {HTMLElement} element @param {string} text */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A new element. @param {string} tag @param {string} name its classes @param {string} [role] */
export function make(tag, name, role) {
  const element = document.createElement(tag);
  element.className = name;
  if (role) element.setAttribute("role", role);
  return element;
}

/**
 * Draws one child of `host` per item. `pool` keeps elements of earlier draws; surplus ones are hidden.
 * @template T
 * @param {HTMLElement} host @param {HTMLElement[]} pool @param {string} tag @param {T[]} items
 * @param {(element: HTMLElement, item: T) => void} fill
 */
export function pooled(host, pool, tag, items, fill) {
  items.forEach((item, i) => {
    const element = pool[i] ??= host.appendChild(make(tag, ""));
    fill(element, item);
    setHidden(element, false);
  });
  for (let i = items.length; i < pool.length; i += 1) setHidden(pool[i], true);
}
