// One player for all rows. Sound is loaded on request, and that of the next row in advance.

import { waveform } from "./cells.js";
import { fillSpeeds, make, makeBox, shareAt, shortClock, soughtBy, spoken } from "../../_shared/dom.js";
import { ask, GONE, LATE, post, Unanswered } from "../../_shared/kernel.js";

const KEPT_SOUNDS = 24;
const MAKING_MS = 120_000;
const WAVE_BINS = 600;

/** A WAV file with a tenth of a second of silence. */
function silence() {
  const bytes = new Uint8Array(44 + 800).fill(128, 44);
  const view = new DataView(bytes.buffer);
  const words = /** @type {[number, string][]} */ ([[0, "RIFF"], [8, "WAVEfmt "], [36, "data"]]);
  for (const [at, word] of words) [...word].forEach((letter, index) => view.setUint8(at + index, letter.charCodeAt(0)));
  // 8-bit PCM, one channel, 8 kHz
  for (const [at, size] of [[4, 836], [16, 16], [24, 8000], [28, 8000], [40, 800]]) view.setUint32(at, size, true);
  for (const [at, value] of [[20, 1], [22, 1], [32, 1], [34, 8]]) view.setUint16(at, value, true);
  return new Blob([bytes], { type: "audio/wav" });
}

export class RowPlayer {
  /** @type {{seconds: number, error: string} | undefined} */ outline;
  audio = new Audio();
  row = -1;
  wanted = -1;
  /** The row whose sound is being synthesized, or -1. */
  coming = -1;
  /** Whether the user asked for this row in particular. */
  meant = false;
  from = 0;
  error = "";
  frame = 0;
  opened = false;
  /** @type {Map<number, {url: string, note: string}>} */ sounds = new Map();
  /** @type {Set<number>} */ asked = new Set();
  /** @type {Set<number>} */ previews = new Set();

  /** @param {import("./table.js").AudioTableView} view */
  constructor(view) {
    this.view = view;
    this.model = view.model;
    this.audio.preload = "auto";
    for (const name of ["play", "pause", "ended", "seeked", "loadedmetadata"]) {
      this.audio.addEventListener(name, () => this.tick());
    }
    this.audio.addEventListener("ended", () => {
      const next = this.view.neighbor(this.row, 1);
      if (this.onwards.checked && next >= 0) {
        this.view.goTo(next);
        this.play(next, 0, false);
      }
    });
    this.audio.addEventListener("error", () => this.refused());
    const bar = make(view.root, "div", "sl-listen", { role: "group", "aria-label": "Player" });
    this.bar = bar;
    /** @param {string} className @param {string} title @param {() => void} click */
    const button = (className, title, click) => {
      const node = make(bar, "button", `sl-tool ${className}`, { title, "aria-label": title, click });
      make(node, "span", "sl-icon", { "aria-hidden": true });
      return node;
    };
    button("sl-before", "Previous row", () => this.step(-1));
    this.toggle = button("sl-toggle", "Play", () => this.playOrPause());
    button("sl-after", "Next row", () => this.step(1));
    this.slider = make(bar, "div", "sl-seek", {
      role: "slider", "aria-label": "Position", "aria-valuemin": 0, tabindex: 0,
      pointerdown: (/** @type {PointerEvent} */ event) => this.seekTo(event),
      pointermove: (/** @type {PointerEvent} */ event) => event.buttons & 1 && this.seekTo(event),
      keydown: (/** @type {KeyboardEvent} */ event) => this.sliderKey(event),
    });
    this.time = make(bar, "span", "sl-time");
    const speed = make(bar, "select", "sl-speed", { "aria-label": "Speed" });
    fillSpeeds(speed, 1);
    speed.addEventListener("change", () => {
      this.audio.defaultPlaybackRate = this.audio.playbackRate = Number(speed.value);
    });
    this.onwards = makeBox(bar, "sl-onwards", "Play next", false, () => {});
    /** @type {HTMLElement} */ (this.onwards.parentElement).title = "Play the next row when one has ended";
    this.caption = make(view.root, "div", "sl-heard");
    this.show();
  }

  get playing() {
    return !this.audio.paused && !this.audio.ended;
  }

  get seconds() {
    return Number.isFinite(this.audio.duration) ? this.audio.duration : this.outline?.seconds || 0;
  }

  /** @param {number} step */
  step(step) {
    this.pass(this.view.neighbor(this.row, step));
  }

