// The table of sound: rows that are heard, compared, marked and rated. The model answers what is asked of it: rows,
// sounds, outlines and differences come as messages, never as traits.

import { make, makeRoot } from "../../_shared/dom.js";
import { liveWidget } from "../../_shared/mount.js";
import { tell } from "../../_shared/kernel.js";
import { TableData } from "./data.js";
import { addHelp, addJudgement, leastWidth, nameParts, SOUND_KEYS, showContent } from "./cells.js";
import { showControls } from "./controls.js";
import { Listening, waveform } from "./listening.js";
import { Narrowing } from "./narrowing.js";
import { VirtualRows } from "./rows.js";
import { Turns } from "./turns.js";

const THUMB_BINS = 100;
const NOTE_MS = 500;
const REST_MS = 80;
let tables = 0;

class AudioTableView {
  /** @type {HTMLElement} */ root;
  /** @type {HTMLElement} */ grid;
  /** @type {HTMLElement} */ header;
  /** @type {HTMLElement} */ empty;
  /** @type {Listening} */ listening;
  /** @type {Turns} */ turns;
  /** @type {Narrowing} */ narrowing;
  /** @type {VirtualRows} */ rows;
  /** @type {ResizeObserver} */ sized;
  /** @type {Record<string, (...values: any[]) => void>} */ heard;
  /** @type {string} */ form;
  /** @type {() => void} */ removeControls;

  /** @param {any} model @param {HTMLElement} el */
  constructor(model, el) {
    this.model = model;
    this.id = `sl-table-${(tables += 1)}`;
    this.editable = model.get("editable");
    this.sound = model.get("sound");
    this.data = new TableData(model);
    this.reference = model.get("reference");
    /** Position of the row that has the focus. */
    this.active = -1;
    /** @type {Map<number, Int8Array>} */
    this.outlines = new Map();
    /** Why rows have no sound. @type {Map<number, string>} */
    this.troubles = new Map();
    /** @type {Map<string, any[]>} */
    this.differences = new Map();
    /** @type {Set<string>} */
    this.askedFor = new Set();
    this.askTimer = 0;
    this.restTimer = 0;
    /** @type {Map<number, number>} */
    this.noteTimers = new Map();
    this.build(el);
    this.listen();
    this.data.ask();
    this.layOut();
  }

  /** @param {HTMLElement} el */
  build(el) {
    this.root = makeRoot(el, "speechlab-table");
    this.root.setAttribute("aria-label", `Table: ${this.model.get("title")}`);
    this.root.classList.toggle("sl-silent", !this.sound);
    this.removeControls = showControls(this.model, this.root);
    this.listening = new Listening(this.model, {
      title: (row) => this.title(row),
      neighbour: (row, step) => this.neighbour(row, step),
      go: (row) => this.go(this.positionOf(row)),
      changed: () => this.showPlaying(),
    });
    this.listening.build(this.root);
    this.turns = new Turns(this.listening, {
      title: (row) => this.title(row),
      marked: () => [...this.data.order].filter((row) => this.data.noted.mark[row]),
      audible: (row) => this.positionOf(row) >= 0 && !this.troubles.has(row),
      hear: (row) => (this.go(this.positionOf(row)), this.listening.play(row, 0, false)),
    });
    this.narrowing = new Narrowing(this.data, {
      changed: () => this.narrow(),
      laidOut: () => this.layOut(),
      compare: (name) => this.model.set("reference", name) ?? this.model.save_changes(),
      reference: () => this.reference,
      editable: this.editable,
    });
    this.narrowing.build(this.root);
    this.grid = make(this.root, "div", "sl-grid");
    this.grid.id = this.id;
    this.grid.tabIndex = 0;
    this.grid.setAttribute("role", "grid");
    this.grid.setAttribute("aria-label", this.model.get("title"));
    const head = make(this.grid, "div", "sl-headgroup");
    head.setAttribute("role", "rowgroup");
    this.header = make(head, "div", "sl-header");
    this.header.setAttribute("role", "row");
    this.header.setAttribute("aria-rowindex", "1");
    this.rows = new VirtualRows(this.grid, (position) => this.buildRow(position), (seen) => this.askFor(seen));
    this.empty = make(this.root, "p", "sl-none", "No row fits.");
    this.grid.addEventListener("keydown", (event) => this.key(event));
    this.grid.addEventListener("click", (event) => this.click(event));
    for (const name of ["pointerenter", "focusin"]) this.root.addEventListener(name, () => this.sound && this.listening.open());
    this.grid.addEventListener("pointerover", (event) => this.comeNear(event, REST_MS));
    this.grid.addEventListener("pointerdown", (event) => this.comeNear(event, 0));
    this.grid.addEventListener("focus", () => this.active < 0 && this.data.order.length && this.go(0));
    addHelp(this.root, this.editable, this.sound);
    this.sized = new ResizeObserver(() => this.fit());
    this.sized.observe(this.root);
  }

