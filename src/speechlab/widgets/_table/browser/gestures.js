// Pointer and keys in the rows, and the list of keys below the table.

import { makeKeys, shareAt } from "../../_shared/dom.js";

const REST_MS = 80;
/** Keys that control playback. */
const SOUND_KEYS = /^( |Enter|p|a|b|ArrowLeft|ArrowRight|Escape)$/;
const KEYS = [
  ["↑ ↓ or k j", "previous and next row"], ["Space", "play and pause"], ["a", "restart"],
  ["b", "A/B: the marked rows in turn, or the previous one"],
  ["← →", "seek by a second"], ["m", "mark"], ["1–9, 0", "rate, unrate"], ["n", "write a note"], ["u", "undo"], ["/", "search"],
  ["Home End", "first and last row"],
];
const DECISIONS = [["y", "accept the suggestion"], ["x", "dismiss it: the text is right"], ["n", "write the right text"]];

/** The keys that decide on a row, and what they say. @param {Pick<import("./table.js").AudioTableView, "data" | "model">} view */
function decisions({ data, model }) {
  const answers = model.get("answers") ?? [];
  if (answers.length) return [["y", answers[0]], ["x", answers[1]]];
  return data.column("suggestion") ? DECISIONS : [];
}

export class Gestures {
  /** @param {import("./table.js").AudioTableView} view */
  constructor(view) {
    this.view = view;
    this.restTimer = 0;
    view.grid.dataset.slKeys = "";
    view.root.addEventListener("keydown", (event) => this.key(event));
    view.grid.addEventListener("click", (event) => this.click(event));
    view.grid.addEventListener("pointerover", (event) => this.comeNear(event, REST_MS));
    view.grid.addEventListener("pointerdown", (event) => this.comeNear(event, 0));
  }

  /** Loads a sound once the pointer rests on it, but not if it only passes. @param {PointerEvent} event @param {number} pause */
  comeNear(event, pause) {
    clearTimeout(this.restTimer);
    const node = /** @type {Element} */ (event.target).closest(".sl-sound")?.parentElement;
    if (!node?.dataset.row || !this.view.sound) return;
    const row = Number(node.dataset.row);
    this.restTimer = window.setTimeout(() => this.view.player.prepare(row), pause);
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
    this.view.goTo(row);
    if (button?.classList.contains("sl-play")) {
      if (this.view.player.playing) this.view.player.audio.pause();
      else this.view.player.playOrPause();
    } else if (button?.classList.contains("sl-star")) this.view.note(row, "mark", !this.view.data.noted.mark[row]);
    else if (button?.classList.contains("sl-tag")) {
      const cell = /** @type {HTMLElement} */ (button.closest(".sl-cell"));
      this.view.narrowing.toggle(cell.dataset.label ?? "", button.dataset.value ?? "");
    } else if (button?.classList.contains("sl-rate")) this.view.rate(row, Number(button.textContent));
    else if (thumb) this.view.player.play(row, shareAt(thumb, event) * this.view.player.seconds);
    if (!input && !String(getSelection())) this.view.grid.focus({ preventScroll: true });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.isComposing || target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement) return;
    const box = target instanceof HTMLInputElement && target.type === "checkbox";
    if (target instanceof HTMLInputElement && !box) {
      if (event.key !== "Escape" && event.key !== "Enter") return;
      event.preventDefault();
      target.blur();
      this.view.grid.focus({ preventScroll: true });
      return;
    }
    // These press what has the focus.
    if ((box || target.closest("button, summary")) && (event.key === " " || event.key === "Enter")) return;
    const act = this.action(event.key);
    if (!act) return;
    event.preventDefault();
    act();
  }

  /** The action of a key, or undefined. @param {string} key @returns {(() => void) | undefined} */
  action(key) {
    const row = this.view.rowAt(this.view.active);
    const last = this.view.data.order.length - 1;
    const page = Math.max(Math.floor(this.view.grid.clientHeight / this.view.rows.height) - 1, 1);
    const { player } = this.view;
    const step = (/** @type {number} */ by) => () =>
      player.pass(this.view.rowAt(Math.min(Math.max(this.view.active + by, 0), last)));
    if (!this.view.sound && SOUND_KEYS.test(key)) return undefined;
    if (/^\d$/.test(key)) return () => this.view.rate(row, Number(key));
    return {
      ArrowDown: step(1), j: step(1), ArrowUp: step(-1), k: step(-1), PageDown: step(page), PageUp: step(-page),
      Home: step(-Infinity), End: step(Infinity),
      " ": () => player.playOrPause(), Enter: () => player.playOrPause(), p: () => player.playOrPause(),
      a: () => row >= 0 && player.play(row, 0),
      b: () => this.view.turns.go(),
      ArrowLeft: () => player.seek(player.audio.currentTime - 1),
      ArrowRight: () => player.seek(player.audio.currentTime + 1),
      m: () => this.view.note(row, "mark", !this.view.data.noted.mark[row]),
      n: () => this.view.rows.there.get(this.view.active)?.querySelector("input")?.focus(),
      u: () => this.view.undo(),
      ...(decisions(this.view).length && { y: () => this.view.decide(row, true), x: () => this.view.decide(row, false) }),
      "/": () => this.view.narrowing.search.focus(),
      Escape: () => player.audio.pause(),
    }[key];
  }
}

/** Lists the keys that do something in a table. @param {import("./table.js").AudioTableView} view */
export function addHelp({ root, editable, sound, data, model }) {
  const own = editable ? decisions({ data, model }) : [];
  const keys = [...own, ...KEYS.filter(([key]) => !own.some(([other]) => other === key))];
  const idle = [!editable && /^[mnu1]/, !sound && /^(Space|a$|b|←)/, !model.get("max_rating") && /^1/];
  makeKeys(root, keys.filter(([key]) => !idle.some((pattern) => pattern && pattern.test(key))));
}
