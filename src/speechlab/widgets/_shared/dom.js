// What every widget builds its page of. Text is only ever set with textContent.

/**
 * Appends a new element.
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Element} parent
 * @param {Name} name
 * @param {string} [className]
 * @param {string} [text]
 * @returns {HTMLElementTagNameMap[Name]}
 */
export function make(parent, name, className, text) {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  if (node instanceof HTMLButtonElement) node.type = "button";
  parent.append(node);
  return node;
}

/**
 * Makes the root of a widget: nothing in it is typeset as mathematics, and no key leaves it for the notebook, where
 * "x" cuts the cell.
 * @param {Element} el
 * @param {string} className
 */
export function makeRoot(el, className) {
  const root = make(el, "div", `speechlab-live ${className} tex2jax_ignore mathjax_ignore`);
  root.setAttribute("role", "group");
  root.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey)) event.stopPropagation();
  });
  return root;
}

/** @param {number} seconds */
export function clock(seconds) {
  const hundredths = Math.round(Math.max(seconds, 0) * 100);
  const rest = ((hundredths % 6000) / 100).toFixed(2).padStart(5, "0");
  return `${Math.floor(hundredths / 6000)}:${rest}`;
}

/** A shorter time, in tenths. @param {number} seconds */
export function shortClock(seconds) {
  const tenths = Math.round(Math.max(seconds, 0) * 10);
  return `${Math.floor(tenths / 600)}:${((tenths % 600) / 10).toFixed(1).padStart(4, "0")}`;
}

/** @param {number} seconds */
export function spoken(seconds) {
  const minutes = Math.floor(seconds / 60);
  const rest = `${(seconds - 60 * minutes).toFixed(1)} seconds`;
  return minutes ? `${minutes} min ${rest}` : rest;
}
