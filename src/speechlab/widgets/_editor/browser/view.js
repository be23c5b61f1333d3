// The editor: a player whose first tier can be edited with the pointer, keys, fields and buttons.

import { clock } from "../../_shared/dom.js";
import { focusIn } from "../../_shared/keys.js";
import { PlayerView } from "../../_player/browser/view.js";
import { spanText } from "../../_player/browser/list.js";
import { bookOf } from "./book.js";
import { EditGestures } from "./gestures.js";
import { Panel } from "./panel.js";
import { joinTexts, movedRow, NUDGE_S, onGrid, resizedRow, SHORTEST_SEGMENT_S, toMicroseconds } from "./rows.js";

const AROUND_S = 0.5;
const NEW_S = 1;
/** Tolerance for the end of the recording, which a field shows rounded. */
const SLACK_S = 0.01;

/** @typedef {import("./rows.js").EditedRow} EditedRow */

export class EditorView extends PlayerView {
  kind = "Segment editor";

  /** @param {any} model @param {Element} el @param {string} className @param {string[][]} keys */
  constructor(model, el, className, keys) {
    super(model, el, className, keys);
    this.book = bookOf(model);
    this.panel = new Panel(this);
  }

  begin() {
    super.begin();
    this.book.enter(this);
    this.showChoice();
    return this;
  }

  makeGestures() {
    return new EditGestures(this);
  }

  get grid() {
    return this.model.get("snap_s");
  }

  get lang() {
    return this.model.get("lang");
  }

  get layers() {
    const { rows, draft, lanes } = this.book;
    let segments = rows;
    if (draft) {
      const exists = rows.some((row) => row.id === draft.id);
      segments = exists ? rows.map((row) => (row.id === draft.id ? draft : row)) : [...rows, draft];
    }
    return [{ name: "segments", lang: this.lang, segments, lanes, editable: true }, ...super.layers];
  }

  /** Whether the list is that of the edited tier. */
  get edited() {
    return this.model.get("tier") === 0;
  }

  /** Without the draft of a new segment, which is drawn with the others. */
  get segments() {
    return this.edited ? this.book.rows : super.segments;
  }

  /** Edges to snap to: those of other rows and tiers, the position, and both ends of the recording. @param {number} id */
  edges(id) {
    const segments = [...this.book.rows.filter((row) => row.id !== id), ...this.model.get("layers").flatMap((layer) => layer.segments)];
    return [0, this.duration, this.transport.now(), ...segments.flatMap((segment) => [segment.start, segment.end])];
  }

  /** Keeps a warning about unconfirmed edits on the screen while playback changes. @param {string} words */
  sayState(words) {
    if (!this.book.open.size || !this.ui.live.classList.contains("sl-failed")) this.say(words);
  }

  // -- selection

  /** @param {number} id */
  choose(id) {
    this.book.choose(id);
    this.put({ tier: 0, selected: this.book.index, ...(id >= 0 ? { selection: [] } : {}) });
    this.paint();
  }

  /** @param {number} index */
  chooseSegment(index) {
    if (this.edited) this.choose(this.book.rows[index].id);
    else super.chooseSegment(index);
  }

  playChosen() {
    if (this.book.row) this.playSegment(this.book.index);
    else this.playSelection();
  }

  /** The selected row; without one, says so. */
  neededRow() {
    if (!this.book.row) this.say("No segment selected");
    return this.book.row;
  }

  /** @param {"start" | "end"} side */
  playAround(side) {
    const row = this.neededRow();
    if (row) this.start(row[side] - AROUND_S, row[side] + AROUND_S);
  }

  showChosen() {
    const { row } = this.book;
    if (row) this.look(row.start - 0.25 * (row.end - row.start), row.end + 0.25 * (row.end - row.start));
  }

  escape() {
    if (this.book.chosen < 0) this.put({ selection: [] });
    this.choose(-1);
  }

  // -- edits

