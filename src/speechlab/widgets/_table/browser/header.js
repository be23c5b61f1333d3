// The header: names of columns, which sort the rows when clicked, and the widths of the columns.

import { make } from "../../_shared/dom.js";
import { focusIn } from "../../_shared/keys.js";

/** Parts between which a name may wrap: after a space or an underscore, but not before a unit. @param {string} name */
function nameParts(name) {
  return name.split(/(?<=[_ ])(?![^_ ]{0,2}$|\()/);
}

/** Width of a table that always has columns: what has no room is one click away, instead of making every row a card. */
const WIDE_PX = 860;

/**
 * Minimum width in pixels, from the longest of the first cells and the name.
 * @param {import("./data.js").TableData} data
 * @param {import("./data.js").Column} column
 */
function leastWidth(data, column) {
  if (column.kind === "text") return 170;
  const pieces = column.label.length <= 10 ? [column.label] : nameParts(column.label);
  const head = Math.max(...pieces.map((piece) => piece.length)) * 8.6;
  if (column.kind === "list") return Math.ceil(Math.max(head, 100));
  let longest = 0;
  for (let row = 0; row < Math.min(data.loaded, 200); row += 1) longest = Math.max(longest, data.text(row, column).length);
  return Math.ceil(Math.min(Math.max(7.6 * longest, head, 34) + 6, 150));
}

export class Header {
  /** Layout of rows: "columns", "lines" or "narrow". @type {string} */ form;

  /** @param {import("./table.js").AudioTableView} view */
  constructor(view) {
    this.view = view;
    const group = make(view.grid, "div", "sl-headgroup", { role: "rowgroup" });
    this.node = make(group, "div", "sl-header", { role: "row", "aria-rowindex": 1 });
  }

  show() {
    this.node.replaceChildren();
    const head = (/** @type {string} */ title, /** @type {string} */ kind, /** @type {string} */ sort) => {
      const cell = make(this.node, "div", `sl-cell sl-${kind}`, { role: "columnheader" });
      if (sort) sorter(cell, title, sort);
      else make(cell, "span", "sl-quiet", title);
      return cell;
    };
    const sorter = (/** @type {HTMLElement} */ cell, /** @type {string} */ title, /** @type {string} */ sort) => {
      const { sort: sorted } = this.view.narrowing.view;
      const down = sorted?.name === sort ? sorted.down : null;
      const state = down === null ? "none" : down ? "descending" : "ascending";
      if (cell.getAttribute("role") === "columnheader") cell.setAttribute("aria-sort", state);
      const name = { title: sort.replace("noted:", ""), "data-sort": sort };
      const button = make(cell, "button", "sl-sort", nameParts(title).join("\u200b"), { ...name, click: () => this.sortBy(sort) });
      if (sort.startsWith("noted:")) button.setAttribute("aria-label", down === null ? `Sort by ${title}` : `${title}, ${state}`);
      make(button, "span", "sl-arrow", down === null ? "" : down ? " ↓" : " ↑", { "aria-hidden": true });
    };
    const sound = head(this.view.sound ? "Sound" : "Row", "sound", "");
    if (!this.view.sound) sound.firstElementChild?.classList.add("sl-unseen");
    if (this.view.editable) {
      sorter(make(sound, "span"), "Mark", "noted:mark");
      if (this.view.model.get("max_rating")) sorter(make(sound, "span"), "Rating", "noted:rating");
    }
    for (const column of this.view.shownColumns) head(column.label, column.kind, column.name);
    if (this.view.editable) head("Note", "note", "noted:note");
    this.view.grid.setAttribute("aria-colcount", String(this.node.children.length));
  }

  fit() {
    const room = this.view.grid.clientWidth;
    if (!room) return;
    const max = this.view.model.get("max_rating");
    const sound = this.view.editable ? Math.max(this.view.sound ? 150 : 0, 22 * max + 34) : this.view.sound ? 150 : 0;
    const corrects = this.view.data.column("suggestion") !== undefined; // the note is the right text
    const note = !this.view.editable ? 0 : corrects ? 182 : 122;
    const width = (/** @type {import("./data.js").Column} */ column) => leastWidth(this.view.data, column) + 12;
    const least = this.squeeze(room, sound + 16 + note, width);
    const columns = this.view.shownColumns.map((column) => width(column) - 12);
    // Columns if all fit; else short cells in a line below the texts; else also the texts below each other.
    const form = room >= least ? "columns" : room >= 560 ? "lines" : "narrow";
    const shares = this.view.shownColumns.map((column, index) =>
      column.kind === "text" ? `minmax(${columns[index]}px, 3fr)` : `minmax(${columns[index]}px, .4fr)`,
    );
    if (this.view.editable) shares.push(corrects ? "minmax(170px, 3fr)" : "minmax(110px, 1.2fr)");
    this.view.grid.style.setProperty("--sl-columns", [`${sound}px`, ...shares].join(" "));
    this.view.grid.style.setProperty("--sl-sound", `${sound}px`);
    if (form === this.form) return;
    this.form = form;
    this.view.root.classList.toggle("sl-cards", form !== "columns");
    this.view.root.classList.toggle("sl-narrow", form === "narrow");
    this.view.rows.remeasure();
  }

  /**
   * Hides columns that have no room in a wide table, numbers and names before texts and the last ones first, but none that
   * the user has chosen. Returns the width of the others.
   * @param {number} room @param {number} least @param {(column: import("./data.js").Column) => number} width
   */
  squeeze(room, least, width) {
    const { view } = this;
    const all = view.data.columns.filter((column) => column.shown);
    const names = () => view.shownColumns.map((column) => column.name).join();
    const before = names();
    let sum = all.reduce((so, column) => so + width(column), least);
    for (const column of all) column.squeezed = false;
    const later = (/** @type {boolean} */ text) => all.filter((column) => (column.kind === "text") === text && !column.pinned).reverse();
    for (const column of room >= WIDE_PX ? [...later(false), ...later(true).slice(0, -2)] : []) {
      if (sum <= room) break;
      column.squeezed = true;
      sum -= width(column);
    }
    if (names() !== before) {
      this.show();
      view.rows.rebuild();
      view.rows.paint();
    }
    return sum;
  }

  /** @param {string} name */
  sortBy(name) {
    const { view } = this.view.narrowing;
    if (view.sort?.name !== name) view.sort = { name, down: name.startsWith("noted:") };
    else if (view.sort.down === name.startsWith("noted:")) view.sort = { name, down: !view.sort.down };
    else view.sort = null;
    this.view.narrowed();
    const focused = focusIn(this.node);
    this.view.layOut();
    const buttons = [...this.node.querySelectorAll("button")];
    if (focused) buttons.find((button) => button.dataset.sort === name)?.focus();
  }
}
