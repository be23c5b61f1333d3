// Pointer and keys of the editor: drag edges and segments, or drag in an empty part of the tier to add a segment.

import { AXIS_PX } from "../../_player/browser/draw.js";
import { Gestures } from "../../_player/browser/gestures.js";
import { holdOn, movedRow, resizedRow, toMicroseconds } from "./rows.js";

const EDGE_PX = 5;
const HOLD_PX = 8;
const MOVED_PX = 3;

/**
 * @typedef {import("./rows.js").EditedRow} EditedRow
 * @typedef {{row: EditedRow, side: "start" | "end" | "both" | "new", x: number, seconds: number, moved: boolean, edges: number[]}} Pull
 */

export class EditGestures extends Gestures {
  /** @type {Pull | null} */ pulled = null;

  /** @param {import("./view.js").EditorView} editor */
  constructor(editor) {
    super(editor);
    this.editor = editor;
    editor.ui.slider.addEventListener("pointerleave", () => (editor.ui.slider.style.cursor = ""));
  }

  /** The edge or segment below the pointer, or null. @param {PointerEvent} event @returns {Pull | null} */
  grip(event) {
    const { editor } = this;
    const { book } = editor;
    const seconds = this.secondsAt(event);
    const { tier, lane } = this.tierAt(event);
    const box = editor.ui.canvas.getBoundingClientRect();
    if (tier > 0 || book.revision < 0 || event.clientY - box.top < AXIS_PX) return null;
    const [start, end] = editor.view;
    const perPixel = (end - start) / box.width;
    // Where two segments touch, the edge of the selected one comes first, then that of the one below the pointer.
    const rows = book.rows.filter((row) => tier < 0 || row.lane === lane);
    const order = [...rows.filter((row) => row.id === book.chosen), ...rows.filter((row) => row.start <= seconds && seconds < row.end), ...rows];
    for (const row of order) {
      // A short segment keeps a part in its middle that moves the whole segment.
      const reach = Math.min(EDGE_PX, (row.end - row.start) / perPixel / 4 + 1) * perPixel;
      for (const side of /** @type {const} */ (["start", "end"])) {
        if (Math.abs(seconds - row[side]) <= reach) return this.pullOf(event, row, side, seconds);
      }
    }
    if (tier < 0) return null;
    const row = rows.find((row) => row.start <= seconds && seconds < row.end);
    if (row) return this.pullOf(event, row, "both", seconds);
    const fresh = { id: book.newId(), start: seconds, end: seconds, text: "", speaker: "", like: -1 };
    return this.pullOf(event, fresh, "new", seconds);
  }

  /** @param {PointerEvent} event @param {EditedRow} row @param {Pull["side"]} side @param {number} seconds @returns {Pull} */
  pullOf(event, row, side, seconds) {
    return { row, side, seconds, x: event.clientX, moved: false, edges: [] };
  }

  /** @param {PointerEvent} event */
  press(event) {
    if (event.button !== 0) return;
    const { editor } = this;
    editor.settleFields(); // an edit ends a drag and may move the segment below the pointer
    const pulled = this.grip(event);
    this.pulled = pulled;
    if (!pulled) {
      super.press(event);
      return;
    }
    pulled.edges = editor.edges(pulled.row.id);
    editor.ui.slider.setPointerCapture(event.pointerId);
    if (pulled.side !== "new") editor.choose(pulled.row.id);
  }

