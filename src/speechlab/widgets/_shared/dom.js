// Elements and times for all widgets. Text is only ever set with textContent.

import { holdKeys } from "./keys.js";

const SPEEDS = [0.5, 0.75, 1, 1.25, 1.5, 2, 3];

/**
 * Appends a new element with attributes and listeners: values that are functions. Without a parent it stands alone.
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Element | null} parent
 * @param {Name} name
 * @param {string} [className]
 * @param {string | Record<string, any>} [text] Its text, or its attributes.
 * @param {Record<string, any>} [attributes]
 * @returns {HTMLElementTagNameMap[Name]}
 */
export function make(parent, name, className, text, attributes = {}) {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (node instanceof HTMLButtonElement) node.type = "button";
  if (typeof text === "object") attributes = text;
  else if (text !== undefined) node.textContent = text;
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(key, value);
    else node.setAttribute(key, String(value));
  }
  parent?.append(node);
  return node;
}

/**
 * A box to tick, with its label.
 * @param {Element} parent @param {string} className @param {string} text @param {boolean} checked @param {(checked: boolean) => void} act
 */
export function makeBox(parent, className, text, checked, act) {
  const label = make(parent, "label", className);
  const box = make(label, "input", "", { type: "checkbox", change: () => act(box.checked) });
  box.checked = checked;
  make(label, "span", "sl-name", text, { dir: "auto" });
  return box;
}

/** Fills a list of options. @param {HTMLSelectElement} select @param {[string, string][]} choices Values and labels. @param {string} chosen */
export function fillOptions(select, choices, chosen) {
  select.replaceChildren();
  for (const [value, text] of choices) make(select, "option", "", text, { value });
  select.value = chosen;
}

/** Fills the list of speeds, and adds the present one if it is not among them. @param {HTMLSelectElement} select @param {number} speed */
export function fillSpeeds(select, speed) {
  const speeds = [...new Set([...SPEEDS, speed])].sort((a, b) => a - b);
  fillOptions(select, speeds.map((choice) => [String(choice), `${choice}×`]), String(speed));
}

/** The list of keys below a widget. @param {Element} root @param {string[][]} keys Keys and what they do. */
export function makeKeys(root, keys) {
  const help = make(root, "details", "sl-keys");
  make(help, "summary", "", "Keys");
  const list = make(help, "ul");
  for (const [key, act] of keys) {
    const line = make(list, "li");
    make(line, "kbd", "", key);
    make(line, "span", "", act);
  }
}

/** A view of a model: its root element, which holds the keys after a click, and what ends with it. Nothing in it is typeset as mathematics. */
export class View {
  off = new AbortController();
  frame = 0;

  /** @param {any} model @param {Element} el @param {string} className */
  constructor(model, el, className) {
    this.model = model;
    this.root = make(el, "div", `speechlab-live ${className} tex2jax_ignore mathjax_ignore`, { role: "group" });
    holdKeys(this.root);
  }

  /** Listens to the model until the view ends. @param {Record<string, (...values: any[]) => void>} listeners */
  hear(listeners) {
    for (const [name, listener] of Object.entries(listeners)) {
      this.model.on(name, listener);
      this.atEnd(() => this.model.off(name, listener));
    }
  }

  /** Acts whenever an element changes its size, until the view ends. @param {Element} node @param {(entries: ResizeObserverEntry[]) => void} act */
  watchSize(node, act) {
    const sized = new ResizeObserver(act);
    sized.observe(node);
    this.atEnd(() => sized.disconnect());
  }

  /** @param {() => void} act */
  atEnd(act) {
    this.off.signal.addEventListener("abort", act);
  }

  /** Sets values of the model, and sends them to Python. @param {Record<string, any>} values */
  put(values) {
    for (const [name, value] of Object.entries(values)) this.model.set(name, value);
    this.model.save_changes();
  }

  /** @param {() => void} act Acts in the next frame, in place of what was to be done there. */
  nextFrame(act) {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(act);
  }

  dispose() {
    this.off.abort();
    cancelAnimationFrame(this.frame);
  }
}

/** Where an event is in the width of an element: 0 at its left, 1 at its right. @param {Element} node @param {MouseEvent} event */
export function shareAt(node, { clientX }) {
  const { left, width } = node.getBoundingClientRect();
  return Math.min(Math.max((clientX - left) / width, 0), 1);
}

/** The pen of a canvas with all pixels of the screen, in units of the page; null if it has no width. @param {HTMLCanvasElement} canvas */
export function penOf(canvas) {
  const { clientWidth, clientHeight } = canvas;
  const ratio = window.devicePixelRatio || 1;
  const pen = clientWidth ? canvas.getContext("2d") : null;
  canvas.width = Math.round(clientWidth * ratio);
  canvas.height = Math.round(clientHeight * ratio);
  pen?.scale(ratio, ratio);
  return pen;
}

/** Where a key of a slider leads, in seconds; undefined for other keys. @param {string} key @param {number} now @param {number} end */
export function soughtBy(key, now, end) {
  return {
    ArrowLeft: now - 1, ArrowDown: now - 1, ArrowRight: now + 1, ArrowUp: now + 1,
    PageDown: now - 5, PageUp: now + 5, Home: 0, End: end,
  }[key];
}

/** A time in the form of a clock, with hours if there are any. @param {number} seconds @param {number} [decimals] */
export function clock(seconds, decimals = 2) {
  const units = Math.round(Math.max(seconds, 0) * 10 ** decimals);
  const minutes = Math.floor(units / (60 * 10 ** decimals));
  const remainder = ((units % (60 * 10 ** decimals)) / 10 ** decimals).toFixed(decimals).padStart(3 + decimals, "0");
  const hours = Math.floor(minutes / 60);
  return hours ? `${hours}:${String(minutes % 60).padStart(2, "0")}:${remainder}` : `${minutes}:${remainder}`;
}

/** A time with tenths of a second. @param {number} seconds */
export function shortClock(seconds) {
  return clock(seconds, 1);
}

/** A time in words for screen readers. @param {number} seconds */
export function spoken(seconds) {
  const tenths = Math.round(seconds * 10);
  const minutes = Math.floor(tenths / 600);
  const words = [`${((tenths % 600) / 10).toFixed(1)} seconds`];
  if (minutes) words.unshift(`${minutes % 60} min`);
  if (minutes >= 60) words.unshift(`${Math.floor(minutes / 60)} h`);
  return words.join(" ");
}