  /** Edits the selected row if the values differ. @param {Partial<EditedRow>} values @param {string} words @param {string} [key] */
  rewrite(values, words, key) {
    const row = this.neededRow();
    if (!row) return;
    const edited = { ...row, ...values };
    const same = edited.start === row.start && edited.end === row.end && edited.text === row.text && edited.speaker === row.speaker;
    if (!same) this.book.edit(words, [edited], [], key && `${key}${row.id}`);
  }

  /** @param {"start" | "end"} side @param {number} seconds @param {string} [key] */
  moveEdge(side, seconds, key) {
    const row = this.neededRow();
    if (!row) return;
    if (side === "start" ? seconds >= row.end : seconds <= row.start) this.say("A segment starts before it ends");
    else if (seconds < 0 || seconds > this.duration + SLACK_S) this.say(`The recording goes from 0 to ${clock(this.duration)}`);
    else {
      const edited = resizedRow(row, side, onGrid(seconds, this.grid), this.duration, this.grid);
      this.rewrite(edited, `${side} at ${clock(edited[side])}`, key);
    }
  }

  /** @param {number} direction */
  nudge(direction) {
    const row = this.neededRow();
    if (!row) return;
    const hold = { edges: [], reach: -1, grid: this.grid };
    const moved = movedRow(row, row.start + direction * (this.grid || NUDGE_S), this.duration, hold);
    this.rewrite(moved, `moved to ${spanText(moved)}`, "nudge");
    this.show(moved.start, moved.end);
  }

  /** @param {EditedRow} row @param {string} side The part that was dragged. */
  dragged(row, side) {
    if (side !== "new") {
      const moved = side === "both" ? `moved to ${spanText(row)}` : `${side} at ${clock(row[/** @type {"start"} */ (side)])}`;
      this.rewrite(row, moved);
    } else if (row.end - row.start >= SHORTEST_SEGMENT_S) {
      this.book.edit(`added ${spanText(row)}`, [row]);
      this.choose(row.id);
    }
  }

  split() {
    this.settleFields();
    const at = onGrid(this.transport.now(), this.grid);
    const inside = (/** @type {EditedRow} */ row) => row.start + SHORTEST_SEGMENT_S <= at && at <= row.end - SHORTEST_SEGMENT_S;
    const chosen = this.book.row;
    const row = chosen && inside(chosen) ? chosen : this.book.rows.find(inside);
    if (!row) {
      this.say("Move the position into the segment to split it");
      return;
    }
    const second = { ...row, id: this.book.newId(), start: at, text: "" };
    this.book.edit(`split at ${clock(at)}`, [{ ...row, end: at }, second]);
    this.choose(row.id);
  }

  merge() {
    this.settleFields();
    const row = this.neededRow();
    const next = this.book.rows[this.book.index + 1];
    if (row && !next) this.say("No next segment");
    if (!row || !next) return;
    const merged = { ...row, end: Math.max(row.end, next.end), text: joinTexts(row.text, next.text), speaker: row.speaker || next.speaker };
    this.book.edit(`merged to ${spanText(merged)}`, [merged], [next.id]);
  }

  remove() {
    const row = this.neededRow();
    if (!row) return;
    const { index } = this.book;
    const next = this.book.rows[index + 1] ?? this.book.rows[index - 1];
    this.book.chosen = next?.id ?? -1;
    this.book.edit(`deleted ${spanText(row)}`, [], [row.id]);
  }

  /** Adds a segment for the selection, or of one second at the position if there is room. */
  add() {
    this.settleFields();
    const { rows } = this.book;
    const at = this.transport.now();
    let [start, end] = (this.selection ?? [at, at + NEW_S]).map((seconds) => onGrid(seconds, this.grid));
    if (!this.selection) {
      if (rows.some((row) => row.start <= at && at < row.end)) {
        this.say("The position is in a segment; select a range to add one over it");
        return;
      }
      end = Math.min(end, ...rows.filter((row) => row.start > at).map((row) => row.start));
    }
    end = Math.min(end, toMicroseconds(this.duration));
    if (end - start < SHORTEST_SEGMENT_S) {
      this.say("No room for a segment here");
      return;
    }
    const row = { id: this.book.newId(), start, end, text: "", speaker: "", like: -1 };
    this.book.edit(`added ${spanText(row)}`, [row]);
    this.choose(row.id);
  }

