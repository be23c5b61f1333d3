// The audio table: rows to play, compare, mark and rate. The model answers requests: rows, sounds, outlines and
// differences arrive as messages, never as traits.

import { make, View } from "../../_shared/dom.js";
import { liveWidget } from "../../_shared/mount.js";
import { ask } from "../../_shared/kernel.js";
import { TableData } from "./data.js";
import { Cells } from "./cells.js";
import { showControls } from "./controls.js";
import { addHelp, Gestures } from "./gestures.js";
import { Header } from "./header.js";
import { RowPlayer } from "./row_player.js";
import { Narrowing } from "./narrowing.js";
import { VirtualRows } from "./rows.js";
import { Turns } from "./turns.js";

const THUMB_BINS = 100;
const VIEW_MS = 300;
/** While rows come, the time between two orders of them, in times of the last one. */
const REST = 3;
const MAX_STATIC = 50;
/** What the marks of differences mean: element, class and words. */
const LEGEND = /** @type {[keyof HTMLElementTagNameMap, string, string][]} */ ([
  ["del", "", "missing"], ["ins", "", "inserted"], ["ins", "sl-homophone", "sounds alike"],
  ["ins", "sl-notation", "only another spelling"],
]);
const UNKEPT = "The kernel does not answer: what you mark, rate and note now is not kept. Run the cell again.";
let tables = 0;

export class AudioTableView extends View {
  id = `sl-table-${(tables += 1)}`;
  /** Position of the row that has the focus. */
  active = -1;
  /** @type {Map<number, Int8Array>} */ outlines = new Map();
  /** Why a row has no sound, by row. @type {Map<number, string>} */ troubles = new Map();
  /** @type {Map<string, any[]>} */ differences = new Map();
  /** @type {Set<string>} */ askedFor = new Set();
  /** What marks, ratings and notes were before, the last at the end. @type {[number, string, any][]} */ before = [];
  askTimer = 0;
  viewTimer = 0;

  /** @param {any} model @param {Element} el */
  constructor(model, el) {
    super(model, el, "speechlab-table");
    this.editable = model.get("editable");
    this.sound = model.get("sound");
    this.data = new TableData(model);
    this.reference = model.get("reference");
    this.root.setAttribute("aria-label", `Table: ${this.model.get("title")}`);
    this.root.classList.toggle("sl-silent", !this.sound);
    this.atEnd(showControls(this.model, this.root));
    this.player = new RowPlayer(this);
    this.turns = new Turns(this);
    this.narrowing = new Narrowing(this);
    this.warning = make(this.root, "p", "sl-warning", { role: "alert" });
    this.warn("");
    const name = { role: "grid", "aria-label": this.model.get("title") };
    this.grid = make(this.root, "div", "sl-grid", { id: this.id, tabindex: 0, ...name });
    this.header = new Header(this);
    this.cells = new Cells(this);
    this.rows = new VirtualRows(this.grid, (position) => this.cells.build(position), (seen) => this.askFor(seen), this.off.signal);
    this.empty = make(this.root, "p", "sl-none", "No matching rows.");
    this.legend = make(this.root, "p", "sl-legend", "Differences: ");
    for (const [tag, kind, words] of LEGEND) make(this.legend, tag, kind, words);
    this.gestures = new Gestures(this);
    for (const name of ["pointerenter", "focusin"]) this.root.addEventListener(name, () => this.sound && this.player.open());
    this.grid.addEventListener("focus", () => this.active < 0 && this.data.order.length && this.go(0));
    addHelp(this);
    this.watchSize(this.root, () => this.header.fit());
    this.watchSize(this.grid, () => this.rows.remeasure());
    this.atEnd(() => {
      for (const timer of [this.askTimer, this.viewTimer, this.gestures.restTimer]) clearTimeout(timer);
      this.player.dispose();
    });
    this.hear({
      "msg:custom": (/** @type {any} */ message) => this.take(message),
      "change:revision": () => this.another(),
      "change:reference": () => this.compare(),
      "change:chosen": () => this.chosenElsewhere(),
    });
    this.narrowing.restore(model.get("view"));
    this.load();
    this.layOut();
  }

