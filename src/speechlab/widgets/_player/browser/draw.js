// The picture of a player: time axis, waveforms, spectrogram, tiers, selection and position on one canvas.

import { penOf } from "../../_shared/dom.js";

export const AXIS_PX = 18;
const TIER_PX = 24;
/** Height of a name above its tier or its waveform, so that it covers none of it. */
const NAME_PX = 15;
const ALONE_PX = 88;
const SPECTROGRAM_PX = 110;
const STEPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600];
const TICK_PX = 70;
const EDGED_PX = 4;
const MOST_LANES = 4;

/**
 * @typedef {{id?: number, start: number, end: number, text: string, speaker?: string, lane?: number}} Segment
 * @typedef {{name: string, lang: string, segments: Segment[], lanes?: number, editable?: boolean, words?: boolean}} Layer
 * @typedef {{view: [number, number], clips: import("./pieces.js").Clip[], active: number, position: number,
 *   layers: Layer[], tier: number, selected: number, selection: [number, number] | null, spectrogram: boolean, playing: boolean,
 *   detail: import("./detail.js").Detail}} Scene
 */

/** Gives each segment a lane, so that overlapping segments are drawn below each other. Returns the number of lanes. @param {Segment[]} segments */
export function layLanes(segments) {
  /** @type {number[]} */
  const lanes = [];
  for (const segment of [...segments].sort((a, b) => a.start - b.start || a.end - b.end)) {
    let lane = lanes.findIndex((end) => end <= segment.start + 1e-9);
    if (lane < 0) lane = Math.min(lanes.length, MOST_LANES - 1);
    lanes[lane] = Math.max(lanes[lane] ?? 0, segment.end);
    segment.lane = lane;
  }
  return Math.max(lanes.length, 1);
}

/** Vertical position of each part of the picture. @param {number} clips @param {boolean} spectrogram @param {Layer[]} layers */
export function placesOf(clips, spectrogram, layers) {
  const name = clips === 1 ? 0 : NAME_PX;
  const lane = clips === 1 ? ALONE_PX : Math.max(34, 68 - 8 * clips) + name;
  const spectrum = AXIS_PX + lane * clips;
  let height = spectrum + (spectrogram ? SPECTROGRAM_PX : 0);
  const tops = layers.map(({ name, lanes = 1 }) => {
    height += name ? NAME_PX : 0;
    const top = height;
    height += TIER_PX * lanes;
    return top;
  });
  return { lane, name, spectrum, tier: TIER_PX, tops, height };
}

/** Label of a time on the axis, as short as the step allows. @param {number} seconds @param {number} step */
function tickText(seconds, step) {
  const decimals = step >= 1 ? 0 : Math.min(Math.ceil(-Math.log10(step) - 1e-9), 3);
  const units = Math.round(seconds * 10 ** decimals);
  const clockSeconds = Math.floor(units / 10 ** decimals);
  const digits = [Math.floor(clockSeconds / 60) % 60, clockSeconds % 60].map((number) => String(number).padStart(2, "0"));
  const hours = Math.floor(clockSeconds / 3600);
  const clocked = hours ? `${hours}:${digits.join(":")}` : `${Number(digits[0])}:${digits[1]}`;
  return decimals ? `${clocked}.${String(units % 10 ** decimals).padStart(decimals, "0")}` : clocked;
}

/** @param {HTMLCanvasElement} canvas @param {Scene} scene */
export function drawScene(canvas, scene) {
  const width = canvas.clientWidth;
  const places = placesOf(scene.clips.length, scene.spectrogram, scene.layers);
  canvas.style.height = `${places.height}px`;
  const pen = penOf(canvas);
  if (!pen) return;
  const style = getComputedStyle(canvas);
  pen.font = `11px ${style.fontFamily}`;
  // Look each color up once: thousands of look-ups take longer than the drawing.
  /** @type {Map<string, string>} */
  const colors = new Map();
  /** @param {string} name */
  const color = (name) => {
    let value = colors.get(name);
    if (value === undefined) colors.set(name, (value = style.getPropertyValue(name).trim()));
    return value;
  };
  const [start, end] = scene.view;
  /** @param {number} seconds */
  const x = (seconds) => ((seconds - start) / Math.max(end - start, 1e-9)) * width;
  const brush = { pen, width, color, x, places };

  drawAxis(brush, scene);
  if (scene.clips.length === 1) drawBands(brush, scene);
  if (scene.selection) {
    const [from, to] = scene.selection;
    pen.fillStyle = color("--sl-selection");
    pen.fillRect(x(from), AXIS_PX, Math.max(x(to) - x(from), 1), places.height - AXIS_PX);
  }
  scene.clips.forEach((clip, index) => drawWave(brush, scene, index));
  if (scene.spectrogram) drawSpectrogram(brush, scene);
  scene.layers.forEach((layer, index) => drawTier(brush, scene, index));
  pen.fillStyle = color("--sl-cursor");
  pen.fillRect(Math.min(Math.max(x(scene.position) - 0.75, -2), width - 1.5), 0, 1.5, places.height);
}