  /** Goes on to a row, which plays if another one does. @param {number} row */
  pass(row) {
    if (row < 0) return;
    const go = this.playing || this.wanted >= 0;
    this.view.goTo(row);
    if (go) this.play(row, 0, false);
  }

  /** Selects a row for playback. @param {number} row */
  choose(row) {
    if (row === this.row) return;
    this.row = row;
    this.wanted = -1;
    this.prepare(row);
    this.unload();
    this.askOutline();
    this.show();
  }

  /** Forgets what was shown of the last sound. */
  unload() {
    this.audio.pause();
    this.audio.removeAttribute("src");
    this.error = "";
    this.outline = undefined;
    this.slider.replaceChildren();
  }

  /** Requests the waveform of the row for the slider. */
  askOutline() {
    const { row } = this;
    ask(this.model, { type: "outlines", rows: [row], bins: WAVE_BINS, revision: this.model.get("revision") }).then(({ facts, data }) => {
      if (row !== this.row) return;
      const [[seconds, error]] = facts;
      this.outline = { seconds, error };
      this.slider.replaceChildren();
      if (data.length) this.slider.append(waveform(new Int8Array(data.buffer)));
      this.show();
    }, () => {}); // the sound itself reports why it fails
  }

  playOrPause() {
    if (this.playing) this.audio.pause();
    else if (this.coming >= 0 && this.wanted === this.coming) this.wanted = -1;
    else if (this.row >= 0) this.play(this.row, this.audio.ended ? 0 : this.audio.currentTime);
    else this.step(1);
  }

  /**
   * @param {number} row
   * @param {number} [from] Start in seconds.
   * @param {boolean} [deliberate] Whether the user asked for this row in particular. Nothing is synthesized for rows in passing.
   */
  play(row, from = 0, deliberate = true) {
    this.choose(row);
    this.wanted = row;
    this.meant = deliberate;
    this.from = from;
    this.error = "";
    const sound = this.sounds.get(row);
    if (sound) this.start(sound);
    else this.ask(row);
    this.show();
  }

  /** @param {{url: string, note: string}} sound */
  start(sound) {
    this.wanted = -1;
    if (this.audio.src !== sound.url) this.audio.src = sound.url;
    this.audio.currentTime = this.from;
    this.audio.play().catch((error) => {
      if (error.name === "NotAllowedError") this.fail("The browser wants a click on Play first");
    });
    this.prepare(this.view.neighbor(this.row, 1));
    this.view.showPlaying();
  }

  /** Opens the browser's audio output in advance, which takes up to a third of a second once. */
  open() {
    if (this.opened) return;
    this.opened = true;
    const url = URL.createObjectURL(silence());
    const audio = new Audio(url);
    audio.preload = "auto";
    const release = () => URL.revokeObjectURL(url);
    for (const name of ["canplaythrough", "error"]) audio.addEventListener(name, release, { once: true });
  }

  /** Loads the sound of a row in advance. @param {number} row */
  prepare(row) {
    if (row >= 0 && !this.sounds.has(row)) this.ask(row);
  }

  /** @param {number} row @param {boolean} [preview] */
  async ask(row, preview = false) {
    if (this.asked.has(row) && !preview) return;
    this.asked.add(row);
    const revision = this.model.get("revision");
    try {
      const { data, content_type: type, note } = await ask(this.model, { type: "sound", row, preview, revision });
      if (revision !== this.model.get("revision")) return;
      const sound = { url: URL.createObjectURL(new Blob([data], { type })), note };
      this.forget(row);
      this.sounds.set(row, sound);
      for (const old of [...this.sounds.keys()].slice(0, -KEPT_SOUNDS)) if (old !== this.row) this.forget(old);
      if (this.wanted === row) this.start(sound);
    } catch (error) {
      const { message, answer } = /** @type {any} */ (error);
      if (answer?.makeable && this.meant && this.wanted === row) this.make(row);
      else if (answer?.coming) this.coming = row;
      else if (row === (error instanceof Unanswered ? this.wanted : this.row) && this.coming !== row) this.fail(message);
    } finally {
      this.asked.delete(row);
    }
    this.show();
  }

  /** Requests the synthesis of a row's sound. @param {number} row */
  make(row) {
    this.meant = false;
    this.coming = row;
    if (!post(this.model, { type: "make", row, revision: this.model.get("revision") })) this.fail(GONE);
    else setTimeout(() => this.wanted === row && this.coming === row && this.fail(LATE), MAKING_MS);
  }