  // ------------------------------------------------------------------------------------------------ messages

  /** @param {any} message */
  take(message) {
    if (message.type === "warning") this.warn(message.words);
    else if (message.type === "noted") this.takeNoted(message);
    else if (message.type === "narrow") this.takeNarrow(message);
    else if (message.type === "changed" && message.revision === this.data.revision) this.takeChanged(message);
  }

  /** Shows the rows behind a number of a page, and plays the first of them. @param {any} message */
  async takeNarrow({ categories, ranges, play }) {
    const known = ranges.map((/** @type {[string, [number, number | null]]} */ [name, [low, high]]) => [name, [low, high ?? this.data.extent(name)?.[1] ?? low]]);
    this.narrowing.restore({ search: "", marked: false, sort: this.narrowing.view.sort, categories, ranges: known });
    await this.narrowed();
    this.narrowing.fill();
    const row = this.rowAt(0);
    if (row < 0) return;
    this.go(0);
    if (play) this.player.play(row);
  }

  /** Updates a row whose sound has changed. @param {{row: number, cells: Record<string, any>, played: boolean}} message */
  takeChanged({ row, cells, played }) {
    if (row >= this.data.loaded) return; // its piece will bring the new cells
    for (const [name, value] of Object.entries(cells)) this.data.replace(row, name, value);
    this.outlines.delete(row);
    this.troubles.delete(row);
    this.askedFor.delete(`outline:${row}`);
    this.player.renew(row, played);
    const { sort, categories, ranges } = this.narrowing.view;
    const narrowing = [sort?.name, ...categories.keys(), ...ranges.keys()];
    if (narrowing.some((name) => name && name in cells)) this.narrow(true);
    else {
      this.rows.rebuild(this.positionOf(row));
      this.rows.paint();
      this.narrowing.fill();
    }
    this.turns.show();
    this.header.fit();
  }

  /** @param {number[]} rows */
  async askOutlines(rows) {
    const { revision } = this.data;
    const { facts, data } = await ask(this.model, { type: "outlines", rows, bins: THUMB_BINS, revision });
    if (revision !== this.data.revision) return;
    let start = 0;
    facts.forEach((/** @type {[number, string, number]} */ [, error, length], /** @type {number} */ index) => {
      const row = rows[index];
      this.outlines.set(row, new Int8Array(data.buffer, start, length));
      start += length;
      if (error) this.troubles.set(row, error);
      const thumb = this.nodeOf(row)?.querySelector(".sl-thumb");
      if (thumb) this.cells.showThumb(thumb, row, error);
    });
    this.turns.show();
    if (this.troubles.size) this.rows.settle();
  }

  /** The element of a row, if it has one now. @param {number} row */
  nodeOf(row) {
    return this.rows.there.get(this.positionOf(row));
  }

  /** @param {number[]} rows @param {string[]} columns */
  async askDifferences(rows, columns) {
    const { reference } = this;
    const { revision } = this.data;
    const { data } = await ask(this.model, { type: "differences", rows, reference, columns, revision });
    if (reference !== this.reference || revision !== this.data.revision) return;
    for (const { row, column, pieces } of JSON.parse(new TextDecoder().decode(data))) {
      this.differences.set(`${row}:${column}`, pieces);
      const cell = [...(this.nodeOf(row)?.children ?? [])].find((node) => node instanceof HTMLElement && node.dataset.label === column);
      const match = this.data.column(column);
      if (cell instanceof HTMLElement && match) this.cells.fill(cell, row, match);
    }
    this.rows.settle();
  }

  /** @param {{row: number, name: string, value: any}} message */
  takeNoted({ row, name, value }) {
    if (row >= this.data.loaded || this.data.noted[name][row] === value) return;
    this.data.noted[name][row] = value;
    this.showNoted(row);
  }

  another() {
    this.data.reset();
    this.reference = this.model.get("reference");
    this.sound = this.model.get("sound");
    this.root.classList.toggle("sl-silent", !this.sound);
    this.outlines.clear();
    this.troubles.clear();
    this.differences.clear();
    this.askedFor.clear();
    this.active = -1;
    this.player.reset();
    this.turns.recent = [];
    this.before = [];
    this.narrowing.reset();
    this.layOut();
    this.narrow();
    this.load();
  }

