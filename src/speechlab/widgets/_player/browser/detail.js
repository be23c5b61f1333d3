// Outlines and spectrograms of the clips: a coarse outline of each whole clip, and finer data for the view on request.

import { PATIENCE_MS, tell } from "../../_shared/kernel.js";

const SETTLED_MS = 80;
const MOST_COLUMNS = 2_000;

/**
 * @typedef {{start: number, end: number, values: Int8Array}} Outline
 * @typedef {{start: number, end: number, image: ImageBitmap | null, top: number, error: string}} Picture
 */

export class Detail {
  /** @param {any} model @param {() => void} changed */
  constructor(model, changed) {
    this.model = model;
    this.changed = changed;
    this.timer = 0;
    this.patience = 0;
    this.asked = "";
    /** @type {Outline[]} */
    this.fine = [];
    /** @type {Picture | null} */
    this.picture = null;
    this.whole = this.outlines();
  }

  /** The outlines that come with the player. @returns {Outline[]} */
  outlines() {
    const view = this.model.get("peaks");
    const all = new Int8Array(view.buffer, view.byteOffset, view.byteLength);
    const clips = this.model.get("clips");
    const each = clips.length ? all.length / clips.length : 0;
    return clips.map((clip, index) => ({ start: 0, end: clip.seconds, values: all.subarray(index * each, (index + 1) * each) }));
  }

  /** The finest outline of a clip that covers the interval. @param {number} clip @param {number} start @param {number} end */
  outline(clip, start, end) {
    const fine = this.fine[clip];
    const whole = this.whole[clip];
    return fine && fine.start <= Math.max(start, 0) + 1e-6 && fine.end >= Math.min(end, whole.end) - 1e-6 ? fine : whole;
  }

  /** Requests data for the view once it has stopped moving. @param {number} width Device pixels. */
  look(width) {
    const [start, end] = this.model.get("view");
    const clip = this.model.get("heard");
    const spectrogram = this.model.get("spectrogram");
    const wanted = [start, end, clip, spectrogram, width].join();
    if (wanted === this.asked || !width) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.asked = wanted;
      const count = Math.min(Math.ceil(width), MOST_COLUMNS);
      this.whole.forEach((whole, index) => {
        const stop = Math.min(end, whole.end);
        const enough = ((stop - start) / whole.end) * (whole.values.length / 2) >= count;
        if (start < stop && !enough) tell(this.model, { type: "peaks", clip: index, start, end: stop, count });
      });
      const stop = Math.min(end, this.whole[clip].end);
      if (spectrogram && start < stop) this.askPicture({ clip, start, end: stop, count });
    }, SETTLED_MS);
  }

  /** @param {{clip: number, start: number, end: number, count: number}} wanted */
  askPicture(wanted) {
    const fail = () => this.picture?.image || this.showPicture({ ...wanted, image: null, top: 0, error: "No answer: the kernel is busy, or gone" });
    clearTimeout(this.patience);
    this.patience = setTimeout(fail, PATIENCE_MS);
    if (!tell(this.model, { type: "spectrogram", ...wanted })) fail();
  }

  /** @param {Picture} picture */
  showPicture(picture) {
    this.picture?.image?.close();
    this.picture = picture;
    this.changed();
  }

  /** @param {any} message @param {DataView[]} buffers */
  async take(message, buffers) {
    const { start, end, error = "" } = message;
    const view = buffers[0];
    if (message.type === "peaks") {
      if (error) return;
      const values = new Int8Array(view.buffer, view.byteOffset, view.byteLength);
      this.fine[message.clip] = { start, end, values };
    } else {
      if (message.clip !== this.model.get("heard")) return;
      const bytes = new Uint8Array(/** @type {ArrayBuffer} */ (view.buffer), view.byteOffset, view.byteLength);
      clearTimeout(this.patience);
      const image = error ? null : await createImageBitmap(new Blob([bytes], { type: "image/png" }));
      this.showPicture({ start, end, image, top: message.top, error });
      return;
    }
    this.changed();
  }

  forgetPicture() {
    this.picture?.image?.close();
    this.picture = null;
  }

  reset() {
    clearTimeout(this.timer);
    clearTimeout(this.patience);
    this.asked = "";
    this.fine = [];
    this.forgetPicture();
    this.whole = this.outlines();
  }
}