  /** Discards the sound of a row, which has changed. @param {number} row @param {boolean} played Whether it was played elsewhere. */
  renew(row, played) {
    this.forget(row);
    this.asked.delete(row);
    this.previews.delete(row);
    if (this.coming === row) this.coming = -1;
    if (row !== this.row) return;
    if (played) this.wanted = -1;
    this.unload();
    this.askOutline();
    this.ask(row);
    this.show();
  }

  /** @param {number} row */
  forget(row) {
    const sound = this.sounds.get(row);
    if (!sound) return;
    URL.revokeObjectURL(sound.url);
    this.sounds.delete(row);
  }

  /** Called when the browser cannot play a sound: requests the preview, which every browser can play. */
  refused() {
    const { row } = this;
    if (!this.sounds.has(row)) return;
    if (this.previews.has(row)) {
      this.fail("This browser cannot play the sound");
      return;
    }
    this.previews.add(row);
    this.wanted = row;
    this.forget(row);
    this.ask(row, true);
  }

  /** @param {string} error */
  fail(error) {
    this.wanted = -1;
    this.error = error;
    this.show();
    this.view.showPlaying();
  }

  /** @param {PointerEvent} event */
  seekTo(event) {
    if (event.button > 0 || this.row < 0) return;
    const share = shareAt(this.slider, event);
    if (event.type === "pointerdown" && !this.sounds.has(this.row)) this.play(this.row, share * this.seconds);
    else this.seek(share * this.seconds);
  }

  /** @param {number} seconds */
  seek(seconds) {
    if (this.row < 0) return;
    this.audio.currentTime = Math.min(Math.max(seconds, 0), this.seconds);
    this.tick();
  }

  /** @param {KeyboardEvent} event */
  sliderKey(event) {
    const to = soughtBy(event.key, this.audio.currentTime, this.seconds);
    if (event.key === " ") this.playOrPause();
    else if (to === undefined) return;
    else this.seek(to);
    event.preventDefault();
    event.stopPropagation();
  }

  tick() {
    cancelAnimationFrame(this.frame);
    this.show();
    this.view.showPlaying();
    if (this.playing) this.frame = requestAnimationFrame(() => this.tick());
  }

  /** Position of playback as a fraction of the row's sound, 0 to 1. */
  get share() {
    return this.seconds ? Math.min(this.audio.currentTime / this.seconds, 1) : 0;
  }

  show() {
    const label = this.playing ? "Pause" : "Play";
    if (this.toggle.title !== label) {
      this.toggle.title = label;
      this.toggle.setAttribute("aria-label", label);
    }
    this.toggle.classList.toggle("sl-playing", this.playing);
    this.toggle.classList.toggle("sl-waiting", this.wanted >= 0);
    this.slider.style.setProperty("--sl-share", `${100 * (1 - this.share)}%`);
    this.slider.style.setProperty("--sl-at", `${100 * this.share}%`);
    const now = this.row < 0 ? 0 : this.audio.currentTime;
    this.time.textContent = `${shortClock(now)} / ${shortClock(this.seconds)}`;
    this.slider.setAttribute("aria-valuemax", this.seconds.toFixed(2));
    this.slider.setAttribute("aria-valuenow", now.toFixed(2));
    this.slider.setAttribute("aria-valuetext", `${spoken(now)} of ${spoken(this.seconds)}`);
    const note = this.sounds.get(this.row)?.note;
    const trouble = this.error || this.outline?.error;
    const title = this.row < 0 ? "Select a row, or press Play." : this.view.title(this.row);
    const facts = this.row < 0 ? "" : [note, trouble].filter(Boolean).map((fact) => ` · ${fact}`).join("");
    this.caption.classList.toggle("sl-failed", Boolean(trouble));
    if (this.caption.textContent === title + facts) return;
    this.caption.replaceChildren();
    // In an element of its own, so that direction marks in the text do not affect what follows.
    make(this.caption, "bdi", "", title);
    make(this.caption, "span", "", facts);
  }

  dispose() {
    cancelAnimationFrame(this.frame);
    this.audio.pause();
    this.audio.removeAttribute("src");
    for (const row of [...this.sounds.keys()]) this.forget(row);
  }

  /** Forgets the old table. */
  reset() {
    this.dispose();
    this.row = this.wanted = this.coming = -1;
    this.asked.clear();
    this.previews.clear();
    this.unload();
    this.show();
  }
}
