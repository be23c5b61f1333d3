// The level meter: a bar labeled in dBFS, and the outline of the recorded signal.

import { make, penOf } from "../../_shared/dom.js";

const QUIETEST_DB = -60;
const FALL_DB_PER_S = 25;
const COLUMN_PX = 3;
const FULL_SCALE = 32767 / 32768;

/** @param {number} value */
const decibels = (value) => Math.max(20 * Math.log10(Math.max(value, 1e-9)), QUIETEST_DB);

export class Meter {
  /** @param {Element} parent */
  constructor(parent) {
    this.canvas = make(parent, "canvas", "sl-history", { "aria-hidden": true });
    const range = { "aria-valuemin": QUIETEST_DB, "aria-valuemax": 0 };
    this.bar = make(parent, "div", "sl-meter", { role: "meter", "aria-label": "Level", ...range });
    this.fill = make(this.bar, "div", "sl-fill");
    /** Lowest and highest sample of each block. @type {[number, number][]} */
    this.blocks = [];
    this.level = QUIETEST_DB;
    this.at = 0;
    /** Number of samples at full scale, where the signal was clipped. */
    this.clipped = 0;
  }

  reset() {
    this.blocks = [];
    this.clipped = 0;
    this.rest();
  }

  /** Shows silence. */
  rest() {
    this.level = QUIETEST_DB;
    this.show();
  }

  /** @param {Float32Array} block */
  add(block) {
    let low = 0;
    let high = 0;
    for (const sample of block) {
      if (sample < low) low = sample;
      else if (sample > high) high = sample;
      if (sample >= FULL_SCALE || sample <= -FULL_SCALE) this.clipped += 1;
    }
    this.blocks.push([low, high]);
    const now = performance.now();
    const peak = Math.max(high, -low);
    this.level = Math.max(decibels(peak), this.level - ((now - this.at) / 1000) * FALL_DB_PER_S);
    this.at = now;
  }

  show() {
    const share = (this.level - QUIETEST_DB) / -QUIETEST_DB;
    this.fill.style.width = `${(100 * share).toFixed(1)}%`;
    this.bar.classList.toggle("sl-loud", this.level > -3);
    const level = String(Math.round(this.level) || 0);
    this.bar.setAttribute("aria-valuenow", level);
    this.bar.setAttribute("aria-valuetext", this.level <= QUIETEST_DB ? "silence" : `${level} dBFS`);
    drawOutline(this.canvas, this.blocks.slice(-Math.ceil(this.canvas.clientWidth / COLUMN_PX)), COLUMN_PX);
  }
}

/** @param {HTMLCanvasElement} canvas @param {[number, number][]} blocks @param {number} [each] Pixels per block. By default the blocks share the whole width. */
export function drawOutline(canvas, blocks, each) {
  const { clientWidth: width, clientHeight: height } = canvas;
  const pen = penOf(canvas);
  if (!pen) return;
  pen.fillStyle = getComputedStyle(canvas).getPropertyValue("--sl-wave").trim();
  const step = each ?? width / blocks.length;
  blocks.forEach(([low, high], index) => {
    const tall = ((high - low) / 2) * (height - 2) + 1;
    pen.fillRect(index * step, ((1 - high) / 2) * (height - 2) + 0.5, Math.max(step - (each ? 1 : 0), 1), tall);
  });
}
