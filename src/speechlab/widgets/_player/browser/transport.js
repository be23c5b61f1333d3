// Playback of all clips in sync and exact to the sample, one of them audible; loops; speeds without a change of pitch.

import { Line } from "../../_shared/sound.js";
import { Pieces } from "./pieces.js";
import { Stretch } from "./stretch.js";

const AHEAD_S = 1.5;
const TICK_MS = 200;
const CHUNK_S = 0.5;
const FIRST_S = 1; // sound loaded before playback starts, so that it does not stall at the end of a piece
const SHORTEST_LOOP_S = 0.02;

// Only one player plays at a time.
/** @type {Transport | null} */
let sounding = null;

export class Transport {
  active = false;
  speed = 1;
  /** Where a loop begins again, and where playback ends. */
  from = 0;
  until = 0;
  loop = false;
  /** The position up to which sound is on the clock. */
  cursor = 0;
  timer = 0;
  /** @type {GainNode[]} */ gains = [];
  /** @type {Stretch[]} */ stretches = [];
  /** @type {Line} */ line;

  /** @param {any} model @param {() => void} changed @param {(error: string) => void} failed */
  constructor(model, changed, failed) {
    this.model = model;
    this.changed = changed;
    this.failed = failed;
    this.position = Math.min(model.get("current_time"), model.get("duration"));
    this.pieces = new Pieces(model, () => this.pump(), (error) => {
      this.stop();
      failed(error);
    });
  }

  get playing() {
    return this.active && this.line.spans.length > 0;
  }

  get waiting() {
    return this.active && !this.line.spans.length;
  }

  now() {
    return this.playing ? this.line.position : this.position;
  }

  /**
   * Plays from `from` to `until`; a loop begins again at `restart`.
   * @param {number} from @param {number} until @param {boolean} [loop] @param {number} [restart]
   */
  async play(from, until, loop = false, restart = from) {
    this.halt();
    if (sounding && sounding !== this) sounding.stop();
    sounding = this;
    const { context } = this.pieces;
    this.line = new Line(context, () => this.pump());
    this.active = true;
    this.position = from;
    this.from = restart;
    this.until = until;
    this.loop = loop && until - restart >= SHORTEST_LOOP_S;
    this.cursor = from;
    this.speed = this.model.get("speed");
    this.stretches = [];
    this.mix(true);
    this.timer = setInterval(() => this.pump(), TICK_MS);
    const { timer } = this;
    this.pieces.ready(from, Math.min(from + FIRST_S, until));
    this.changed();
    if (context.state !== "running") {
      // After a click no browser asks for another: the output of sound may take seconds to start on a busy machine.
      const clicked = navigator.userActivation?.hasBeenActive ?? false;
      const woken = await Promise.race([
        context.resume().then(() => true),
        new Promise((resolve) => setTimeout(() => resolve(false), clicked ? 10_000 : 1_500)),
      ]);
      if (timer !== this.timer || !this.active) return;
      if (!woken) {
        this.stop();
        this.failed(clicked ? "The output of sound did not start: press Play again" : "The browser wants a click on Play first");
        return;
      }
    }
    this.pump();
  }

  /** Schedules the sound of the next moments. */
  pump() {
    const { line } = this;
    if (!this.active || line.context.state !== "running") return;
    const time = line.context.currentTime;
    while (line.spans.length > 1 && line.spans[1].at <= time) line.spans.shift();
    while (line.until < time + AHEAD_S) {
      if (this.cursor >= this.until - 1e-6) {
        if (!this.loop) break;
        this.cursor = this.from;
        this.stretches = [];
      }
      if (!this.schedule(Math.max(line.until, time + 0.003))) return;
    }
    if (this.cursor >= this.until - 1e-6 && !this.loop && time >= line.until) this.settle(this.until);
  }

  /** Schedules the next interval at a time of the context. Returns false if its sound is not loaded yet. @param {number} at */
  schedule(at) {
    const { pieces, cursor, speed, line } = this;
    const unstretched = speed === 1;
    const end = unstretched ? (Math.floor(cursor / pieces.seconds + 1e-9) + 1) * pieces.seconds : cursor + CHUNK_S * speed;
    const to = Math.min(this.until, end);
    const reach = unstretched ? 0 : Stretch.reach(line.context.sampleRate) / line.context.sampleRate;
    const first = !line.spans.length;
    const needed = Math.max(to + reach, first ? Math.min(cursor + FIRST_S, this.until) : 0);
    if (!pieces.ready(cursor - reach, needed)) return false;
    if (to < this.until) pieces.ready(to, Math.min(to + pieces.seconds, this.until), true);
    pieces.clips.forEach((clip, index) => {
      const stop = Math.min(to, clip.seconds);
      const piece = pieces.at(index, cursor);
      if (stop <= cursor || !piece) return;
      const gain = this.gains[index];
      if (unstretched) line.sound(piece.buffer, at, piece.lead + cursor - piece.start, stop - cursor, gain);
      else line.sound(this.stretched(index, stop), at, 0, (stop - cursor) / speed, gain);
    });
    line.note(at, cursor, to, speed);
    this.cursor = to;
    if (first) this.changed();
    return true;
  }

  /** @param {number} clip @param {number} to */
  stretched(clip, to) {
    const { pieces, cursor, speed } = this;
    const { context } = this.line;
    const { sampleRate } = context;
    this.stretches[clip] ??= new Stretch(sampleRate, speed, Math.round(cursor * sampleRate), (first, count) =>
      pieces.read(clip, first, count));
    const channels = this.stretches[clip].take(Math.max(Math.round(((to - cursor) / speed) * sampleRate), 1));
    const buffer = context.createBuffer(channels.length, channels[0].length, sampleRate);
    channels.forEach((channel, index) => buffer.copyToChannel(channel, index));
    return buffer;
  }

  /** Makes only the selected clip audible. @param {boolean} [now] */
  mix(now = false) {
    const { clips, context } = this.pieces;
    const equal = this.model.get("equal_level");
    clips.forEach((clip, index) => {
      const gain = (this.gains[index] ??= context.createGain());
      gain.connect(context.destination);
      const value = index !== this.model.get("active_clip") ? 0 : equal ? clip.gain : 1;
      if (now) gain.gain.value = value;
      else gain.gain.setTargetAtTime(value, context.currentTime, 0.004);
    });
  }

  stop() {
    if (this.active) this.settle(this.now());
  }

  /** @param {number} position */
  settle(position) {
    this.halt();
    this.position = position;
    this.changed();
  }

  halt() {
    clearInterval(this.timer);
    this.timer = 0;
    this.active = false;
    this.line?.stop();
    if (sounding === this) sounding = null;
  }

  dispose() {
    this.stop();
    for (const gain of this.gains) gain.disconnect();
    this.gains = [];
    this.pieces.forget();
  }
}
