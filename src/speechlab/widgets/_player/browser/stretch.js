// Playback at another speed and the same pitch: waveform-similarity overlap-add (Verhelst and Roelands, 1993).
//
// Each step takes a window near the nominal position in the recording, at the offset that best continues the previous
// output, and cross-fades to it. Browsers offer this only for audio elements, which are neither exact to the sample nor
// in sync with each other.

const WINDOW_S = 0.04;
const SEARCH_S = 0.0125;

/** Offset in `sound` that best matches `last`, the continuation of the previous step. @param {Float32Array} last @param {Float32Array} sound @param {number} range */
function bestMatch(last, sound, range) {
  /** @param {number} at @param {number} step */
  const likeness = (at, step) => {
    let product = 0;
    let energy = 1e-9;
    for (let i = 0; i < last.length; i += step) {
      product += last[i] * sound[at + i];
      energy += sound[at + i] * sound[at + i];
    }
    return product / Math.sqrt(energy);
  };
  const search = (/** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ by, /** @type {number} */ step) => {
    let best = from;
    let most = -Infinity;
    for (let at = from; at <= to; at += by) {
      const score = likeness(at, step);
      if (score > most) [best, most] = [at, score];
    }
    return best;
  };
  const near = search(0, range, 4, 4);
  return search(Math.max(near - 3, 0), Math.min(near + 3, range), 1, 2);
}

export class Stretch {
  /**
   * @param {number} rate
   * @param {number} speed
   * @param {number} from Index of the first frame.
   * @param {(first: number, count: number) => Float32Array[]} read Returns frames of the recording by channel.
   */
  constructor(rate, speed, from, read) {
    this.hop = Math.round((rate * WINDOW_S) / 2);
    this.search = Math.round(rate * SEARCH_S);
    this.speed = speed;
    this.position = from;
    this.read = read;
    /** Frames by channel that would come next without a change of speed. @type {Float32Array[] | null} */
    this.tail = null;
    /** @type {Float32Array[]} */
    this.left = [];
  }

  /** Frames that a step may read beyond its position. */
  static reach(/** @type {number} */ rate) {
    return Math.ceil(rate * (3 * WINDOW_S + 2 * SEARCH_S));
  }

  step() {
    const { hop, search, tail } = this;
    const range = tail ? 2 * search : 0;
    const sound = this.read(Math.round(this.position) - range / 2, range + 2 * hop);
    const at = tail ? bestMatch(tail[0], sound[0], range) : 0;
    const frames = sound.map((channel, index) => {
      const out = channel.slice(at, at + hop);
      if (tail) {
        for (let i = 0; i < hop; i += 1) {
          const share = 0.5 - 0.5 * Math.cos((Math.PI * (i + 0.5)) / hop);
          out[i] = tail[index][i] * (1 - share) + out[i] * share;
        }
      }
      return out;
    });
    this.tail = sound.map((channel) => channel.slice(at + hop, at + 2 * hop));
    this.position += hop * this.speed;
    return frames;
  }

  /** The next frames by channel. @param {number} count */
  take(count) {
    const channels = this.left.length ? this.left.map((channel) => [channel]) : [];
    let length = this.left[0]?.length ?? 0;
    while (length < count) {
      this.step().forEach((piece, index) => (channels[index] ??= []).push(piece));
      length += this.hop;
    }
    const joined = channels.map((pieces) => {
      const channel = new Float32Array(length);
      let at = 0;
      for (const piece of pieces) {
        channel.set(piece, at);
        at += piece.length;
      }
      return channel;
    });
    this.left = joined.map((channel) => channel.slice(count));
    return joined.map((channel) => channel.slice(0, count));
  }
}
