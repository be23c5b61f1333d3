// The sounds of a question: requested and played one at a time. Counts plays and the seconds played.

import { Unanswered } from "../../_shared/kernel.js";
import { askSound, Line, outputAt } from "../../_shared/sound.js";

const ENOUGH_S = 1;

export class Hearing {
  /** @type {Map<string, AudioBuffer>} */ buffers = new Map();
  /** @type {Map<string, string>} */ errors = new Map();
  /** @type {Set<string>} */ asked = new Set();
  /** @type {Record<string, number>} */ plays = {};
  /** @type {Map<string, number>} */ seconds = new Map();
  /** @type {Set<string>} */ ended = new Set();
  /** The sound that plays, the one that is awaited, and where the latter starts in seconds. */
  token = "";
  wanted = "";
  from = 0;

  /** @param {any} model @param {string} silent What is said if the kernel does not answer. @param {() => void} changed */
  constructor(model, silent, changed) {
    this.model = model;
    this.silent = silent;
    this.changed = changed;
    this.line = new Line(outputAt(), () => {
      this.ended.add(this.token);
      this.line.stop();
      this.changed();
    });
  }

  get playing() {
    return this.line.playing;
  }

  /** @param {string} token */
  duration(token) {
    return this.buffers.get(token)?.duration ?? 0;
  }

  /** Whether a sound was played: to its end, or for a second if the listener may switch between sounds. @param {string} token @param {boolean} whole */
  isPlayed(token, whole) {
    if (this.ended.has(token) || this.errors.has(token)) return true;
    return !whole && (this.seconds.get(token) ?? 0) >= Math.min(ENOUGH_S, this.duration(token) - 0.01);
  }

  /** Forgets the last question and requests the sounds of this one. @param {string[]} tokens */
  open(tokens) {
    this.stop();
    this.plays = {};
    this.seconds.clear();
    this.ended.clear();
    this.token = "";
    for (const token of [...this.buffers.keys()]) if (!tokens.includes(token)) this.buffers.delete(token);
    for (const token of tokens) this.ask(token);
  }

  /** @param {string} token */
  async ask(token) {
    if (this.buffers.has(token) || this.asked.has(token)) return;
    this.errors.delete(token);
    this.asked.add(token);
    try {
      this.buffers.set(token, (await askSound(this.model, { type: "sound", token }, this.line.context)).buffer);
    } catch (error) {
      this.errors.set(token, error instanceof Unanswered ? this.silent : /** @type {Error} */ (error).message);
    }
    this.asked.delete(token);
    if (this.wanted === token && this.buffers.has(token)) this.play(token, this.from);
    this.changed();
  }

  /** @param {string} token @param {number} [from] Start in seconds. */
  play(token, from = 0) {
    this.stop();
    const buffer = this.buffers.get(token);
    this.token = token;
    if (buffer) {
      this.line.play(buffer, from < buffer.duration - 0.05 ? from : 0);
      this.plays[token] = (this.plays[token] ?? 0) + 1;
    } else {
      [this.wanted, this.from] = [token, from];
      this.ask(token);
    }
    this.changed();
  }

  stop() {
    this.wanted = "";
    if (!this.playing) return;
    this.listened();
    this.line.stop();
    this.changed();
  }

  /** Records how long the current sound has played. */
  listened() {
    const seconds = this.line.position - this.line.spans[0].from;
    this.seconds.set(this.token, Math.max(this.seconds.get(this.token) ?? 0, seconds));
  }
}