  load() {
    let due = 0;
    const arrived = () => {
      const begun = performance.now();
      if (this.data.loaded < this.data.count && begun < due) return; // an order of many rows takes long: shown with a later piece
      this.narrow(true);
      due = performance.now() + REST * (performance.now() - begun);
      // A row may have been selected before this view started.
      if (this.data.loaded === this.data.count && this.active < 0) this.chosenElsewhere();
    };
    this.data.ask(arrived).catch((error) => {
      this.narrow(true);
      this.warn(`${error.message}. Run the cell again.`);
    });
  }

  compare() {
    this.reference = this.model.get("reference");
    this.differences.clear();
    this.askedFor.clear();
    this.layOut();
  }

  chosenElsewhere() {
    const row = this.model.get("chosen");
    if (row === this.rowAt(this.active)) return;
    if (row >= 0 && this.positionOf(row) < 0) this.narrowing.showAll();
    this.goTo(row);
  }

  /** Requests missing outlines and differences of the visible rows once scrolling stops. @param {number[]} seen */
  askFor(seen) {
    clearTimeout(this.askTimer);
    const ask = () => {
      const rows = seen.map((position) => this.rowAt(position)).filter((row) => row >= 0);
      const fresh = (/** @type {string} */ kind) => rows.filter((row) => {
        const key = `${kind}:${row}`;
        return !this.askedFor.has(key) && this.askedFor.add(key);
      });
      const outlines = this.sound ? fresh("outline") : [];
      const late = () => {}; // a press of play reports it
      if (outlines.length) this.askOutlines(outlines).catch(late);
      const columns = this.data.compared(this.reference);
      const differences = columns.length ? fresh(`differences:${columns}`) : [];
      if (differences.length) this.askDifferences(differences, columns).catch(late);
    };
    if (this.rows.printing) ask(); // paper does not wait
    else this.askTimer = window.setTimeout(ask, 60);
  }

  // ------------------------------------------------------------------------------------------------ rows and order

  /** @param {number} position */
  rowAt(position) {
    return this.data.order[position] ?? -1;
  }

  /** @param {number} row */
  positionOf(row) {
    return row < 0 ? -1 : this.data.order.indexOf(row);
  }

  /** @param {number} row @param {number} step */
  neighbor(row, step) {
    const position = this.positionOf(row);
    return this.rowAt(position < 0 ? (step > 0 ? 0 : -1) : position + step);
  }

  /** Name of a row: its number and its first text. @param {number} row */
  title(row) {
    const column = this.data.columns.find((candidate) => candidate.kind === "text" && candidate.shown) ?? this.data.columns[0];
    const text = column ? this.data.text(row, column) : "";
    return text ? `${row + 1}: ${text.length > 80 ? `${text.slice(0, 79)}…` : text}` : `row ${row + 1}`;
  }

  /** @param {boolean} [more] Whether more rows have arrived. @returns {Promise<void> | undefined} A promise if the order takes time. */
  narrow(more = false) {
    const cells = this.data.unranked(this.narrowing.view.sort);
    if (cells && !(more && this.data.loaded < this.data.count)) {
      this.showStatus();
      return this.data.rank(cells).then(() => this.off.signal.aborted ? undefined : this.narrow(more));
    }
    const row = this.rowAt(this.active);
    const before = this.data.order;
    this.data.narrow(this.narrowing.view);
    const same = more && before.length > 0 && before.every((candidate, position) => candidate === this.data.order[position]);
    const { scrollTop } = this.grid;
    this.rows.setCount(this.data.order.length);
    this.grid.scrollTop = same ? scrollTop : 0;
    this.active = this.positionOf(row);
    this.rows.kept = this.active;
    this.grid.setAttribute("aria-rowcount", String(this.data.order.length + 1));
    this.empty.hidden = this.data.order.length > 0 || this.data.loaded < this.data.count;
    this.rows.paint();
    this.describeActive();
    this.showStatus();
    // The options of filters depend on the loaded rows, not on the visible ones.
    if (more) this.narrowing.fill();
  }

