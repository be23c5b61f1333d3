// The rows in the browser: cells by column, notes, and the order of the rows that the filters let through.

import { ask } from "../../_shared/kernel.js";
import { collator, orderByRank, rankTexts } from "./ranks.js";

/** Rows whose texts are ordered at once, in less than a frame or two. */
const MANY = 4_000;

/**
 * @typedef {{name: string, label: string, squeezed?: boolean, pinned?: boolean, kind: "text" | "label" | "category" | "list" | "number", shown: boolean, lang: string, compared: boolean,
 *   decimals: number}} Column
 * @typedef {{search: string, marked: boolean, sort: {name: string, down: boolean} | null,
 *   categories: Map<string, Set<string>>, ranges: Map<string, [number, number]>}} View
 */

/** Values that a cell is filtered by: its category, or the texts of its list; "" if it is empty. @param {any} cell @returns {string[]} */
function keysOf(cell) {
  if (!Array.isArray(cell)) return [cell ?? ""];
  return cell.length ? cell : [""];
}

/** Converts a cell for sorting and filtering. Infinities arrive as text, since JSON has no number for them. @param {any} cell @param {Column | undefined} column */
export function cellOf(cell, column) {
  if (column?.kind !== "number" || typeof cell !== "string") return cell;
  return cell.startsWith("-") ? -Infinity : Infinity;
}

export class TableData {
  /** @type {Column[]} */ columns;
  /** @type {number} */ count;
  /** @type {number} */ revision;
  /** @type {number} */ loaded;
  /** @type {Map<string, any[]>} */ cells;
  /** @type {string[]} */ langs;
  /** @type {Record<string, any[]>} */ noted;
  /** @type {string[] | null} */ haystack;
  /** Ranks of the texts of a column, by its cells. @type {WeakMap<any[], Int32Array>} */ ranks = new WeakMap();
  /** Ranks that are being made. @type {WeakMap<any[], Promise<void>>} */ ranking = new WeakMap();
  /** Indices of the rows that pass the filters, in order of display. @type {Int32Array} */ order;

  /** @param {any} model */
  constructor(model) {
    this.model = model;
    this.reset();
  }

  reset() {
    this.columns = this.model.get("columns");
    this.count = this.model.get("count");
    this.revision = this.model.get("revision");
    this.loaded = 0;
    this.cells = new Map();
    this.langs = [];
    this.noted = { mark: [], rating: [], note: [] };
    this.haystack = null;
    this.order = new Int32Array(0);
  }

  /** Requests the rows that are not loaded yet. @param {() => void} arrived Called after each piece of them. */
  async ask(arrived) {
    const { revision } = this;
    while (this.loaded < this.count) {
      const { start, end, data } = await ask(this.model, { type: "rows", start: this.loaded, revision });
      if (revision !== this.revision || start !== this.loaded) return;
      this.take(JSON.parse(new TextDecoder().decode(data)));
      this.loaded = end;
      this.haystack = null;
      arrived();
    }
  }

  /** Adds a piece of the rows. @param {Record<string, any[]>} piece */
  take(piece) {
    for (const [key, values] of Object.entries(piece)) {
      if (key === "lang") this.langs.push(...values);
      else if (key.startsWith("n:")) this.noted[key.slice(2)].push(...values);
      else {
        const name = key.slice(2);
        const column = this.column(name);
        this.cells.set(name, (this.cells.get(name) ?? []).concat(values.map((/** @type {any} */ cell) => cellOf(cell, column))));
      }
    }
  }

  /** @param {number} row @param {string} name */
  cell(row, name) {
    return this.cells.get(name)?.[row] ?? null;
  }

  /** @param {string} name */
  column(name) {
    return this.columns.find((column) => column.name === name);
  }

  /** Names of the columns whose texts are shown as differences from a reference. @param {string} reference */
  compared(reference) {
    if (!reference) return [];
    return this.columns.filter((column) => column.compared && column.name !== reference).map((column) => column.name);
  }

  /** Display text of a cell: numbers with the decimals of the column, empty if the value is missing. @param {number} row @param {Column} column */
  text(row, column) {
    const value = this.cell(row, column.name);
    if (value === null) return "";
    if (Array.isArray(value)) return value.join(", ");
    if (column.kind !== "number") return String(value);
    if (!Number.isFinite(value)) return value < 0 ? "−∞" : "∞";
    // Three digits if the decimals would show zero, or if the number is too large to be exact.
    const fixed = value === 0 || (Math.abs(value) >= 0.5 * 10 ** -column.decimals && Math.abs(value) <= 2 ** 53);
    const digits = fixed ? value.toFixed(column.decimals) : value.toPrecision(3).replace(/\.?0+(?=e|$)/, "");
    return digits.replaceAll("-", "−");
  }

