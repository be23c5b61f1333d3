// The segments of an editor and the history of edits: shared by all views of a model and sent to the kernel.
//
// An edit shows at once and goes to the kernel with the revision that it belongs to. The kernel applies it and reports
// every page. If the kernel has set other segments in the meantime, these win.

import { GONE, LATE, PATIENCE_MS, post } from "../../_shared/kernel.js";
import { layLanes } from "../../_player/browser/draw.js";

const SAME_STEP_MS = 1_200;
const MOST_STEPS = 500;

/**
 * @typedef {import("./rows.js").EditedRow} EditedRow
 * @typedef {{put: EditedRow[], removed: number[]}} RowChange
 * @typedef {{forth: RowChange, back: RowChange, said: string, key: string, at: number}} Step
 * @typedef {{changed: (said: string, failed: boolean) => void, typing: boolean, settleFields: () => void}} BookView
 */

/** @type {WeakMap<object, Book>} */
const books = new WeakMap();

/** @param {any} model @returns {Book} */
export function bookOf(model) {
  let book = books.get(model);
  if (!book) {
    book = new Book(model);
    books.set(model, book);
  }
  return book;
}

export class Book {
  /** @param {any} model */
  constructor(model) {
    this.model = model;
    this.by = Math.random().toString(36).slice(2);
    this.revision = -1;
    /** @type {EditedRow[]} */
    this.rows = [];
    this.lanes = 1;
    /** The row that is being dragged, with its new times. @type {EditedRow | null} */
    this.draft = null;
    /** Id of the selected row. */
    this.chosen = -1;
    /** @type {Step[]} */
    this.past = [];
    /** @type {Step[]} */
    this.future = [];
    this.number = 0;
    /** Edits that the kernel has not confirmed yet. @type {Set<number>} */
    this.open = new Set();
    /** Whether an edit of another window arrived while edits of this one were unconfirmed. */
    this.crossed = false;
    /** Whether the view has announced that the kernel is late. */
    this.late = false;
    /** @type {Set<BookView>} */
    this.views = new Set();
  }

  /** @param {BookView} view */
  enter(view) {
    this.views.add(view);
    if (this.revision < 0 && !post(this.model, { type: "rows" })) this.changed(GONE, true);
  }

  /** @param {string} [words] @param {boolean} [failed] */
  changed(words = "", failed = false) {
    for (const view of this.views) view.changed(words, failed);
  }

  get index() {
    return this.rows.findIndex((row) => row.id === this.chosen);
  }

  get row() {
    return this.rows[this.index] ?? null;
  }

  /** Selects a row. Text typed in any view is first applied to the previous row. @param {number} id */
  choose(id) {
    for (const view of this.views) view.settleFields();
    this.chosen = id;
  }

  /** A random id, so that no two pages assign the same one. */
  newId() {
    return 1e6 + Math.floor(Math.random() * 2 ** 48);
  }

  /** Handles a message of the kernel. @param {any} message @param {DataView[]} buffers */
  take(message, buffers) {
    if (message.type === "rows") this.load(message, buffers[0]);
    else if (message.revision === this.revision) this.keep(message);
  }

  /** Handles an edit that the kernel confirms. Edits of several windows arrive in the kernel's order. @param {any} message */
  keep(message) {
    const { open } = this;
    const ours = message.by === this.by;
    if (ours) open.delete(message.number);
    else {
      this.past = [];
      this.future = [];
    }
    if (!ours || this.crossed) this.replace({ put: message.put.map(rowOf), removed: message.removed });
    if (!ours) this.changed("Edited in another window");
    else if (this.late && !open.size) {
      this.late = false;
      this.changed("Python has all edits now");
    } else if (this.crossed) this.changed();
    this.crossed = open.size > 0 && (this.crossed || !ours);
  }

  /** @param {any} message @param {DataView} data */
  load(message, data) {
    if (message.revision === this.revision) return;
    const first = this.revision < 0;
    const dropped = this.open.size > 0 || this.draft !== null || [...this.views].some((view) => view.typing);
    this.revision = message.revision;
    this.rows = JSON.parse(new TextDecoder().decode(data)).map(rowOf);
    this.lanes = layLanes(this.rows);
    this.past = [];
    this.future = [];
    this.open.clear();
    this.crossed = false;
    this.late = false;
    this.draft = null;
    this.chosen = -1;
    const set = dropped ? "Python has set other segments; what was under way here is dropped" : "Python has set other segments";
    this.changed(message.error || (first ? "" : set), Boolean(message.error) || dropped);
  }

  /** @param {RowChange} change */
  replace({ put, removed }) {
    const replaced = new Set([...removed, ...put.map((row) => row.id)]);
    this.rows = [...this.rows.filter((row) => !replaced.has(row.id)), ...put.map((row) => ({ ...row }))];
    this.rows.sort((first, second) => first.start - second.start || first.end - second.end);
    this.lanes = layLanes(this.rows);
  }

  /**
   * Applies an edit. Edits with the same key in quick succession are undone together.
   * @param {string} said @param {EditedRow[]} put @param {number[]} [removed] @param {string} [key]
   */
  edit(said, put, removed = [], key = "") {
    const old = new Map(this.rows.map((row) => [row.id, row]));
    const before = [...put.map((row) => row.id), ...removed].flatMap((id) => old.get(id) ?? []);
    const back = { put: before, removed: put.filter((row) => !old.has(row.id)).map((row) => row.id) };
    const now = performance.now();
    const last = this.past.at(-1);
    const goesOn = key && last && last.key === key && now - last.at < SAME_STEP_MS;
    if (goesOn) Object.assign(last, { forth: { put, removed }, at: now });
    else this.past.push({ forth: { put, removed }, back, said, key, at: now });
    this.past.splice(0, this.past.length - MOST_STEPS);
    this.future = [];
    this.send({ put, removed }, said);
  }

  undo() {
    const step = this.past.pop();
    if (!step) return;
    this.future.push(step);
    this.chosen = step.back.put[0]?.id ?? this.chosen;
    this.send(step.back, `Undone: ${step.said}`);
  }

  redo() {
    const step = this.future.pop();
    if (!step) return;
    this.past.push({ ...step, key: "" });
    this.chosen = step.forth.put[0]?.id ?? this.chosen;
    this.send(step.forth, `Redone: ${step.said}`);
  }

  /** @param {RowChange} change @param {string} words */
  send(change, words) {
    this.replace(change);
    if (this.index < 0) this.chosen = change.put.at(-1)?.id ?? -1;
    const number = ++this.number;
    const { revision, by } = this;
    const put = change.put.map(({ id, start, end, text, speaker, like }) => [id, start, end, text, speaker, like]);
    this.open.add(number);
    this.changed(words);
    if (!post(this.model, { type: "edit", revision, by, number, put, removed: change.removed })) {
      this.changed(`${GONE}. What is edited here is not in Python`, true);
      return;
    }
    setTimeout(() => {
      if (!this.open.has(number)) return;
      this.late = true;
      this.changed(`${LATE}. The last edits are not in Python yet`, true);
    }, PATIENCE_MS);
  }
}

/** @param {any[]} values @returns {EditedRow} */
function rowOf([id, start, end, text, speaker, like]) {
  return { id, start, end, text, speaker, like };
}