  /** Applies the order and the filters that the user has changed. */
  async narrowed() {
    await this.narrow();
    this.tellView();
  }

  showStatus() {
    this.turns.show();
    this.narrowing.show(this.data.noted.mark.reduce((sum, mark) => sum + Number(mark), 0));
  }

  /** Moves the focus to a row and selects it for playback. @param {number} position */
  go(position) {
    if (position === this.active || position >= this.data.order.length) return;
    const old = this.rows.there.get(this.active);
    this.active = position;
    if (old) this.cells.showActive(old, false);
    this.rows.kept = position;
    this.rows.paint();
    const now = this.rows.there.get(position);
    if (now) this.cells.showActive(now, true);
    this.rows.settle();
    this.rows.reveal(position);
    this.describeActive();
    const row = this.rowAt(position);
    if (row >= 0 && this.sound) this.player.choose(row);
    this.showPlaying();
    if (this.model.get("chosen") === row) return;
    this.put({ chosen: row });
  }

  /** @param {number} row */
  goTo(row) {
    this.go(this.positionOf(row));
  }

  describeActive() {
    if (this.active >= 0) this.grid.setAttribute("aria-activedescendant", `${this.id}-${this.rowAt(this.active)}`);
    else this.grid.removeAttribute("aria-activedescendant");
  }

  // ------------------------------------------------------------------------------------------------ layout

  get shownColumns() {
    return this.data.columns.filter((column) => column.shown && !column.squeezed);
  }

  layOut() {
    this.legend.hidden = !this.data.compared(this.reference).length;
    this.header.show();
    this.header.fit();
    this.rows.rebuild();
    this.rows.paint();
    this.showStatus();
  }

  /** @param {number} row */
  showNoted(row) {
    const node = this.nodeOf(row);
    if (node) this.cells.showNoted(node, row);
    this.showStatus();
  }

  showPlaying() {
    this.turns.follow();
    for (const node of this.rows.there.values()) this.cells.showPlaying(node);
  }

  // ------------------------------------------------------------------------------------------------ input

  /** @param {number} row @param {string} name @param {any} value */
  note(row, name, value) {
    if (!this.editable || row < 0 || this.data.noted[name][row] === value) return;
    this.before.push([row, name, this.data.noted[name][row]]);
    this.keep(row, name, value);
  }

  /** Takes the last mark, rating or note back. */
  undo() {
    const last = this.before.pop();
    if (!last) return;
    this.goTo(last[0]);
    this.keep(...last);
  }

  /** The note of a decision: an answer; of a suspected reference its suggestion, or its text as it is. @param {number} row @param {boolean} accepted */
  decide(row, accepted) {
    const answer = (this.model.get("answers") ?? [])[accepted ? 0 : 1];
    const text = answer ?? this.data.cells.get(accepted ? "suggestion" : this.reference)?.[row];
    if (typeof text === "string") this.note(row, "note", text);
  }

  /** @param {number} row @param {string} name @param {any} value */
  keep(row, name, value) {
    this.data.noted[name][row] = value;
    this.data.haystack = null;
    const answer = ask(this.model, { type: "noted", row, name, value, revision: this.data.revision });
    answer.then(() => this.model.get("exported") || this.warn(""), () => this.warn(UNKEPT));
    this.showNoted(row);
  }

  /** @param {string} words */
  warn(words) {
    this.warning.textContent = words;
    this.warning.hidden = !words;
  }

  /** Sends Python the order and the filters, for the HTML of the notebook. */
  tellView() {
    clearTimeout(this.viewTimer);
    this.viewTimer = window.setTimeout(() => {
      const words = this.narrowing.words();
      const rows = words.length ? [...this.data.order.slice(0, MAX_STATIC)] : [];
      this.put({ view: { ...this.narrowing.stored(), words, rows, count: this.data.order.length } });
    }, VIEW_MS);
  }

  /** @param {number} row @param {number} rating */
  rate(row, rating) {
    if (rating > this.model.get("max_rating")) return;
    this.note(row, "rating", rating && this.data.noted.rating[row] !== rating ? rating : null);
  }
}

export default liveWidget((model, el) => new AudioTableView(model, el));
