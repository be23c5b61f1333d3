// The sound of the clips, requested in pieces during playback and decoded at one sample rate.

import { PATIENCE_MS, tell } from "../../_shared/kernel.js";

const KEPT_PIECES = 24;

// One audio context for each sample rate, shared by all players on the page. Browsers allow only a few contexts, and a
// context at the recording's own rate decodes without resampling.
/** @type {Map<number, AudioContext>} */
const contexts = new Map();

/** @param {number} rate */
function contextAt(rate) {
  let context = contexts.get(rate);
  if (!context) {
    try {
      context = new AudioContext({ sampleRate: rate });
    } catch {
      context = new AudioContext();
    }
    contexts.set(rate, context);
  }
  return context;
}

/**
 * @typedef {{name: string, seconds: number, rate: number, gain: number, facts: string}} Clip
 * @typedef {{buffer: AudioBuffer, start: number, lead: number}} Piece
 */

export class Pieces {
  /** @param {any} model @param {() => void} arrived @param {(error: string) => void} failed */
  constructor(model, arrived, failed) {
    this.model = model;
    this.arrived = arrived;
    this.failed = failed;
    /** @type {Map<string, Piece>} */
    this.there = new Map();
    /** @type {Map<string, number>} */
    this.asked = new Map();
  }

  /** @returns {Clip[]} */
  get clips() {
    return this.model.get("clips");
  }

  get seconds() {
    return this.model.get("piece_s");
  }

  get context() {
    return contextAt(Math.max(...this.clips.map((clip) => clip.rate)));
  }

  /** Whether an interval of all clips is loaded. Requests missing pieces. @param {number} from @param {number} to @param {boolean} [ahead] */
  ready(from, to, ahead = false) {
    let ready = true;
    this.clips.forEach((clip, index) => {
      const end = Math.min(to, clip.seconds);
      const first = Math.floor(Math.max(from, 0) / this.seconds);
      for (let number = first; number * this.seconds < end; number += 1) {
        const key = `${index}:${number}`;
        const piece = this.there.get(key);
        if (piece) {
          this.there.delete(key);
          this.there.set(key, piece);
        } else {
          ready = false;
          this.ask(index, number, ahead);
        }
      }
    });
    return ready;
  }

  /** @param {number} clip @param {number} piece @param {boolean} ahead Whether the piece is requested in advance, so that a failure is not reported. */
  ask(clip, piece, ahead) {
    const key = `${clip}:${piece}`;
    const now = performance.now();
    if (now - (this.asked.get(key) ?? -Infinity) < PATIENCE_MS) return;
    this.asked.set(key, now);
    if (!tell(this.model, { type: "sound", clip, piece })) {
      this.asked.delete(key);
      if (!ahead) this.failed("No answer: the kernel is gone");
      return;
    }
    setTimeout(() => {
      if (this.asked.get(key) !== now) return;
      this.asked.delete(key);
      if (!ahead) this.failed("No answer: the kernel is busy, or gone");
    }, PATIENCE_MS);
  }

  /** @param {any} message @param {DataView[]} buffers */
  async take(message, buffers) {
    const key = `${message.clip}:${message.piece}`;
    this.asked.delete(key);
    if (message.error) {
      this.failed(message.error);
      return;
    }
    const view = buffers[0];
    const bytes = /** @type {ArrayBuffer} */ (view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
    try {
      const buffer = await this.context.decodeAudioData(bytes);
      this.there.set(key, { buffer, start: message.start, lead: message.lead });
    } catch (error) {
      this.failed(`This browser cannot play the sound: ${error instanceof Error ? error.message : error}`);
      return;
    }
    const most = KEPT_PIECES * this.clips.length;
    for (const old of [...this.there.keys()].slice(0, -most)) this.there.delete(old);
    this.arrived();
  }

  /** @param {number} clip @param {number} seconds */
  at(clip, seconds) {
    return this.there.get(`${clip}:${Math.floor(seconds / this.seconds)}`);
  }

  /** Frames of a clip by channel, with zeros where nothing is loaded. @param {number} clip @param {number} first @param {number} count */
  read(clip, first, count) {
    const { sampleRate } = this.context;
    const channels = this.at(clip, Math.max(first, 0) / sampleRate)?.buffer.numberOfChannels ?? 1;
    const out = Array.from({ length: channels }, () => new Float32Array(count));
    const from = Math.floor(Math.max(first, 0) / sampleRate / this.seconds);
    for (let number = from; number * this.seconds * sampleRate < first + count; number += 1) {
      const piece = this.there.get(`${clip}:${number}`);
      if (!piece) continue;
      const begin = Math.round(piece.start * sampleRate);
      const lead = Math.round(piece.lead * sampleRate);
      const low = Math.max(first, begin);
      const end = Math.round((number + 1) * this.seconds * sampleRate);
      const high = Math.min(first + count, end, begin + piece.buffer.length - lead);
      if (high <= low) continue;
      out.forEach((channel, index) => {
        const sound = piece.buffer.getChannelData(Math.min(index, piece.buffer.numberOfChannels - 1));
        channel.set(sound.subarray(low - begin + lead, high - begin + lead), low - first);
      });
    }
    return out;
  }

  forget() {
    this.there.clear();
    this.asked.clear();
  }
}