  /** Categories of a column and how many rows have each, the most frequent first. @param {string} name */
  categories(name) {
    const counts = new Map();
    for (const cell of this.cells.get(name) ?? []) {
      for (const key of new Set(keysOf(cell))) counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    return [...counts].sort((first, second) => second[1] - first[1] || collator.compare(first[0], second[0]));
  }

  /** Smallest and largest finite number of a column, or null if there is none. @param {string} name */
  extent(name) {
    let low = Infinity;
    let high = -Infinity;
    for (const value of this.cells.get(name) ?? []) {
      if (!Number.isFinite(value)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    return low <= high ? /** @type {[number, number]} */ ([low, high]) : null;
  }

  /** Replaces a cell. @param {number} row @param {string} name @param {any} value */
  replace(row, name, value) {
    const cells = this.cells.get(name)?.slice(); // other cells have other ranks
    if (!cells) return;
    cells[row] = cellOf(value, this.column(name));
    this.cells.set(name, cells);
    this.haystack = null;
  }

  /** The cells of an order that needs ranks which are not there yet. @param {View["sort"]} sort */
  unranked(sort) {
    const cells = sort && this.cells.get(sort.name);
    const kind = sort && this.column(sort.name)?.kind;
    if (!cells || kind === "number" || kind === "list" || cells.length <= MANY || this.ranks.has(cells)) return null;
    return cells;
  }

  /** Makes the ranks of a column's texts. @param {any[]} cells */
  rank(cells) {
    const made = this.ranking.get(cells) ?? rankTexts(cells).then((ranks) => void this.ranks.set(cells, ranks));
    this.ranking.set(cells, made);
    return made;
  }

  /** Filters and sorts the rows; without the ranks that an order needs, they stay in their own. @param {View} view */
  narrow(view) {
    const words = view.search.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length && !this.haystack) {
      const texts = this.columns.filter((column) => column.kind !== "number").map((column) => this.cells.get(column.name) ?? []);
      texts.push(this.noted.note);
      this.haystack = Array.from({ length: this.loaded }, (_, row) => texts.map((cells) => cells[row] ?? "").join("\n").toLowerCase());
    }
    const categories = [...view.categories].map(([name, chosen]) => ({ cells: this.cells.get(name) ?? [], chosen }));
    const ranges = [...view.ranges].map(([name, range]) => ({ cells: this.cells.get(name) ?? [], range }));
    const rows = [];
    for (let row = 0; row < this.loaded; row += 1) {
      if (view.marked && !this.noted.mark[row]) continue;
      if (!categories.every(({ cells, chosen }) => keysOf(cells[row]).some((key) => chosen.has(key)))) continue;
      if (!ranges.every(({ cells, range }) => cells[row] !== null && cells[row] >= range[0] && cells[row] <= range[1])) continue;
      if (words.length && !words.every((word) => this.haystack?.[row].includes(word))) continue;
      rows.push(row);
    }
    if (view.sort && !this.unranked(view.sort)) this.sort(rows, view.sort);
    this.order = Int32Array.from(rows);
  }

  /** @param {number[]} rows @param {{name: string, down: boolean}} sort */
  sort(rows, { name, down }) {
    const cells = name.startsWith("noted:") ? this.noted[name.slice(6)] : (this.cells.get(name) ?? []);
    const ranks = this.ranks.get(cells);
    if (ranks) {
      orderByRank(rows, ranks, down);
      return;
    }
    const sign = down ? -1 : 1;
    rows.sort((first, second) => {
      const [cell, next] = [cells[first] ?? null, cells[second] ?? null];
      // Missing values come last in both directions.
      if (cell === null || next === null) return Number(cell === null) - Number(next === null) || first - second;
      if (Array.isArray(cell)) return sign * (cell.length - next.length || collator.compare(cell.join("\n"), next.join("\n"))) || first - second;
      const by = typeof cell === "string" ? collator.compare(cell, next) : cell === next ? 0 : cell - next;
      return sign * by || first - second;
    });
  }
}
