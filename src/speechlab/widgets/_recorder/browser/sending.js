// Transfer of a take to the kernel: chunks of PCM, a few in flight, each sent again until it is acknowledged.

import { GONE, tell } from "../../_shared/kernel.js";

const CHUNK_S = 0.5;
const AT_ONCE = 8;
const AGAIN_MS = 3_000;

export class Sending {
  /** @param {any} model @param {number} rate @param {(late: string) => void} changed Called with a warning, or with an empty text once it is resolved. */
  constructor(model, rate, changed) {
    this.model = model;
    this.rate = rate;
    this.changed = changed;
    this.take = Math.random().toString(36).slice(2) + Date.now().toString(36);
    this.size = Math.round(rate * CHUNK_S);
    this.chunk = new Int16Array(this.size);
    this.filled = 0;
    this.frames = 0;
    this.count = 0;
    /** Chunks that are not acknowledged yet, by number. @type {Map<number, Int16Array>} */
    this.open = new Map();
    /** Time of the last sending of each of these chunks in milliseconds; -1 is the end of the take. @type {Map<number, number>} */
    this.sent = new Map();
    this.ended = false;
    this.device = "";
    this.heardAt = performance.now();
    this.left = false;
    this.timer = setInterval(() => this.pump(), AGAIN_MS / 6);
    /** @param {any} message */
    this.answered = (message) => this.answer(message);
    model.on("msg:custom", this.answered);
  }

  /** @param {Float32Array} block */
  add(block) {
    for (const sample of block) {
      this.chunk[this.filled] = Math.max(Math.min(Math.round(sample * 32768), 32767), -32768);
      this.filled += 1;
      if (this.filled === this.size) this.close();
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
    this.heardAt = performance.now();
    this.pump();
  }

  /** Sends the next chunks, and resends chunks without an answer. */
  pump() {
    const now = performance.now();
    let reached = true;
    for (const [number, chunk] of [...this.open].slice(0, AT_ONCE)) {
      if (now - (this.sent.get(number) ?? -Infinity) < AGAIN_MS) continue;
      this.sent.set(number, now);
      reached &&= tell(this.model, { type: "chunk", take: this.take, number, rate: this.rate }, [chunk.buffer]);
    }
    if (this.ended && !this.open.size && now - (this.sent.get(-1) ?? -Infinity) >= AGAIN_MS) {
      this.sent.set(-1, now);
      const { take, count, rate, device } = this;
      reached &&= tell(this.model, { type: "end", take, count, rate, device });
    }
    if (!reached && this.left) this.dispose();
    else if (!reached) this.changed(`${GONE}. The take is kept here as long as this page is open`);
    else if ((this.open.size || this.ended) && now - this.heardAt > 2 * AGAIN_MS) {
      this.changed("The kernel is busy, or gone. The take is kept here until it answers");
    }
  }

  /** @param {any} message */
  answer(message) {
    if (message.take !== this.take) return;
    this.heardAt = performance.now();
    if (message.type === "got") {
      this.open.delete(message.number);
      this.sent.delete(message.number);
      this.changed("");
      this.pump();
    } else if (message.type === "taken") {
      this.dispose();
      this.changed("");
    } else if (message.type === "missing") {
      this.dispose();
      this.changed("A part of the take did not arrive in Python; record again");
    }
  }

  /** The view is gone. The remaining chunks are still sent. */
  leave() {
    this.left = true;
    this.changed = () => {};
  }

  dispose() {
    clearInterval(this.timer);
    this.model.off("msg:custom", this.answered);
    this.open.clear();
  }
}
