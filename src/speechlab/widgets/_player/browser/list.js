// The list of a tier's segments. Items are reused while their rows change, which keeps focus and scroll position.

import { clock, make } from "../../_shared/dom.js";

/** @typedef {import("./draw.js").Segment} Segment */

export class SegmentList {
  /** Items by the id of their row. @type {Map<number, {row: Segment, item: HTMLElement}>} */ items = new Map();
  /** The button in the tab order, if one alone is. @type {HTMLElement | null} */ stop = null;

  /** @param {HTMLElement} list @param {(id: number) => void} press */
  constructor(list, press) {
    this.list = list;
    this.press = press;
  }

  /** @param {Segment[]} rows In order; ids are their positions where they have none. @param {string} lang @param {boolean} roves Whether one item alone is in the tab order. */
  fill(rows, lang, roves) {
    const { list, items } = this;
    const ids = new Set(rows.map(({ id }, index) => id ?? index));
    for (const [id, { item }] of [...items]) {
      if (ids.has(id)) continue;
      item.remove();
      items.delete(id);
    }
    let at = list.firstElementChild;
    rows.forEach((row, index) => {
      const id = row.id ?? index;
      const entry = items.get(id);
      const item = entry?.item ?? document.createElement("li");
      if (entry?.row !== row) {
        this.show(item, id, row, lang);
        items.set(id, { row, item });
      }
      const button = /** @type {HTMLElement} */ (item.firstElementChild);
      const order = roves && button !== this.stop ? -1 : 0;
      if (button.tabIndex !== order) button.tabIndex = order;
      if (item === at) at = at.nextElementSibling;
      // The item before it belongs further down. It is moved later, instead of all others now.
      else if (at?.nextElementSibling === item) at = item.nextElementSibling;
      else list.insertBefore(item, at);
    });
    list.hidden = !rows.length;
  }

  /** @param {HTMLElement} item @param {number} id @param {Segment} row @param {string} lang */
  show(item, id, row, lang) {
    let button = item.querySelector("button");
    if (!button) {
      button = make(item, "button", "sl-segment", { click: () => this.press(id) });
      make(button, "span", "sl-span");
      make(button, "bdi", "sl-who");
      make(button, "span", "sl-text", { dir: "auto" });
    }
    const [span, speaker, text] = /** @type {HTMLElement[]} */ ([...button.children]);
    span.textContent = spanText(row);
    speaker.textContent = row.speaker ?? "";
    text.textContent = row.text;
    if (lang) text.lang = lang;
    else text.removeAttribute("lang");
  }

  /** @param {number | undefined} id */
  button(id) {
    return this.items.get(id ?? -1)?.item.querySelector("button") ?? null;
  }

  /** Puts one item in the tab order. Arrow keys reach the others, so that Tab does not pass through thousands. @param {{id: number} | null} row */
  rove(row) {
    if (this.stop) this.stop.tabIndex = -1;
    this.stop = this.button(row?.id);
    if (this.stop) this.stop.tabIndex = 0;
  }

  /** Marks a segment, and scrolls the list to it without scrolling the page. @param {number} index */
  follow(index) {
    const { list } = this;
    const before = list.querySelector("[aria-current]");
    const item = list.children[index];
    const button = item?.firstElementChild ?? null;
    if (before === button) return;
    before?.removeAttribute("aria-current");
    if (!(item instanceof HTMLElement) || !button) return;
    button.setAttribute("aria-current", "true");
    const top = item.offsetTop - list.offsetTop;
    if (top < list.scrollTop || top + item.offsetHeight > list.scrollTop + list.clientHeight) {
      list.scrollTop = Math.max(top - list.clientHeight / 3, 0);
    }
  }
}

/** Start and end of a row as text. @param {{start: number, end: number}} row */
export const spanText = ({ start, end }) => `${clock(start)} – ${clock(end)}`;