  /** Who rests on a sound is about to hear it; who only passes by is not. @param {PointerEvent} event @param {number} rest */
  comeNear(event, rest) {
    clearTimeout(this.restTimer);
    const node = /** @type {Element} */ (event.target).closest(".sl-sound")?.parentElement;
    if (!node?.dataset.row || !this.sound) return;
    const row = Number(node.dataset.row);
    this.restTimer = window.setTimeout(() => this.listening.prepare(row), rest);
  }

  listen() {
    this.heard = {
      "msg:custom": (/** @type {any} */ message, /** @type {DataView[]} */ buffers) => this.take(message, buffers),
      "change:revision": () => this.another(),
      "change:reference": () => this.compare(),
      "change:chosen": () => this.chosenElsewhere(),
    };
    for (const [name, listener] of Object.entries(this.heard)) this.model.on(name, listener);
  }

  dispose() {
    for (const [name, listener] of Object.entries(this.heard)) this.model.off(name, listener);
    clearTimeout(this.askTimer);
    clearTimeout(this.restTimer);
    this.sized.disconnect();
    this.removeControls();
    this.rows.dispose();
    this.listening.dispose();
  }

  // ------------------------------------------------------------------------------------------------ messages

  /** @param {any} message @param {DataView[]} buffers */
  take(message, buffers) {
    if (message.type !== "noted" && message.revision !== this.data.revision) return;
    if (message.type === "rows") {
      if (!this.data.take(message, buffers[0])) return;
      this.narrow(true);
      // a row that was chosen before this view began
      if (this.data.loaded === this.data.count && this.active < 0) this.chosenElsewhere();
    } else if (message.type === "sound") this.listening.take(message, buffers);
    else if (message.type === "outline") this.takeOutline(message, buffers[0]);
    else if (message.type === "differences") this.takeDifferences(message, buffers[0]);
    else if (message.type === "noted") this.takeNoted(message);
    else if (message.type === "changed") this.takeChanged(message);
  }

  /** A row has another sound. @param {{row: number, cells: Record<string, any>}} message */
  takeChanged({ row, cells }) {
    if (row >= this.data.loaded) return; // it comes with its piece
    for (const [name, value] of Object.entries(cells)) {
      const column = this.data.cells.get(name);
      if (column) column[row] = value;
    }
    this.data.haystack = null;
    this.outlines.delete(row);
    this.troubles.delete(row);
    this.askedFor.delete(`outline:${row}`);
    this.listening.renew(row);
    const { sort, categories, ranges } = this.narrowing.view;
    const narrowing = [sort?.name, ...categories.keys(), ...ranges.keys()];
    if (narrowing.some((name) => name && name in cells)) this.narrow(true);
    else {
      this.rows.rebuild(this.positionOf(row));
      this.rows.paint();
      this.narrowing.fill();
    }
    this.turns.show();
    this.fit();
  }

  /** @param {any} message @param {DataView | undefined} view */
  takeOutline(message, view) {
    const peaks = view ? new Int8Array(view.buffer, view.byteOffset, view.byteLength) : new Int8Array(0);
    if (message.bins !== THUMB_BINS) {
      this.listening.draw(message, peaks);
      return;
    }
    this.outlines.set(message.row, peaks);
    if (message.error) this.troubles.set(message.row, message.error);
    this.turns.show();
    const thumb = this.nodeOf(message.row)?.querySelector(".sl-thumb");
    if (thumb) this.showThumb(thumb, message.row, message.error);
    if (thumb && message.error) this.rows.settle();
  }

