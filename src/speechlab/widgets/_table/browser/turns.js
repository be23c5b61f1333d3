// A/B: one key and one button that switch between two sounds, or cycle through the marked ones.
//
// Each sound starts from its beginning. At the same fraction of another voice's sound there would be another word, since
// voices differ in pauses and speed. A Player switches between recordings with the same times without a restart.
// The label of the button names the next sound, so that no announcement is read aloud over the sound.

import { make } from "../../_shared/dom.js";

const WITHOUT = "Mark two rows with a sound, or hear two, to switch between them";

export class Turns {
  /** The row that was played last, and the one before it. @type {number[]} */
  recent = [];
  /** The row that A/B plays next, or -1. */
  next = -1;
  /** The row that was selected when the button was last updated. */
  row = -1;
  /** @type {HTMLButtonElement} */ button;

  /** @param {import("./table.js").AudioTableView} view */
  constructor(view) {
    const { player } = view;
    this.view = view;
    this.player = player;
    this.button = make(player.bar, "button", "sl-button sl-turn", "A/B", { click: () => this.go() });
    player.toggle.nextElementSibling?.after(this.button);
    this.show();
  }

  go() {
    const { row } = this.player;
    this.show();
    const { next } = this; // another one comes after it as soon as it is chosen
    if (next < 0) this.player.fail(WITHOUT);
    else {
      if (row >= 0) this.note(row);
      this.view.goTo(next);
      this.player.play(next, 0, false);
    }
  }

  /** @param {number} row The row that plays. */
  note(row) {
    if (this.recent[0] !== row) this.recent = [row, ...this.recent.slice(0, 1)];
  }

  other() {
    const { row } = this.player;
    const { data, troubles } = this.view;
    const audible = (/** @type {number} */ candidate) => this.view.positionOf(candidate) >= 0 && !troubles.has(candidate);
    const marked = [...data.order].filter((candidate) => data.noted.mark[candidate] && !troubles.has(candidate));
    if (marked.length > 1) return marked[(marked.indexOf(row) + 1) % marked.length];
    return this.recent.find((candidate) => candidate !== row && audible(candidate)) ?? -1;
  }

  /** Follows a change of playback. */
  follow() {
    const { playing, row } = this.player;
    if (row === this.row && (!playing || row === this.recent[0])) return;
    this.row = row;
    if (playing) this.note(row);
    this.show();
  }

  show() {
    const { player, button } = this;
    const next = this.other();
    const label = next < 0 ? `A/B: ${WITHOUT}` : `A/B: hear ${this.view.title(next)}`;
    if (button.title === label) return;
    this.next = next;
    button.disabled = next < 0;
    button.title = label;
    button.setAttribute("aria-label", label);
    player.prepare(next);
  }
}
