// Sound for all widgets: outputs of the page, sounds asked of the kernel, and sound on the clock of an output.
//
// A table alone plays whole files by an audio element, which needs no memory for their samples.

import { ask } from "./kernel.js";

/**
 * The page's output at a sample rate, or at that of the device. Browsers allow only a few outputs, and one at the
 * recording's own rate decodes without resampling.
 * @param {number} [sampleRate] @returns {AudioContext}
 */
export function outputAt(sampleRate) {
  const outputs = (/** @type {any} */ (window).speechlabOutputs ??= new Map());
  if (!outputs.has(sampleRate)) {
    try {
      outputs.set(sampleRate, new AudioContext({ sampleRate }));
    } catch {
      outputs.set(sampleRate, new AudioContext());
    }
  }
  return outputs.get(sampleRate);
}

/** Asks for a sound and decodes it. @param {any} model @param {Record<string, any>} message @param {BaseAudioContext} context @returns {Promise<any>} The answer with its sound as `buffer`. */
export async function askSound(model, message, context) {
  const answer = await ask(model, message);
  try {
    return { ...answer, buffer: await context.decodeAudioData(answer.data.buffer) };
  } catch (error) {
    throw new Error(`This browser cannot play the sound: ${error instanceof Error ? error.message : error}`);
  }
}

/** @typedef {{at: number, from: number, to: number, speed: number}} Span Interval of the recording and the time at which it plays. */

/** Parts of a recording on the clock of an output. */
export class Line {
  /** @type {Span[]} */ spans = [];
  /** @type {Set<AudioBufferSourceNode>} */ nodes = new Set();
  /** Time of the clock at which the last part ends. */
  until = 0;

  /** @param {AudioContext} context @param {() => void} [ended] Called at the end of each part. */
  constructor(context, ended = () => {}) {
    this.context = context;
    this.ended = ended;
  }

  get playing() {
    return this.nodes.size > 0;
  }

  /** Plays a part of a buffer. @param {AudioBuffer} buffer @param {number} at Time of the clock. @param {number} [offset] @param {number} [seconds] @param {AudioNode} [target] */
  sound(buffer, at, offset = 0, seconds = buffer.duration - offset, target = this.context.destination) {
    const node = this.context.createBufferSource();
    node.buffer = buffer;
    node.connect(target);
    node.onended = () => {
      node.disconnect();
      if (this.nodes.delete(node)) this.ended();
    };
    this.nodes.add(node);
    node.start(at, offset, seconds);
  }

  /** Notes which part of the recording plays from a time on. @param {number} at @param {number} from @param {number} to @param {number} [speed] */
  note(at, from, to, speed = 1) {
    this.spans.push({ at, from, to, speed });
    this.until = at + (to - from) / speed;
  }

  /** Plays a buffer now, as the whole recording. @param {AudioBuffer} buffer @param {number} [from] Start in seconds. */
  play(buffer, from = 0) {
    this.stop();
    void this.context.resume();
    this.sound(buffer, this.context.currentTime, from);
    this.note(this.context.currentTime, from, buffer.duration);
  }

  /** Position in the recording in seconds. */
  get position() {
    const time = this.context.currentTime;
    const { at, from, to, speed } = this.spans.filter((span) => span.at <= time).at(-1) ?? this.spans[0] ?? { at: 0, from: 0, to: 0, speed: 1 };
    return Math.min(from + Math.max(time - at, 0) * speed, to);
  }

  stop() {
    for (const node of this.nodes) {
      node.onended = null;
      node.stop();
      node.disconnect();
    }
    this.nodes.clear();
    this.spans = [];
    this.until = 0;
  }
}