  /** @param {PointerEvent} event */
  pull(event) {
    const { pulled, editor } = this;
    if (!pulled) {
      super.pull(event);
      if (this.drag) return;
      const side = this.grip(event)?.side; // what a drag would start from here
      editor.ui.slider.style.cursor = !side ? "" : side === "both" ? "grab" : side === "new" ? "copy" : "ew-resize";
      return;
    }
    pulled.moved ||= Math.abs(event.clientX - pulled.x) > MOVED_PX;
    if (!pulled.moved) return;
    const { row, side } = pulled;
    const seconds = this.secondsAt(event);
    const [start, end] = editor.view;
    const reach = event.altKey ? -1 : (HOLD_PX * (end - start)) / editor.ui.canvas.clientWidth;
    const hold = { edges: pulled.edges, reach, grid: event.altKey ? 0 : editor.grid };
    const limit = editor.duration;
    if (side === "both") editor.book.draft = movedRow(row, row.start + seconds - pulled.seconds, limit, hold);
    else if (side === "new") {
      const edges = [holdOn(pulled.seconds, hold), holdOn(seconds, hold)].sort((first, second) => first - second);
      editor.book.draft = { ...row, start: edges[0], end: edges[1] };
    } else editor.book.draft = resizedRow(row, side, holdOn(seconds, hold), limit, hold.grid);
    editor.paint();
  }

  release() {
    const { pulled, editor } = this;
    if (!pulled) {
      super.release();
      return;
    }
    this.pulled = null;
    const { draft } = editor.book;
    editor.book.draft = null;
    if (!pulled.moved) {
      if (pulled.side === "new") editor.choose(-1);
      editor.seek(pulled.seconds);
    } else if (draft && draft.end > draft.start) editor.dragged(draft, pulled.side);
    editor.paint();
  }

  get dragging() {
    return super.dragging || this.pulled !== null;
  }

  drop() {
    super.drop();
    if (!this.pulled) return;
    this.pulled = null;
    this.editor.book.draft = null;
    this.editor.paint();
  }

  acts() {
    const { anywhere, here } = super.acts();
    const { editor } = this;
    const at = toMicroseconds(editor.transport.now());
    Object.assign(anywhere, {
      "[": () => editor.moveEdge("start", at),
      "]": () => editor.moveEdge("end", at),
      c: () => editor.split(),
      m: () => editor.merge(),
      a: () => editor.add(),
      e: () => editor.typeText(),
      z: () => editor.showChosen(),
      1: () => editor.playAround("start"),
      2: () => editor.playAround("end"),
      Delete: () => editor.remove(),
      Backspace: () => editor.remove(),
      Escape: () => editor.escape(),
    });
    Object.assign(here, { Enter: () => editor.playChosen() });
    return { anywhere, here };
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { editor } = this;
    const { target } = event;
    if (target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement) {
      this.typing(event, target);
      return;
    }
    const arrow = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
    const command = (event.ctrlKey || event.metaKey) && !event.altKey;
    const letter = event.key.toLowerCase();
    if (command && (letter === "z" || letter === "y")) {
      if (letter === "y" || event.shiftKey) editor.redo();
      else editor.undo();
    } else if (!command && !event.altKey && this.list(event)) {
      // the event selected another item of the list
    } else if (arrow && event.shiftKey && !command && !event.altKey && target === editor.ui.slider) editor.nudge(arrow);
    else {
      super.key(event);
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  /** Handles the keys of the list of segments. Returns whether the event was one of them. @param {KeyboardEvent} event */
  list(event) {
    const { editor } = this;
    const item = event.target instanceof Element ? event.target.closest("li") : null;
    const index = item ? [...editor.ui.list.children].indexOf(item) : -1;
    if (index < 0 || !editor.edited) return false;
    const { rows } = editor.book;
    /** @type {Record<string, number>} */
    const places = { ArrowDown: index + 1, ArrowUp: index - 1, PageDown: index + 10, PageUp: index - 10, Home: 0, End: rows.length - 1 };
    if (!(event.key in places)) return false;
    editor.walk(places[event.key]);
    return true;
  }

  /** Enter applies the text of a field, Escape discards it. Both return the focus to the waveform. @param {KeyboardEvent} event @param {HTMLElement} target */
  typing(event, target) {
    const { editor } = this;
    if (event.isComposing || !editor.panel.root.contains(target)) return;
    if (event.key === "Escape") editor.panel.fill(editor.book.row);
    else if (event.key !== "Enter") return;
    editor.settleFields();
    editor.ui.slider.focus();
    event.preventDefault();
  }
}
