// The contents of a row's cells.

import { make } from "../../_shared/dom.js";
import { focusIn } from "../../_shared/keys.js";

const NOTE_MS = 500;
const SVG = "http://www.w3.org/2000/svg";

/**
 * Shows a text with its differences, a number, a category, or the texts of a list one by one.
 * @param {HTMLElement} cell
 * @param {import("./data.js").TableData} data
 * @param {number} row
 * @param {import("./data.js").Column} column
 * @param {any[] | null} pieces
 */
function showContent(cell, data, row, column, pieces) {
  cell.replaceChildren();
  const text = data.text(row, column);
  if (data.cell(row, column.name) === "") return; // a no
  if (!text && !pieces) {
    cell.classList.add("sl-missing");
    make(cell, "span", "", "–");
    return;
  }
  const lang = column.lang || (column.kind === "text" ? data.langs[row] : "");
  const words = make(cell, "span", "sl-words", { dir: "auto", ...(lang ? { lang } : {}) });
  if (column.kind === "list") {
    // A press narrows the table to the rows with this text.
    for (const text of data.cell(row, column.name)) {
      const tag = make(words, "button", "sl-tag", { title: "Show only these rows", "data-value": text, tabindex: -1 });
      make(tag, "bdi", "", text);
    }
  } else if (pieces) {
    pieces.forEach(([kind, piece, name], index) => {
      // A hair space between the deleted text and the text inserted for it.
      if (kind === "insert" && pieces[index - 1]?.[0] === "delete") words.append("\u200a");
      const node = make(words, kind === "delete" ? "del" : kind === "insert" ? "ins" : "span", name ? `sl-${name}` : "", piece);
      if (name) node.title = name;
    });
  } else words.textContent = text;
}

/** @param {Element} cell @param {number} row @param {number} max The best rating. */
function addJudgment(cell, row, max) {
  const line = make(cell, "span", "sl-judge");
  make(line, "button", "sl-star", { "aria-label": `Mark row ${row + 1}` });
  if (!max) return;
  const group = make(line, "span", "sl-rates", { role: "group", "aria-label": `Rating of row ${row + 1}` });
  for (let rating = 1; rating <= max; rating += 1) make(group, "button", "sl-rate", String(rating));
}

/** Draws the outline of a sound in the color of the surrounding text. @param {Int8Array} peaks */
export function waveform(peaks) {
  const bins = peaks.length / 2;
  let d = "";
  for (let bin = 0; bin < bins; bin += 1) {
    const high = 64 - peaks[2 * bin + 1] / 2;
    const low = 64 - peaks[2 * bin] / 2;
    d += `M${bin} ${Math.min(high, 63).toFixed(1)}V${Math.max(low, 65).toFixed(1)}`;
  }
  /** @param {string} name @param {Record<string, string>} attributes */
  const drawn = (name, attributes) => {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    return node;
  };
  const svg = drawn("svg", { viewBox: `-0.5 0 ${bins} 128`, preserveAspectRatio: "none", "aria-hidden": "true" });
  svg.append(...["sl-wave-all", "sl-wave-done"].map((name) => drawn("path", { class: name, d })));
  return svg;
}

export class Cells {
  /** @param {import("./table.js").AudioTableView} view */
  constructor(view) {
    this.view = view;
    /** @type {Map<number, number>} */
    this.noteTimers = new Map();
  }

  /** @param {number} position */
  build(position) {
    const row = this.view.rowAt(position);
    const on = position === this.view.active;
    const id = `${this.view.id}-${row}`;
    const node = make(null, "div", "sl-row", { id, "data-row": row, role: "row", "aria-rowindex": position + 2 });
    const sound = this.addCell(node, "sound", "");
    if (this.view.sound) {
      const play = make(sound, "button", "sl-tool sl-play", { "aria-label": `Play row ${row + 1}` });
      make(play, "span", "sl-icon", { "aria-hidden": true });
      this.showThumb(make(sound, "span", "sl-thumb"), row, this.view.troubles.get(row) ?? "");
    }
    if (this.view.editable) addJudgment(sound, row, this.view.model.get("max_rating"));
    for (const column of this.view.shownColumns) {
      const cell = this.addCell(node, column.kind, column.name);
      cell.dataset.head = column.label;
      this.fill(cell, row, column);
    }
    if (this.view.editable) this.addNote(node, row);
    this.showNoted(node, row);
    this.showActive(node, on);
    this.showPlaying(node);
    return node;
  }

  /** @param {Element} node @param {string} kind @param {string} label */
  addCell(node, kind, label) {
    const cell = make(node, "div", `sl-cell sl-${kind}`, { role: "gridcell" });
    if (label) cell.dataset.label = label;
    return cell;
  }

  /** @param {HTMLElement} cell @param {number} row @param {import("./data.js").Column} column */
  fill(cell, row, column) {
    const compared = column.compared && this.view.reference && column.name !== this.view.reference;
    showContent(cell, this.view.data, row, column, compared ? (this.view.differences.get(`${row}:${column.name}`) ?? null) : null);
  }

  /** @param {Element} node @param {number} row */
  addNote(node, row) {
    const keep = () => this.view.note(row, "note", note.value);
    const later = () => {
      clearTimeout(this.noteTimers.get(row));
      this.noteTimers.set(row, window.setTimeout(keep, NOTE_MS));
    };
    const words = { type: "text", dir: "auto", placeholder: "note", "aria-label": `Note on row ${row + 1}` };
    const note = make(this.addCell(node, "note", "Note"), "input", "sl-noted", { ...words, input: later, change: keep });
  }

  /** @param {HTMLElement} node @param {number} row */
  showNoted(node, row) {
    const star = node.querySelector(".sl-star");
    if (star) {
      star.textContent = this.view.data.noted.mark[row] ? "★" : "☆";
      star.setAttribute("aria-pressed", String(Boolean(this.view.data.noted.mark[row])));
    }
    node.querySelectorAll(".sl-rate").forEach((button, index) => {
      button.setAttribute("aria-pressed", String(this.view.data.noted.rating[row] === index + 1));
    });
    const note = node.querySelector("input");
    if (note && note !== focusIn(note)) note.value = this.view.data.noted.note[row] ?? "";
  }

  /** @param {Element} thumb @param {number} row @param {string} error */
  showThumb(thumb, row, error) {
    const peaks = this.view.outlines.get(row);
    thumb.replaceChildren();
    if (peaks?.length) thumb.append(waveform(peaks));
    else if (error) make(thumb, "em", "sl-error", error, { title: error });
  }

  /** @param {HTMLElement} node */
  showPlaying(node) {
    const { row, playing, share, wanted } = this.view.player;
    const current = Number(node.dataset.row) === row;
    if (!current && !node.classList.contains("sl-heard-row")) return;
    node.classList.toggle("sl-heard-row", current);
    node.classList.toggle("sl-playing", current && playing);
    node.classList.toggle("sl-waiting", current && wanted === row);
    node.style.setProperty("--sl-share", current ? `${100 * (1 - share)}%` : "100%");
    const name = `${current && playing ? "Pause" : "Play"} row ${Number(node.dataset.row) + 1}`;
    const play = node.querySelector(".sl-play");
    if (play && play.getAttribute("aria-label") !== name) play.setAttribute("aria-label", name);
  }

  /** @param {HTMLElement} node @param {boolean} on */
  showActive(node, on) {
    node.classList.toggle("sl-on", on);
    node.setAttribute("aria-selected", String(on));
    // Tab moves from the grid into the focused row only.
    for (const control of node.querySelectorAll("button, input")) if (control instanceof HTMLElement) control.tabIndex = on ? 0 : -1;
  }
}