/** @typedef {{pen: CanvasRenderingContext2D, width: number, color: (name: string) => string, x: (seconds: number) => number,
 *   places: ReturnType<typeof placesOf>}} Brush */

/** @param {Brush} brush @param {Scene} scene */
function drawAxis({ pen, width, color, x }, scene) {
  const [start, end] = scene.view;
  const step = STEPS.find((candidate) => (candidate / Math.max(end - start, 1e-9)) * width >= TICK_PX) ?? 7200;
  pen.fillStyle = color("--sl-soft");
  pen.textBaseline = "middle";
  for (let tick = Math.ceil(start / step - 1e-9); tick * step <= end; tick += 1) {
    const at = x(tick * step);
    pen.fillRect(at, AXIS_PX - 5, 1, 5);
    const text = tickText(tick * step, step);
    if (at + pen.measureText(text).width + 4 < width) pen.fillText(text, at + 4, 8);
  }
  pen.fillRect(0, AXIS_PX - 1, width, 0.5);
}

/**
 * Visits the segments to draw: of those narrower than a pixel, the first in each pixel and the selected one.
 * @param {Brush} brush @param {Segment[]} segments @param {number} chosen
 * @param {(segment: Segment, from: number, wide: number, chosen: boolean) => void} draw
 */
function eachSeen({ x, width }, segments, chosen, draw) {
  /** Pixel of the last drawn segment, by lane. @type {number[]} */
  const filled = [];
  segments.forEach((segment, index) => {
    const from = x(segment.start);
    const wide = x(segment.end) - from;
    if (from + wide < 0 || from > width) return;
    const pixel = Math.floor(from + wide);
    const { lane = 0 } = segment;
    if (index !== chosen && wide < 1 && filled[lane] === pixel) return;
    filled[lane] = pixel;
    draw(segment, from, wide, index === chosen);
  });
}

/** Draws the segments of the listed tier behind the waveform. @param {Brush} brush @param {Scene} scene */
function drawBands(brush, scene) {
  const { pen, color, places } = brush;
  eachSeen(brush, scene.layers[scene.tier]?.segments ?? [], scene.selected, (_, from, wide, chosen) => {
    pen.fillStyle = color(chosen ? "--sl-band-on" : "--sl-band");
    pen.fillRect(from, AXIS_PX, Math.max(wide - 1, 1), places.lane);
  });
}

/** @param {Brush} brush @param {Scene} scene @param {number} clip */
function drawWave({ pen, width, color, x, places }, scene, clip) {
  const [start, end] = scene.view;
  const { start: from, end: to, values } = scene.detail.outline(clip, start, end);
  const count = values.length / 2;
  const top = AXIS_PX + places.lane * clip;
  const middle = top + (places.lane + places.name) / 2;
  const half = (places.lane - places.name) / 2 - 4;
  const edge = x(scene.position);
  const played = color("--sl-done");
  const wave = color("--sl-wave");
  pen.globalAlpha = clip === scene.active ? 1 : 0.45;
  const perPixel = ((end - start) / width / Math.max(to - from, 1e-9)) * count;
  const first = ((start - from) / Math.max(to - from, 1e-9)) * count;
  const last = Math.min(Math.ceil(x(scene.clips[clip].seconds)), width);
  for (let column = Math.max(Math.floor(x(0)), 0); column < last; column += 1) {
    const begin = Math.max(Math.floor(first + column * perPixel), 0);
    const stop = Math.min(Math.max(Math.floor(first + (column + 1) * perPixel), begin + 1), count);
    let low = 127;
    let high = -127;
    for (let bin = begin; bin < stop; bin += 1) {
      low = Math.min(low, values[2 * bin]);
      high = Math.max(high, values[2 * bin + 1]);
    }
    if (high < low) low = high = 0;
    pen.fillStyle = column < edge ? played : wave;
    pen.fillRect(column, middle - (high / 127) * half - 0.5, 1, ((high - low) / 127) * half + 1);
  }
  pen.globalAlpha = 1;
  if (places.name) drawLabel(pen, color, scene.clips[clip].name, top, clip === scene.active);
}

