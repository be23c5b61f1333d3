// What stands in the cells of a row, how wide it is, and the list of keys below the table.

import { make } from "../../_shared/dom.js";

/** Keys that act on the sound. */
export const SOUND_KEYS = /^( |Enter|p|a|b|ArrowLeft|ArrowRight|Escape)$/;
const KEYS = [
  ["↑ ↓ or k j", "previous and next row"], ["Space", "play and pause"], ["a", "again from the beginning"],
  ["b", "A/B: the marked rows in turn, or the one heard before"],
  ["← →", "seek by a second"], ["m", "mark"], ["1–9, 0", "rate, unrate"], ["n", "write a note"], ["/", "search"],
  ["Home End", "first and last row"],
];

/**
 * Shows a text with its differences, a number, a category, or each text of a list by itself.
 * @param {HTMLElement} cell
 * @param {import("./data.js").TableData} data
 * @param {number} row
 * @param {import("./data.js").Column} column
 * @param {any[] | null} pieces
 */
export function showContent(cell, data, row, column, pieces) {
  cell.replaceChildren();
  const text = data.text(row, column);
  if (!text && !pieces) {
    cell.classList.add("sl-missing");
    make(cell, "span", "", "–");
    return;
  }
  const words = make(cell, "span", "sl-words");
  words.dir = "auto";
  const lang = column.lang || (column.kind === "text" ? data.langs[row] : "");
  if (lang) words.lang = lang;
  if (column.kind === "list") data.cell(row, column.name).forEach((/** @type {string} */ one) => make(words, "bdi", "sl-tag", one));
  else if (pieces) showPieces(words, pieces);
  else words.textContent = text;
}

/** @param {HTMLElement} words @param {any[]} pieces */
function showPieces(words, pieces) {
  pieces.forEach(([kind, piece, name], index) => {
    // a hair of space between what was said and what was heard for it
    if (kind === "insert" && pieces[index - 1]?.[0] === "delete") words.append("\u200a");
    const part = make(words, kind === "delete" ? "del" : kind === "insert" ? "ins" : "span", name ? `sl-${name}` : "", piece);
    if (name) part.title = name;
  });
}

/** @param {Element} cell @param {number} row @param {number} max The best rating. */
export function addJudgement(cell, row, max) {
  const line = make(cell, "span", "sl-judge");
  const mark = make(line, "button", "sl-star");
  mark.setAttribute("aria-label", `Mark row ${row + 1}`);
  if (!max) return;
  const group = make(line, "span", "sl-rates");
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", `Rating of row ${row + 1}`);
  for (let rating = 1; rating <= max; rating += 1) make(group, "button", "sl-rate", String(rating));
}

/** The parts between which a name may break: behind an underscore, but not before a unit of a letter or two. @param {string} name */
export function nameParts(name) {
  return name.split(/(?<=_)(?![^_]{0,2}$)/);
}

/**
 * Least width in pixels, by the longest of the first cells and of the name.
 * @param {import("./data.js").TableData} data
 * @param {import("./data.js").Column} column
 */
export function leastWidth(data, column) {
  if (column.kind === "text") return 170;
  const parts = column.name.length <= 12 ? [column.name] : nameParts(column.name);
  const head = Math.max(...parts.map((part) => part.length)) * 8.6;
  if (column.kind === "list") return Math.ceil(Math.max(head, 100));
  let longest = 0;
  for (let row = 0; row < Math.min(data.loaded, 200); row += 1) longest = Math.max(longest, data.text(row, column).length);
  return Math.ceil(Math.min(Math.max(7.6 * longest, head, 34) + 6, 150));
}

/** @param {Element} root @param {boolean} editable @param {boolean} sound */
export function addHelp(root, editable, sound) {
  const help = make(root, "details", "sl-keys");
  make(help, "summary", "", "Keys");
  const list = make(help, "ul");
  for (const [key, act] of KEYS) {
    if ((!editable && /^(m|n|1)/.test(key)) || (!sound && /^(Space|a$|b|←)/.test(key))) continue;
    const line = make(list, "li");
    make(line, "kbd", "", key);
    make(line, "span", "", act);
  }
}
