// Transfer of a take to the kernel: chunks of PCM, a few in flight, each sent again until the kernel has it.

import { ask, GONE } from "../../_shared/kernel.js";

const CHUNK_S = 0.5;
const AT_ONCE = 8;
const AGAIN_MS = 3_000;

export class Sending {
  take = Math.random().toString(36).slice(2) + Date.now().toString(36);
  filled = 0;
  frames = 0;
  count = 0;
  /** Chunks that the kernel does not have yet, by number. @type {Map<number, Int16Array>} */ open = new Map();
  /** Numbers of what is under way; -1 is the end of the take. @type {Set<number>} */ sent = new Set();
  ended = false;
  device = "";
  /** Whether the view is gone, and whether nothing is left to send. */
  left = false;
  over = false;

  /** @param {any} model @param {number} rate @param {(late: string) => void} changed Called with a warning, or with an empty text once it is resolved. */
  constructor(model, rate, changed) {
    this.model = model;
    this.rate = rate;
    this.changed = changed;
    this.chunk = new Int16Array(Math.round(rate * CHUNK_S));
  }

  /** @param {Float32Array} block */
  add(block) {
    for (const sample of block) {
      this.chunk[this.filled] = Math.max(Math.min(Math.round(sample * 32768), 32767), -32768);
      this.filled += 1;
      if (this.filled === this.chunk.length) this.close();
    }
    this.frames += block.length;
  }

  close() {
    if (!this.filled) return;
    this.open.set(this.count, this.chunk.slice(0, this.filled));
    this.count += 1;
    this.filled = 0;
    this.pump();
  }

  /** @param {string} device */
  end(device) {
    this.device = device;
    this.close();
    this.ended = true;
    this.pump();
  }

  /** Sends the next chunks, and after the last one the end of the take. */
  pump() {
    for (const [number, chunk] of [...this.open].slice(0, AT_ONCE)) this.send(number, { type: "chunk", number }, [chunk.buffer]);
    if (this.ended && !this.open.size) this.send(-1, { type: "end", count: this.count, device: this.device });
  }

  /** Sends a message until the kernel answers. @param {number} number @param {Record<string, any>} message @param {ArrayBufferLike[]} [buffers] */
  async send(number, message, buffers) {
    if (this.sent.has(number)) return;
    this.sent.add(number);
    for (let tries = 1; !this.over; tries += 1) {
      try {
        const { missing } = await ask(this.model, { ...message, take: this.take, rate: this.rate }, buffers, AGAIN_MS);
        this.open.delete(number);
        this.sent.delete(number);
        this.over ||= number < 0;
        this.changed(missing ? "A part of the take did not arrive in Python; record again" : "");
        if (!this.over) this.pump();
        return;
      } catch (error) {
        const gone = /** @type {Error} */ (error).message === GONE;
        if (gone && this.left) this.over = true;
        else if (gone) this.changed(`${GONE}. The take is kept here as long as this page is open`);
        else if (tries > 1) this.changed("The kernel is busy, or gone. The take is kept here until it answers");
        if (gone) await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      }
    }
  }

  /** The view is gone. The remaining chunks are still sent. */
  leave() {
    this.left = true;
    this.changed = () => {};
  }

  /** Nothing is sent any more. */
  dispose() {
    this.over = true;
  }
}