/**
 * Draws a name on a background of its own.
 * @param {CanvasRenderingContext2D} pen @param {(name: string) => string} color @param {string} text
 * @param {number} top @param {boolean} strong
 */
function drawLabel(pen, color, text, top, strong) {
  if (!text) return;
  const { font } = pen;
  if (strong) pen.font = `bold ${font}`;
  const words = text.length > 24 ? `${text.slice(0, 23)}…` : text;
  pen.globalAlpha = 0.85;
  pen.fillStyle = color("--sl-paper");
  pen.fillRect(0, top + 1, pen.measureText(words).width + 8, 14);
  pen.globalAlpha = 1;
  pen.fillStyle = color(strong ? "--sl-ink" : "--sl-soft");
  pen.fillText(words, 4, top + 8);
  pen.font = font;
}

/** @param {Brush} brush @param {Scene} scene */
function drawSpectrogram({ pen, width, color, x, places }, scene) {
  const { picture } = scene.detail;
  const top = places.spectrum;
  pen.fillStyle = color("--sl-soft");
  pen.fillRect(0, top, width, 0.5);
  if (!picture?.image) {
    pen.fillText(picture?.error || "…", 6, top + SPECTROGRAM_PX / 2);
    return;
  }
  const from = x(picture.start);
  const wide = x(picture.end) - from;
  // The image is a mask, which is filled with the theme's text color.
  const mask = new OffscreenCanvas(picture.image.width, picture.image.height);
  const ink = mask.getContext("2d");
  if (!ink || wide < 1) return;
  ink.drawImage(picture.image, 0, 0);
  ink.globalCompositeOperation = "source-in";
  ink.fillStyle = color("--sl-ink");
  ink.fillRect(0, 0, mask.width, mask.height);
  pen.drawImage(mask, from, top + 1, wide, SPECTROGRAM_PX - 2);
  drawLabel(pen, color, `${(picture.top / 1000).toFixed(1)} kHz`, top + 1, false);
  drawLabel(pen, color, "0", top + SPECTROGRAM_PX - 17, false);
}

/** @param {Brush} brush @param {Scene} scene @param {number} number */
function drawTier(brush, scene, number) {
  const { pen, width, color, places } = brush;
  const layer = scene.layers[number];
  const high = places.tier - 3;
  pen.fillStyle = color("--sl-line");
  pen.fillRect(0, places.tops[number] - (layer.name ? NAME_PX : 0), width, 1);
  eachSeen(brush, layer.segments, number === scene.tier ? scene.selected : -1, (segment, from, wide, chosen) => {
    const top = places.tops[number] + places.tier * (segment.lane ?? 0);
    const lit = layer.words && scene.playing && segment.start <= scene.position && scene.position < segment.end;
    pen.fillStyle = color(chosen || lit ? "--sl-band-on" : "--sl-band");
    pen.fillRect(from, top + 2, Math.max(wide - 1, 1), high);
    if (lit) {
      pen.fillStyle = color("--sl-done");
      pen.fillRect(from, top + high, Math.max(wide - 1, 1), 2);
    }
    if (wide < EDGED_PX && !chosen) return; // adjacent edges would merge into a block
    pen.fillStyle = color("--sl-done");
    pen.fillRect(from, top + 2, 1.5, high);
    if (layer.editable) {
      pen.fillRect(from + wide - 1.5, top + 2, 1.5, high);
      pen.strokeStyle = color("--sl-done");
      if (chosen) pen.strokeRect(from + 0.5, top + 2.5, Math.max(wide - 1, 1), high - 1);
    }
    const left = Math.max(from, 0);
    const words = [segment.speaker, segment.text].filter(Boolean).join(": ");
    if (from + wide - left < 14 || !words) return;
    pen.save();
    pen.beginPath();
    pen.rect(left, top, from + wide - left - 2, places.tier);
    pen.clip();
    pen.fillStyle = color("--sl-ink");
    pen.fillText(words.slice(0, 200), left + 4, top + places.tier / 2 + 1);
    pen.restore();
  });
  drawLabel(pen, color, layer.name, places.tops[number] - NAME_PX, number === scene.tier);
}
