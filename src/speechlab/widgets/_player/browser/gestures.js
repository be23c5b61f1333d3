// Pointer and keys: a click seeks, a drag selects, and a click on a tier chooses the segment, or plays the chosen one.

import { soughtBy } from "../../_shared/dom.js";
import { placesOf } from "./draw.js";

const FINE_STEP_S = 0.01;
const DRAG_PX = 4;

/** @typedef {import("./view.js").PlayerView} PlayerView */

export class Gestures {
  /** @param {PlayerView} player */
  constructor(player) {
    this.player = player;
    this.model = player.model;
    /** @type {{x: number, seconds: number, moved: boolean, segment: [number, number] | null} | null} */
    this.drag = null;
    const { slider, root } = player.ui;
    slider.addEventListener("pointerdown", (event) => this.press(event));
    slider.addEventListener("pointermove", (event) => this.pull(event));
    slider.addEventListener("pointerup", () => this.release());
    slider.addEventListener("pointercancel", () => this.drop());
    slider.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    root.addEventListener("keydown", (event) => this.key(event));
    slider.dataset.slKeys = "";
  }

  /** @param {MouseEvent} event */
  secondsAt(event) {
    const box = this.player.ui.canvas.getBoundingClientRect();
    const [start, end] = this.player.view;
    return this.player.clamp(start + ((event.clientX - box.left) / box.width) * (end - start));
  }

  /** Indices of the tier and of the segment below the pointer. @param {PointerEvent} event @param {number} seconds @returns {[number, number] | null} */
  segmentAt(event, seconds) {
    const { tier, lane } = this.tierAt(event);
    const inside = (/** @type {import("./draw.js").Segment} */ segment) =>
      segment.start <= seconds && seconds < segment.end && (segment.lane ?? 0) === lane;
    const index = this.player.layers[tier]?.segments.findIndex(inside) ?? -1;
    return index < 0 ? null : [tier, index];
  }

  /** Index of the tier below the pointer (-1 for the waveform), and of the lane in it. @param {MouseEvent} event */
  tierAt(event) {
    const { model, player } = this;
    const places = placesOf(model.get("clips").length, model.get("spectrogram"), player.layers);
    const y = event.clientY - player.ui.canvas.getBoundingClientRect().top;
    const tier = places.tops.filter((top) => top <= y).length - 1;
    if (tier < 0) return { tier, lane: 0 };
    const lane = Math.floor((y - places.tops[tier]) / places.tier);
    // Below its lanes is the name of the next tier.
    return lane < (player.layers[tier].lanes ?? 1) || tier + 1 === places.tops.length ? { tier, lane } : { tier: tier + 1, lane: -1 };
  }

  /** @param {PointerEvent} event */
  press(event) {
    if (event.button !== 0) return;
    const seconds = this.secondsAt(event);
    this.drag = { x: event.clientX, seconds, moved: false, segment: this.segmentAt(event, seconds) };
    this.player.ui.slider.setPointerCapture(event.pointerId);
  }

  /** @param {PointerEvent} event */
  pull(event) {
    const { drag } = this;
    if (!drag) return;
    drag.moved ||= Math.abs(event.clientX - drag.x) > DRAG_PX;
    if (!drag.moved) return;
    const to = this.secondsAt(event);
    this.model.set("selection", [Math.min(drag.seconds, to), Math.max(drag.seconds, to)]);
    this.model.set("selected", -1);
  }

  release() {
    const { drag, player } = this;
    this.drag = null;
    if (!drag) return;
    if (drag.moved) {
      this.model.save_changes();
      if (this.model.get("loop")) player.replay();
    } else if (drag.segment) {
      if (drag.segment[0] !== this.model.get("tier")) player.put({ tier: drag.segment[0], selected: -1 });
      player.pressSegment(drag.segment[1]);
    } else player.seek(drag.seconds);
  }

  get dragging() {
    return this.drag !== null;
  }

  /** Cancels a drag. */
  drop() {
    this.drag = null;
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    const { player } = this;
    const [start, end] = player.view;
    if (event.ctrlKey || event.metaKey) player.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.secondsAt(event));
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const by = ((event.deltaX || event.deltaY) / player.ui.canvas.clientWidth) * (end - start);
      player.look(start + by, end + by);
    } else return;
    event.preventDefault();
  }

  /** Actions of keys: the first group anywhere in the widget, the second on the waveform. */
  acts() {
    const { player, model } = this;
    const at = player.transport.now();
    const range = player.selection;
    /** @type {Record<string, () => void>} */
    const anywhere = {
      l: () => player.put({ loop: !model.get("loop") }),
      s: () => player.put({ spectrogram: !model.get("spectrogram") }),
      "+": () => player.zoom(0.5),
      "=": () => player.zoom(0.5),
      "-": () => player.zoom(2),
      0: () => player.look(0, player.duration),
      "[": () => player.put({ selection: [at, Math.max(range?.[1] ?? player.duration, at)], selected: -1 }),
      "]": () => player.put({ selection: [Math.min(range?.[0] ?? 0, at), at], selected: -1 }),
      n: () => player.stepSegment(1),
      p: () => player.stepSegment(-1),
      ",": () => player.seek(at - FINE_STEP_S),
      ".": () => player.seek(at + FINE_STEP_S),
      Escape: () => player.put({ selection: [], selected: -1 }),
    };
    /** @type {Record<string, () => void>} */
    const here = {
      " ": () => player.playOrPause(),
      Enter: () => player.playSelection(),
    };
    return { anywhere, here };
  }

  /** Handles a key of the widget. @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { target } = event;
    if (target instanceof HTMLInputElement || target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement) return;
    const { anywhere, here } = this.acts();
    const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const clip = /^[1-9]$/.test(name) ? Number(name) - 1 : -1;
    const { player } = this;
    const onWave = target === player.ui.slider;
    const act = anywhere[name] ?? (onWave ? here[name] : undefined);
    const sought = onWave ? soughtBy(name, player.transport.now(), player.duration) : undefined;
    if (act) act();
    else if (sought !== undefined) player.seek(sought);
    else if (clip >= 0 && clip < this.model.get("clips").length) player.put({ active_clip: clip });
    else return;
    event.preventDefault();
  }
}
