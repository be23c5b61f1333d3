// Elements and times for all widgets. Text is only ever set with textContent.

import { holdKeys } from "./keys.js";

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
 * Makes the root element of a widget, which holds the keys after a click. Nothing in it is typeset as mathematics.
 * @param {Element} el
 * @param {string} className
 */
export function makeRoot(el, className) {
  const root = make(el, "div", `speechlab-live ${className} tex2jax_ignore mathjax_ignore`);
  root.setAttribute("role", "group");
  holdKeys(root);
  return root;
}

/** A time in the form of a clock, with hours if there are any. @param {number} seconds @param {number} [decimals] */
export function clock(seconds, decimals = 2) {
  const units = Math.round(Math.max(seconds, 0) * 10 ** decimals);
  const minutes = Math.floor(units / (60 * 10 ** decimals));
  const rest = ((units % (60 * 10 ** decimals)) / 10 ** decimals).toFixed(decimals).padStart(3 + decimals, "0");
  const hours = Math.floor(minutes / 60);
  return hours ? `${hours}:${String(minutes % 60).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

/** A time with tenths of a second. @param {number} seconds */
export function shortClock(seconds) {
  return clock(seconds, 1);
}

/** A time in words for screen readers. @param {number} seconds */
export function spoken(seconds) {
  const tenths = Math.round(seconds * 10);
  const minutes = Math.floor(tenths / 600);
  const parts = [`${((tenths % 600) / 10).toFixed(1)} seconds`];
  if (minutes) parts.unshift(`${minutes % 60} min`);
  if (minutes >= 60) parts.unshift(`${Math.floor(minutes / 60)} h`);
  return parts.join(" ");
}
