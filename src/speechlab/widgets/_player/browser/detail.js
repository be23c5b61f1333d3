// Outlines and spectrograms of the clips: a coarse outline of each whole clip, and finer data for the view on request.

import { ask, Unanswered } from "../../_shared/kernel.js";

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
    const coarse = this.whole[clip];
    return fine && fine.start <= Math.max(start, 0) + 1e-6 && fine.end >= Math.min(end, coarse.end) - 1e-6 ? fine : coarse;
  }

  /** Requests data for the view once it has stopped moving. @param {number} width Device pixels. */
  look(width) {
    const [start, end] = this.model.get("view");
    const clip = this.model.get("active_clip");
    const spectrogram = this.model.get("spectrogram");
    const request = [start, end, clip, spectrogram, width].join();
    if (request === this.asked || !width) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.asked = request;
      const count = Math.min(Math.ceil(width), MOST_COLUMNS);
      this.whole.forEach((outline, index) => {
        const stop = Math.min(end, outline.end);
        const enough = ((stop - start) / outline.end) * (outline.values.length / 2) >= count;
        if (start < stop && !enough) void this.askOutline({ clip: index, start, end: stop, count });
      });
      const stop = Math.min(end, this.whole[clip].end);
      if (spectrogram && start < stop) void this.askPicture({ clip, start, end: stop, count });
    }, SETTLED_MS);
  }

  /** @param {{clip: number, start: number, end: number, count: number}} request */
  async askOutline(request) {
    const answer = await ask(this.model, { type: "peaks", ...request }).catch(() => null); // the coarse one stays
    if (!answer) return;
    this.fine[request.clip] = { start: request.start, end: request.end, values: new Int8Array(answer.data.buffer) };
    this.changed();
  }

  /** @param {{clip: number, start: number, end: number, count: number}} request */
  async askPicture(request) {
    const { start, end } = request;
    const picture = { start, end, image: null, top: 0, error: "" };
    try {
      const { data, top } = await ask(this.model, { type: "spectrogram", ...request });
      const image = await createImageBitmap(new Blob([data], { type: "image/png" }));
      if (request.clip === this.model.get("active_clip")) this.showPicture({ ...picture, image, top });
    } catch (error) {
      const late = error instanceof Unanswered && this.picture?.image;
      if (!late && request.clip === this.model.get("active_clip")) this.showPicture({ ...picture, error: /** @type {Error} */ (error).message });
    }
  }

  /** @param {Picture} picture */
  showPicture(picture) {
    this.picture?.image?.close();
    this.picture = picture;
    this.changed();
  }

  forgetPicture() {
    this.picture?.image?.close();
    this.picture = null;
  }

  reset() {
    clearTimeout(this.timer);
    this.asked = "";
    this.fine = [];
    this.forgetPicture();
    this.whole = this.outlines();
  }
}
