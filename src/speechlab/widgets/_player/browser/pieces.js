// The sound of the clips, requested in pieces during playback and decoded at one sample rate.

import { Unanswered } from "../../_shared/kernel.js";
import { askSound, outputAt } from "../../_shared/sound.js";

const KEPT_PIECES = 24;

/**
 * @typedef {{name: string, seconds: number, rate: number, gain: number, facts: string}} Clip
 * @typedef {{buffer: AudioBuffer, start: number, lead: number}} Piece
 */

export class Pieces {
  /** @type {Map<string, Piece>} */ there = new Map();
  /** @type {Set<string>} */ asked = new Set();

  /** @param {any} model @param {() => void} arrived @param {(error: string) => void} failed */
  constructor(model, arrived, failed) {
    this.model = model;
    this.arrived = arrived;
    this.failed = failed;
  }

  /** @returns {Clip[]} */
  get clips() {
    return this.model.get("clips");
  }

  get seconds() {
    return this.model.get("piece_s");
  }

  get context() {
    return outputAt(Math.max(...this.clips.map((clip) => clip.rate)));
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

  /** @param {number} clip @param {number} number @param {boolean} ahead Whether the piece is requested in advance, so that a kernel without an answer is not reported. */
  async ask(clip, number, ahead) {
    const key = `${clip}:${number}`;
    if (this.asked.has(key)) return;
    this.asked.add(key);
    try {
      const { buffer, start, lead } = await askSound(this.model, { type: "sound", clip, piece: number }, this.context);
      if (!this.asked.delete(key)) return; // forgotten
      this.there.set(key, { buffer, start, lead });
    } catch (error) {
      if (this.asked.delete(key) && !(ahead && error instanceof Unanswered)) this.failed(/** @type {Error} */ (error).message);
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
