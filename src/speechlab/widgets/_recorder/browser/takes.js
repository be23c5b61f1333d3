// The takes that Python has, each with its outline, its facts, and buttons to play and to delete it.

import { make } from "../../_shared/dom.js";
import { GONE, post } from "../../_shared/kernel.js";
import { focusIn } from "../../_shared/keys.js";
import { askSound, Line, outputAt } from "../../_shared/sound.js";
import { drawOutline } from "./meter.js";

/** @typedef {{take: string, name: string, seconds: number, rate: number, device: string, clipped: number, level_dbfs: number | null, peak_dbfs: number | null}} Take */

/** @param {Take} take */
function factsOf(take) {
  const facts = [`${take.seconds.toFixed(2)} s`, `${take.rate} Hz`];
  facts.push(take.peak_dbfs === null ? "silent" : `peak ${Math.round(take.peak_dbfs) || 0} dBFS`);
  if (take.device) facts.push(take.device);
  return facts.join(" · ");
}

export class Takes {
  /** @type {Line | null} */ line = null;

  /** @param {any} model @param {HTMLElement} list @param {(said: string, failed?: boolean) => void} say */
  constructor(model, list, say) {
    this.model = model;
    this.list = list;
    this.say = say;
    /** The take that plays, or whose sound is awaited. */
    this.playing = "";
    this.fill();
  }

  /** @returns {Take[]} */
  get all() {
    return this.model.get("takes");
  }

  fill() {
    const { list } = this;
    const had = focusIn(list);
    const place = [had?.closest("li")?.dataset.take, had?.previousElementSibling ? "last" : "first"];
    list.replaceChildren();
    list.hidden = !this.all.length;
    for (const take of this.all) {
      const item = make(list, "li", "sl-take");
      item.dataset.take = take.take;
      make(item, "button", "sl-small sl-play", "Play", { "aria-label": `Play ${take.name}`, click: () => this.playOrStop(take.take) });
      make(item, "canvas", "sl-outline", { "aria-hidden": true });
      const words = make(item, "div", "sl-words");
      make(words, "bdi", "sl-name", take.name);
      make(words, "span", "sl-facts", factsOf(take));
      if (take.clipped) make(words, "span", "sl-warning", `Clipped: ${take.clipped} samples at full scale. Lower the input's level, or go further away`);
      if (take.peak_dbfs === null) make(words, "span", "sl-warning", "Silent: the microphone may be muted");
      make(item, "button", "sl-small", "Delete", { "aria-label": `Delete ${take.name}`, click: () => this.drop(take.take) });
    }
    this.draw();
    if (this.all.some((take) => take.take === this.playing)) this.states();
    else this.stop();
    if (!had) return;
    // Keep the focus in the widget, since the notebook would receive the keys.
    const item = [...list.children].find((entry) => entry instanceof HTMLElement && entry.dataset.take === place[0]) ?? list.lastElementChild;
    const button = place[1] === "last" ? item?.lastElementChild : item?.firstElementChild;
    const empty = list.parentElement?.querySelector(".sl-record"); // takes the focus when the list is empty
    /** @type {HTMLElement} */ (button ?? empty).focus({ preventScroll: true });
  }

  draw() {
    this.list.querySelectorAll("canvas").forEach((canvas, number) => {
      /** @type {[number, number][]} */
      const outline = this.model.get("_outlines")[this.all[number].take] ?? [];
      drawOutline(canvas, outline.map(([low, high]) => [low / 100, high / 100]));
    });
  }

  states() {
    for (const item of this.list.querySelectorAll("li")) {
      const on = item.dataset.take === this.playing;
      const play = item.querySelector("button");
      item.classList.toggle("sl-on", on);
      if (!play) continue;
      play.textContent = on ? "Stop" : "Play";
      play.setAttribute("aria-label", `${play.textContent} ${item.querySelector("bdi")?.textContent}`);
    }
  }

  /** @param {string} take */
  async playOrStop(take) {
    const on = this.playing === take;
    this.stop();
    if (on) return;
    const line = (this.line ??= new Line(outputAt(), () => this.stop()));
    void line.context.resume(); // browsers want this within the click
    this.playing = take;
    this.states();
    try {
      const { buffer, note } = await askSound(this.model, { type: "sound", take }, line.context);
      if (this.playing !== take || line.playing) return;
      line.play(buffer);
      if (note) this.say(note);
    } catch (error) {
      if (this.playing !== take || line.playing) return;
      this.stop();
      this.say(/** @type {Error} */ (error).message, true);
    }
  }

  /** Plays or stops the last take. */
  playLast() {
    const last = this.all.at(-1);
    if (last) this.playOrStop(last.take);
  }

  /** @param {string} take */
  drop(take) {
    if (this.playing === take) this.stop();
    if (post(this.model, { type: "drop", take })) this.say("Deleted");
    else this.say(GONE, true);
  }

  stop() {
    this.line?.stop();
    this.playing = "";
    this.states();
  }
}