  /** The row's element, if it exists now. @param {number} row */
  nodeOf(row) {
    return this.rows.there.get(this.positionOf(row));
  }

  /** @param {any} message @param {DataView} view */
  takeDifferences(message, view) {
    if (message.reference !== this.reference) return;
    for (const { row, column, pieces } of JSON.parse(new TextDecoder().decode(view))) {
      this.differences.set(`${row}:${column}`, pieces);
      const cell = [...(this.nodeOf(row)?.children ?? [])].find((one) => one instanceof HTMLElement && one.dataset.label === column);
      const found = this.data.column(column);
      if (cell instanceof HTMLElement && found) this.fillCell(cell, row, found);
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
    this.listening.reset();
    this.turns.heard = [];
    this.narrowing.reset();
    this.layOut();
    this.narrow();
    this.data.ask();
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
    this.go(this.positionOf(row));
  }

  /** Asks for what the rows that are seen still lack, once scrolling rests. @param {number[]} seen */
  askFor(seen) {
    clearTimeout(this.askTimer);
    this.askTimer = window.setTimeout(() => {
      const rows = seen.map((position) => this.rowAt(position)).filter((row) => row >= 0);
      const { revision } = this.data;
      const fresh = (/** @type {string} */ kind) => rows.filter((row) => {
        const key = `${kind}:${row}`;
        return !this.askedFor.has(key) && this.askedFor.add(key);
      });
      const outlines = this.sound ? fresh("outline") : [];
      if (outlines.length) tell(this.model, { type: "outlines", rows: outlines, bins: THUMB_BINS, revision });
      const columns = this.data.compared(this.reference);
      const differences = columns.length ? fresh(`differences:${columns}`) : [];
      if (differences.length) tell(this.model, { type: "differences", rows: differences, reference: this.reference, columns, revision });
    }, 60);
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
  neighbour(row, step) {
    const position = this.positionOf(row);
    return this.rowAt(position < 0 ? (step > 0 ? 0 : -1) : position + step);
  }

  /** What a row is called: its number and its first text. @param {number} row */
  title(row) {
    const column = this.data.columns.find((one) => one.kind === "text" && one.shown) ?? this.data.columns[0];
    const text = column ? this.data.text(row, column) : "";
    return text ? `${row + 1}: ${text.length > 80 ? `${text.slice(0, 79)}…` : text}` : `row ${row + 1}`;
  }

  /** @param {boolean} [more] Whether rows came to those that are there. */
  narrow(more = false) {
    const row = this.rowAt(this.active);
    const before = this.data.order;
    this.data.narrow(this.narrowing.view);
    const same = more && before.length > 0 && before.every((one, position) => one === this.data.order[position]);
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
    // what can be chosen depends on the rows that are there, not on those that are seen
    if (more) this.narrowing.fill();
  }

  showStatus() {
    this.turns.show();
    this.narrowing.show(this.data.noted.mark.reduce((sum, mark) => sum + Number(mark), 0));
  }

  /** Gives a row the focus, and makes it the one that is heard next. @param {number} position */
  go(position) {
    if (position === this.active || position >= this.data.order.length) return;
    const old = this.rows.there.get(this.active);
    this.active = position;
    if (old) this.showActive(old, false);
    this.rows.kept = position;
    this.rows.paint();
    const now = this.rows.there.get(position);
    if (now) this.showActive(now, true);
    this.rows.settle();
    this.rows.reveal(position);
    this.describeActive();
    const row = this.rowAt(position);
    if (row >= 0 && this.sound) this.listening.choose(row);
    this.showPlaying();
    if (this.model.get("chosen") === row) return;
    this.model.set("chosen", row);
    this.model.save_changes();
  }

  /** @param {HTMLElement} node @param {boolean} on */
  showActive(node, on) {
    node.classList.toggle("sl-on", on);
    node.setAttribute("aria-selected", String(on));
    // Tab goes from the grid into the row that has the focus, and into no other
    for (const one of node.querySelectorAll("button, input")) if (one instanceof HTMLElement) one.tabIndex = on ? 0 : -1;
  }

  describeActive() {
    if (this.active >= 0) this.grid.setAttribute("aria-activedescendant", `${this.id}-${this.rowAt(this.active)}`);
    else this.grid.removeAttribute("aria-activedescendant");
  }

  // ------------------------------------------------------------------------------------------------ layout

  get shownColumns() {
    return this.data.columns.filter((column) => column.shown);
  }

  layOut() {
    this.header.replaceChildren();
    const head = (/** @type {string} */ title, /** @type {string} */ kind, /** @type {string} */ sort) => {
      const cell = make(this.header, "div", `sl-cell sl-${kind}`);
      cell.setAttribute("role", "columnheader");
      if (!sort) {
        make(cell, "span", "sl-quiet", title);
        return cell;
      }
      sorter(cell, title, sort);
      return cell;
    };
    const sorter = (/** @type {HTMLElement} */ cell, /** @type {string} */ title, /** @type {string} */ sort) => {
      const { sort: sorted } = this.narrowing.view;
      const down = sorted?.name === sort ? sorted.down : null;
      const state = down === null ? "none" : down ? "descending" : "ascending";
      if (cell.getAttribute("role") === "columnheader") cell.setAttribute("aria-sort", state);
      const button = make(cell, "button", "sl-sort", nameParts(title).join("\u200b"));
      button.title = title;
      button.dataset.sort = sort;
      if (sort.startsWith("noted:")) button.setAttribute("aria-label", down === null ? `Sort by ${title}` : `${title}, ${state}`);
      make(button, "span", "sl-arrow", down === null ? "" : down ? " ↓" : " ↑").setAttribute("aria-hidden", "true");
      button.addEventListener("click", () => this.sortBy(sort));
    };
    const sound = head(this.sound ? "Sound" : "", "sound", "");
    if (this.editable) {
      sorter(make(sound, "span"), "Mark", "noted:mark");
      if (this.model.get("max_rating")) sorter(make(sound, "span"), "Rating", "noted:rating");
    }
    for (const column of this.shownColumns) head(column.name, column.kind, column.name);
    if (this.editable) head("Note", "note", "noted:note");
    this.grid.setAttribute("aria-colcount", String(this.header.children.length));
    this.fit();
    this.rows.rebuild();
    this.rows.paint();
    this.showStatus();
  }

  fit() {
    const room = this.grid.clientWidth;
    if (!room) return;
    const max = this.model.get("max_rating");
    const sound = this.editable ? Math.max(this.sound ? 150 : 0, 22 * max + 34) : this.sound ? 150 : 0;
    const columns = this.shownColumns.map((column) => leastWidth(this.data, column));
    const widths = [sound, ...columns, ...(this.editable ? [110] : [])];
    const least = widths.reduce((sum, width) => sum + width + 12, 4);
    // columns, where they all have room; else what is short in a line below the texts; else the texts below each other
    const form = room >= least ? "columns" : room >= 560 ? "lines" : "narrow";
    const shares = this.shownColumns.map((column, index) =>
      column.kind === "text" ? `minmax(${columns[index]}px, 3fr)` : `minmax(${columns[index]}px, .4fr)`,
    );
    if (this.editable) shares.push("minmax(110px, 1.2fr)");
    this.grid.style.setProperty("--sl-columns", [`${sound}px`, ...shares].join(" "));
    this.grid.style.setProperty("--sl-sound", `${sound}px`);
    if (form === this.form) return;
    this.form = form;
    this.root.classList.toggle("sl-cards", form !== "columns");
    this.root.classList.toggle("sl-narrow", form === "narrow");
    this.rows.remeasure();
  }

  /** @param {string} name */
  sortBy(name) {
    const { view } = this.narrowing;
    if (view.sort?.name !== name) view.sort = { name, down: name.startsWith("noted:") };
    else if (view.sort.down === name.startsWith("noted:")) view.sort = { name, down: !view.sort.down };
    else view.sort = null;
    this.narrow();
    const focused = this.header.contains(document.activeElement);
    this.layOut();
    const buttons = [...this.header.querySelectorAll("button")];
    if (focused) buttons.find((button) => button.dataset.sort === name)?.focus();
  }

  /** @param {number} position */
  buildRow(position) {
    const row = this.rowAt(position);
    const on = position === this.active;
    const node = document.createElement("div");
    node.className = "sl-row";
    node.id = `${this.id}-${row}`;
    node.dataset.row = String(row);
    node.setAttribute("role", "row");
    node.setAttribute("aria-rowindex", String(position + 2));
    const sound = this.addCell(node, "sound", "");
    if (this.sound) {
      const play = make(sound, "button", "sl-tool sl-play");
      play.setAttribute("aria-label", `Play row ${row + 1}`);
      make(play, "span", "sl-icon").setAttribute("aria-hidden", "true");
      this.showThumb(make(sound, "span", "sl-thumb"), row, this.troubles.get(row) ?? "");
    }
    if (this.editable) addJudgement(sound, row, this.model.get("max_rating"));
    for (const column of this.shownColumns) {
      this.fillCell(this.addCell(node, column.kind, column.name), row, column);
    }
    if (this.editable) this.addNote(node, row);
    this.showNotedIn(node, row);
    this.showActive(node, on);
    this.showPlayingIn(node);
    return node;
  }

  /** @param {Element} node @param {string} kind @param {string} label */
  addCell(node, kind, label) {
    const cell = make(node, "div", `sl-cell sl-${kind}`);
    cell.setAttribute("role", "gridcell");
    if (label) cell.dataset.label = label;
    return cell;
  }

  /** @param {HTMLElement} cell @param {number} row @param {import("./data.js").Column} column */
  fillCell(cell, row, column) {
    const compared = column.compared && this.reference && column.name !== this.reference;
    showContent(cell, this.data, row, column, compared ? (this.differences.get(`${row}:${column.name}`) ?? null) : null);
  }

  /** @param {Element} node @param {number} row */
  addNote(node, row) {
    const note = make(this.addCell(node, "note", "Note"), "input", "sl-noted");
    note.type = "text";
    note.dir = "auto";
    note.placeholder = "note";
    note.setAttribute("aria-label", `Note on row ${row + 1}`);
    note.addEventListener("input", () => {
      clearTimeout(this.noteTimers.get(row));
      this.noteTimers.set(row, window.setTimeout(() => this.note(row, "note", note.value), NOTE_MS));
    });
    note.addEventListener("change", () => this.note(row, "note", note.value));
  }

  /** @param {number} row */
  showNoted(row) {
    const node = this.nodeOf(row);
    if (node) this.showNotedIn(node, row);
    this.showStatus();
  }

  /** @param {HTMLElement} node @param {number} row */
  showNotedIn(node, row) {
    const star = node.querySelector(".sl-star");
    if (star) {
      star.textContent = this.data.noted.mark[row] ? "★" : "☆";
      star.setAttribute("aria-pressed", String(Boolean(this.data.noted.mark[row])));
    }
    node.querySelectorAll(".sl-rate").forEach((button, index) => {
      button.setAttribute("aria-pressed", String(this.data.noted.rating[row] === index + 1));
    });
    const note = node.querySelector("input");
    if (note && note !== document.activeElement) note.value = this.data.noted.note[row] ?? "";
  }

  /** @param {Element} thumb @param {number} row @param {string} error */
  showThumb(thumb, row, error) {
    const peaks = this.outlines.get(row);
    thumb.replaceChildren();
    if (peaks?.length) thumb.append(waveform(peaks));
    else if (error) make(thumb, "em", "sl-error", error);
  }

  showPlaying() {
    this.turns.follow();
    for (const node of this.rows.there.values()) this.showPlayingIn(node);
  }

  /** @param {HTMLElement} node */
  showPlayingIn(node) {
    const { row, playing, share, wanted } = this.listening;
    const here = Number(node.dataset.row) === row;
    if (!here && !node.classList.contains("sl-heard-row")) return;
    node.classList.toggle("sl-heard-row", here);
    node.classList.toggle("sl-playing", here && playing);
    node.classList.toggle("sl-waiting", here && wanted === row);
    node.style.setProperty("--sl-share", here ? `${100 * (1 - share)}%` : "100%");
    const name = `${here && playing ? "Pause" : "Play"} row ${Number(node.dataset.row) + 1}`;
    const play = node.querySelector(".sl-play");
    if (play && play.getAttribute("aria-label") !== name) play.setAttribute("aria-label", name);
  }

  // ------------------------------------------------------------------------------------------------ what people do

  /** @param {number} row @param {string} name @param {any} value */
  note(row, name, value) {
    if (!this.editable || row < 0 || this.data.noted[name][row] === value) return;
    this.data.noted[name][row] = value;
    this.data.haystack = null;
    tell(this.model, { type: "noted", row, name, value, revision: this.data.revision });
    this.showNoted(row);
  }

  /** @param {number} row @param {number} rating */
  rate(row, rating) {
    if (rating > this.model.get("max_rating")) return;
    this.note(row, "rating", rating && this.data.noted.rating[row] !== rating ? rating : null);
  }

  /** @param {MouseEvent} event */
  click(event) {
    const target = /** @type {Element} */ (event.target);
    const node = /** @type {HTMLElement | null} */ (target.closest(".sl-row"));
    if (!node) return;
    const row = Number(node.dataset.row);
    const button = target.closest("button");
    const thumb = target.closest(".sl-thumb");
    const input = target.closest("input");
    this.go(this.positionOf(row));
    if (button?.classList.contains("sl-play")) {
      if (this.listening.playing) this.listening.audio.pause();
      else this.listening.playOrPause();
    } else if (button?.classList.contains("sl-star")) this.note(row, "mark", !this.data.noted.mark[row]);
    else if (button?.classList.contains("sl-rate")) this.rate(row, Number(button.textContent));
    else if (thumb) {
      const box = thumb.getBoundingClientRect();
      this.listening.play(row, ((event.clientX - box.left) / box.width) * this.listening.seconds);
    }
    if (!input && !String(getSelection())) this.grid.focus({ preventScroll: true });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = /** @type {HTMLElement} */ (event.target);
    if (target instanceof HTMLInputElement) {
      if (event.key !== "Escape" && event.key !== "Enter") return;
      event.preventDefault();
      target.blur();
      this.grid.focus({ preventScroll: true });
      return;
    }
    if (target instanceof HTMLButtonElement && (event.key === " " || event.key === "Enter")) return;
    const act = this.action(event.key);
    if (!act) return;
    event.preventDefault();
    act();
  }

  /** What a key does, or undefined. @param {string} key @returns {(() => void) | undefined} */
  action(key) {
    const row = this.rowAt(this.active);
    const last = this.data.order.length - 1;
    const page = Math.max(Math.floor(this.grid.clientHeight / this.rows.height) - 1, 1);
    const step = (/** @type {number} */ by) => () => {
      const go = this.listening.playing || this.listening.wanted >= 0;
      this.go(Math.min(Math.max(this.active + by, 0), last));
      if (go) this.listening.play(this.rowAt(this.active), 0, false);
    };
    const { listening } = this;
    if (!this.sound && SOUND_KEYS.test(key)) return undefined;
    if (/^\d$/.test(key)) return () => this.rate(row, Number(key));
    return {
      ArrowDown: step(1), j: step(1), ArrowUp: step(-1), k: step(-1), PageDown: step(page), PageUp: step(-page),
      Home: step(-Infinity), End: step(Infinity),
      " ": () => listening.playOrPause(), Enter: () => listening.playOrPause(), p: () => listening.playOrPause(),
      a: () => row >= 0 && listening.play(row, 0),
      b: () => this.turns.go(),
      ArrowLeft: () => listening.seek(listening.audio.currentTime - 1),
      ArrowRight: () => listening.seek(listening.audio.currentTime + 1),
      m: () => this.note(row, "mark", !this.data.noted.mark[row]),
      n: () => this.rows.there.get(this.active)?.querySelector("input")?.focus(),
      "/": () => this.narrowing.search.focus(),
      Escape: () => listening.audio.pause(),
    }[key];
  }
}

/** @param {{model: any, el: HTMLElement}} place */
function render({ model, el }) {
  const view = new AudioTableView(model, el);
  return () => {
    view.dispose();
    view.root.remove();
  };
}

export default liveWidget(render);
