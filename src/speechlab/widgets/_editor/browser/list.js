// The list of an editor's segments. Items are reused while their rows are edited, which keeps focus and scroll position.

import { make } from "../../_shared/dom.js";
import { spanText } from "./rows.js";

/** @typedef {import("./rows.js").EditedRow} EditedRow */

export class RowList {
  /** @param {HTMLElement} list @param {string} lang @param {(id: number) => void} play */
  constructor(list, lang, play) {
    this.list = list;
    this.lang = lang;
    this.play = play;
    /** Items by the id of their row. @type {Map<number, {row: EditedRow, item: HTMLElement}>} */
    this.items = new Map();
    /** The button in the tab order. @type {HTMLElement | null} */
    this.stop = null;
  }

  /** @param {EditedRow[]} rows In order. */
  fill(rows) {
    const { list, items } = this;
    const ids = new Set(rows.map((row) => row.id));
    for (const [id, { item }] of [...items]) {
      if (ids.has(id)) continue;
      item.remove();
      items.delete(id);
    }
    let at = list.firstElementChild;
    for (const row of rows) {
      const entry = items.get(row.id);
      const item = entry?.item ?? document.createElement("li");
      if (entry?.row !== row) {
        this.show(item, row);
        items.set(row.id, { row, item });
      }
      if (item === at) at = at.nextElementSibling;
      // The item before it belongs further down. It is moved later, instead of all others now.
      else if (at?.nextElementSibling === item) at = item.nextElementSibling;
      else list.insertBefore(item, at);
    }
    list.hidden = !rows.length;
  }

  /** @param {HTMLElement} item @param {EditedRow} row */
  show(item, row) {
    let button = item.querySelector("button");
    if (!button) {
      button = make(item, "button", "sl-segment", { tabindex: -1, click: () => this.play(row.id) });
      make(button, "span", "sl-span");
      make(button, "bdi", "sl-who");
      make(button, "span", "sl-text", { dir: "auto", ...(this.lang ? { lang: this.lang } : {}) });
    }
    const [span, speaker, text] = button.children;
    span.textContent = spanText(row);
    speaker.textContent = row.speaker;
    text.textContent = row.text;
  }

  /** @param {number | undefined} id */
  button(id) {
    return this.items.get(id ?? -1)?.item.querySelector("button") ?? null;
  }

  /** Puts one item in the tab order. Arrow keys reach the others, so that Tab does not pass through thousands. @param {EditedRow | null} row */
  rove(row) {
    if (this.stop) this.stop.tabIndex = -1;
    this.stop = this.button(row?.id);
    if (this.stop) this.stop.tabIndex = 0;
  }
}
