// The sounds of a question: requested, decoded and played one at a time. Counts plays and the seconds heard.

import { askSound, Unanswered } from "../../_shared/kernel.js";

const ENOUGH_S = 1;

export class Hearing {
  /**
   * @param {any} model
   * @param {() => void} changed
   */
  constructor(model, changed) {
    this.model = model;
    this.changed = changed;
    /** @type {AudioContext | undefined} */
    this.context = undefined;
    /** @type {Map<string, AudioBuffer>} */
    this.buffers = new Map();
    /** @type {Map<string, string>} */
    this.errors = new Map();
    /** @type {Set<string>} */
    this.asked = new Set();
    /** @type {Record<string, number>} */
    this.plays = {};
    /** @type {Map<string, number>} */
    this.seconds = new Map();
    /** @type {Set<string>} */
    this.ended = new Set();
    this.token = "";
    this.wanted = "";
    /** Start of the awaited sound in seconds. */
    this.from = 0;
    /** @type {AudioBufferSourceNode | undefined} */
    this.source = undefined;
    this.begun = 0;
    this.offset = 0;
  }

  get playing() {
    return this.source !== undefined;
  }

  /** Position in the sound that plays in seconds; 0 if none plays. */
  get position() {
    return this.context && this.source ? this.offset + this.context.currentTime - this.begun : 0;
  }

  /** @param {string} token */
  duration(token) {
    return this.buffers.get(token)?.duration ?? 0;
  }

  /** Whether a sound was heard: to its end, or for a second if the listener may switch between sounds. @param {string} token @param {boolean} whole */
  heard(token, whole) {
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
    for (const one of [...this.buffers.keys()]) if (!tokens.includes(one)) this.buffers.delete(one);
    for (const one of tokens) this.ask(one);
  }

  /** Requests and decodes a sound. @param {string} token */
  async ask(token) {
    if (this.buffers.has(token) || this.asked.has(token)) return;
    this.errors.delete(token);
    this.asked.add(token);
    try {
      this.context ??= new AudioContext();
      this.buffers.set(token, (await askSound(this.model, { type: "sound", token }, this.context)).buffer);
    } catch (error) {
      const words = "The kernel does not answer, so there is no sound. Run the cell again.";
      this.errors.set(token, error instanceof Unanswered ? words : /** @type {Error} */ (error).message);
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
    if (!buffer || !this.context) {
      this.wanted = token;
      this.from = from;
      this.ask(token);
      this.changed();
      return;
    }
    this.wanted = "";
    void this.context.resume();
    const source = this.context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.context.destination);
    source.onended = () => {
      if (this.source !== source) return;
      this.ended.add(token);
      this.source = undefined;
      this.changed();
    };
    this.offset = from < buffer.duration - 0.05 ? from : 0;
    this.begun = this.context.currentTime;
    this.source = source;
    this.plays[token] = (this.plays[token] ?? 0) + 1;
    source.start(0, this.offset);
    this.changed();
  }

  stop() {
    this.wanted = "";
    if (!this.source) return;
    const { source } = this;
    this.listened();
    this.source = undefined;
    source.stop();
    this.changed();
  }

  /** Records how long the current sound has played. */
  listened() {
    const own = this.position - this.offset;
    this.seconds.set(this.token, Math.max(this.seconds.get(this.token) ?? 0, own));
  }

  dispose() {
    this.stop();
    void this.context?.close();
  }
}
