// The form of an editor: fields for the selected segment, and a button for each command.

import { clock, make } from "../../_shared/dom.js";
import { NUDGE_S } from "./rows.js";

/** @typedef {import("./rows.js").EditedRow} EditedRow */
/** @typedef {import("./view.js").EditorView} EditorView */

/** Names, texts and titles of the buttons, and what they do. @type {[string, string, string, (editor: EditorView) => void][]} */
const EDIT_BUTTONS = [
  ["play", "Play", "Play the segment (Enter)", (editor) => editor.playChosen()],
  ["head", "▸[", "Play around its start (1)", (editor) => editor.playAround("start")],
  ["tail", "]▸", "Play around its end (2)", (editor) => editor.playAround("end")],
  ["split", "Split", "Split at the position (C)", (editor) => editor.split()],
  ["merge", "Merge", "Merge with the next (M)", (editor) => editor.merge()],
  ["remove", "Delete", "Delete the segment (Delete)", (editor) => editor.remove()],
  ["add", "Add", "Add a segment: the selection, or at the position (A)", (editor) => editor.add()],
  ["undo", "Undo", "Undo (Ctrl+Z)", (editor) => editor.undo()],
  ["redo", "Redo", "Redo (Ctrl+Shift+Z)", (editor) => editor.redo()],
];
const FIELD_NAMES = /** @type {const} */ (["start", "end", "speaker", "text"]);

/** @param {number} seconds */
const inField = (seconds) => String(Math.round(seconds * 1000) / 1000);

/** @param {EditedRow | null} row */
function fieldsOf(row) {
  return { start: row ? inField(row.start) : "", end: row ? inField(row.end) : "", speaker: row?.speaker ?? "", text: row?.text ?? "" };
}

export class Panel {
  /** The row in the fields. @type {EditedRow | null} */ row;
  /** The values of the fields before the user typed. @type {ReturnType<typeof fieldsOf>} */ filled;

  /** @param {EditorView} editor */
  constructor(editor) {
    const { ui, grid, lang } = editor;
    this.root = make(null, "div", "sl-edit", { role: "group", "aria-label": "Selected segment" });
    ui.tiers.before(this.root);
    this.title = make(this.root, "div", "sl-chosen");
    const form = make(this.root, "div", "sl-fields");
    /** @param {string} name @param {string} label @param {"input" | "textarea"} kind @param {Record<string, any>} attributes */
    const field = (name, label, kind, attributes) => {
      const around = make(form, "label", `sl-field sl-${name}`);
      make(around, "span", "", label);
      return make(around, kind, "", { ...attributes, change: () => editor.settleFields() });
    };
    const id = `speechlab-speakers-${Math.random().toString(36).slice(2)}`;
    const seconds = { type: "number", min: 0, step: grid || NUDGE_S };
    this.fields = {
      start: field("start", "Start (s)", "input", seconds),
      end: field("end", "End (s)", "input", seconds),
      speaker: field("speaker", "Speaker", "input", { list: id, dir: "auto" }),
      text: field("words", "Text", "textarea", { dir: "auto", ...(lang ? { lang } : {}) }),
    };
    this.names = make(form, "datalist", "", { id });
    const bar = make(this.root, "div", "sl-bar");
    /** @type {Record<string, HTMLButtonElement>} */
    this.buttons = {};
    for (const [name, text, label, act] of EDIT_BUTTONS) {
      const title = { title: label, "aria-label": label.replace(/ \(.*/, "") };
      this.buttons[name] = make(bar, "button", "sl-small", text, { ...title, click: () => act(editor) });
    }
    this.fill(null);
  }

  /** Fills the fields with a row and discards text typed there. @param {EditedRow | null} row */
  fill(row) {
    this.row = row;
    this.filled = fieldsOf(row);
    for (const name of FIELD_NAMES) {
      const field = this.fields[name];
      if (field.value !== this.filled[name]) field.value = this.filled[name];
      this.filled[name] = field.value; // the field normalizes or removes line breaks
      field.disabled = !row;
    }
  }

  /** Shows the selected row, if any. Typed text stays as long as the row does. @param {import("./book.js").Book} book */
  show({ row, index, rows, revision }) {
    if (row !== this.row) this.fill(row);
    const none = rows.length ? "No segment selected" : revision < 0 ? "The segments have not come yet" : "There are no segments";
    const long = row ? (row.end - row.start).toFixed(2) : "";
    this.title.textContent = row ? `Segment ${index + 1} of ${rows.length}, ${long} s from ${clock(row.start)}` : none;
  }

  /** @param {Set<string>} speakers */
  suggest(speakers) {
    if (this.names.children.length === speakers.size && [...speakers].every((name, at) => this.names.children[at].getAttribute("value") === name)) return;
    this.names.replaceChildren();
    for (const name of speakers) make(this.names, "option").value = name;
  }

  /** Typed values that are not in the row yet, by field. */
  typed() {
    /** @type {Partial<Record<typeof FIELD_NAMES[number], string>>} */
    const typed = {};
    for (const name of FIELD_NAMES) {
      const { value } = this.fields[name];
      if (value !== this.filled[name]) typed[name] = value;
    }
    return typed;
  }
}