  undo() {
    this.settleFields();
    if (this.book.past.length) this.book.undo();
    else this.say("Nothing to undo");
  }

  redo() {
    if (this.book.future.length) this.book.redo();
    else this.say("Nothing to redo");
  }

  // -- fields

  typeText() {
    if (this.neededRow()) this.panel.fields.text.focus();
  }

  /** Whether the fields hold values that are in no row yet. */
  get typing() {
    return Object.keys(this.panel.typed()).length > 0;
  }

  /** Applies the typed values to the row that they were typed for. */
  settleFields() {
    const { panel, book } = this;
    if (!this.typing || book.row?.id !== panel.row?.id) return;
    const { start, end, ...words } = panel.typed();
    panel.fill(book.row);
    for (const [side, typed] of /** @type {const} */ ([["start", start], ["end", end]])) {
      const seconds = Number(typed || NaN);
      if (Number.isFinite(seconds)) this.moveEdge(side, seconds, `field ${side}`);
    }
    for (const [name, text] of Object.entries(words)) this.rewrite({ [name]: text.trim() }, `${name} changed`);
  }

  /** Shows the selected row in the fields and enables the commands that apply to it. */
  showChoice() {
    const { panel, book } = this;
    const { row, index } = book;
    panel.show(book);
    panel.suggest(new Set(book.rows.map((row) => row.speaker).filter(Boolean)));
    const { play, head, tail, split, merge, remove, add, undo, redo } = panel.buttons;
    for (const button of [play, head, tail, remove]) button.disabled = !row;
    merge.disabled = !row || !book.rows[index + 1];
    split.disabled = !book.rows.length;
    add.disabled = book.revision < 0;
    undo.disabled = !book.past.length;
    redo.disabled = !book.future.length;
    if (this.edited) this.list.rove(row ?? book.rows[0]);
  }

  /** Selects another segment from within the list without playing it. @param {number} index */
  walk(index) {
    const row = this.book.rows[Math.min(Math.max(index, 0), this.book.rows.length - 1)];
    if (!row) return;
    this.choose(row.id);
    this.show(row.start, row.end);
    this.list.button(row.id)?.focus({ preventScroll: true });
  }

  // -- display

  /** Shows changed rows. @param {string} words @param {boolean} failed */
  changed(words, failed) {
    if (!this.book.draft) this.gestures.drop();
    if (this.edited && this.model.get("selected") !== this.book.index) this.put({ selected: this.book.index });
    this.showRows();
    if (words || failed) this.say(words, failed);
  }

  showRows() {
    this.keepFocus(() => {
      this.listSegments();
      this.showChoice();
    });
  }

  /** Keeps the focus in the widget if the focused element disappears, since the notebook would receive the keys. @param {() => void} act */
  keepFocus(act) {
    const { ui, book } = this;
    const focused = focusIn(ui.root);
    const listed = focused !== null && ui.list.contains(focused);
    act();
    if (!focused || (focused.isConnected && !focused.matches(":disabled"))) return;
    const button = listed ? this.list.button(book.chosen) : null;
    (button ?? ui.slider).focus({ preventScroll: true });
  }

  listSegments() {
    super.listSegments(this.edited);
  }

  listeners() {
    const inherited = super.listeners();
    const answered = inherited["msg:custom"];
    return {
      ...inherited,
      "change:selected": () => {
        const { model, book, panel } = this;
        const row = book.rows[model.get("selected")];
        if (this.edited && row?.id !== panel.row?.id) {
          book.choose(row?.id ?? -1);
          this.keepFocus(() => this.showChoice());
        }
        this.paint();
      },
      "change:tier": () => {
        this.showRows();
        if (this.edited) this.put({ selected: this.book.index });
      },
      "msg:custom": (message, buffers) => {
        if (message.type === "rows" || message.type === "kept") this.book.take(message, buffers);
        else answered(message, buffers);
      },
    };
  }

  dispose() {
    this.settleFields();
    this.book.views.delete(this);
    super.dispose();
  }
}
