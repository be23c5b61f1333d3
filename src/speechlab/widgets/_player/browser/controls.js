// The elements of a player, and what they do.

import { fillOptions, make, makeBox, makeKeys } from "../../_shared/dom.js";

export const PLAYER_KEYS = [
  ["Click on a segment", "select it; again, play it"],
  ["Space", "play and pause"],
  ["← →", "back and on by a second"],
  [", .", "by a hundredth"],
  ["Page Up, Page Down", "by five seconds"],
  ["Home, End", "to the beginning, to the end"],
  ["Enter", "play the selection"],
  ["[ ]", "select from here, to here"],
  ["Escape", "clear the selection"],
  ["l", "loop"],
  ["+ − 0", "zoom in, zoom out, see all"],
  ["p n", "play the previous, the next segment"],
  ["s", "spectrogram"],
  ["1 2 …", "switch clip"],
];

/** @param {import("./view.js").PlayerView} view @param {string[][]} keys Keys and what they do. */
export function buildPlayer(view, keys) {
  const { root, model } = view;
  const head = make(root, "div", "sl-head");
  const title = make(head, "strong", "sl-title", { dir: "auto" });
  const facts = make(head, "span", "sl-facts");
  const choice = make(root, "div", "sl-bar sl-choice", { role: "group", "aria-label": "Active clip" });
  const place = { role: "slider", "aria-label": "Position", "aria-valuemin": 0, tabindex: 0 };
  const slider = make(root, "div", "sl-slider", place);
  const canvas = make(slider, "canvas", "sl-canvas");
  const range = { type: "range", min: 0, max: 1, step: "any", "aria-label": "Visible range" };
  const scroll = make(root, "input", "sl-scroll", { ...range, input: () => view.scrollTo(Number(scroll.value)) });
  const bar = make(root, "div", "sl-bar");
  /** @param {string} text @param {string} label @param {() => void} click */
  const small = (text, label, click) =>
    make(bar, "button", "sl-small", text, { title: label, click, ...(text === label ? {} : { "aria-label": label }) });
  const toggle = make(bar, "button", "sl-toggle", "Play", { click: () => view.playOrPause() });
  const part = make(bar, "button", "sl-part", "Play selection", { click: () => view.playSelection() });
  const loop = small("Loop", "Loop", () => view.put({ loop: !model.get("loop") }));
  const speeds = { "aria-label": "Speed", change: () => view.put({ speed: Number(speed.value) }) };
  const speed = make(bar, "select", "sl-speed", speeds);
  const zoomOut = small("−", "Zoom out", () => view.zoom(2));
  const zoomIn = small("+", "Zoom in", () => view.zoom(0.5));
  const all = small("All", "See all", () => view.look(0, view.duration));
  const spectrogram = small("Spectrogram", "Spectrogram", () => view.put({ spectrogram: !model.get("spectrogram") }));
  const time = make(bar, "span", "sl-time");
  // Announces states, not every tick of the clock.
  const live = make(root, "div", "sl-live", { role: "status" });
  const tiers = make(root, "div", "sl-bar sl-tiers");
  const choose = () => view.put({ tier: Number(tier.value), selected: -1 });
  const tier = make(make(tiers, "label", "", "Listed: "), "select", "sl-speed", { change: choose });
  const list = make(root, "ol", "sl-segments");
  makeKeys(root, keys);
  return {
    root, title, facts, choice, slider, canvas, scroll, toggle, part, loop, speed, zoomOut, zoomIn, all, spectrogram, time,
    live, tiers, tier, list,
  };
}

/** @typedef {ReturnType<typeof buildPlayer>} Parts */

/** @param {Parts} ui @param {import("./pieces.js").Clip[]} clips @param {(clip: number) => void} choose @param {(equal: boolean) => void} level */
export function fillClips(ui, clips, choose, level) {
  ui.choice.replaceChildren();
  ui.choice.hidden = clips.length < 2;
  if (clips.length < 2) return;
  clips.forEach((clip, index) => {
    const button = make(ui.choice, "button", "sl-small sl-clip", { title: clip.facts, click: () => choose(index) });
    make(button, "span", "sl-number", String(index + 1), { "aria-hidden": true });
    make(button, "bdi", "", clip.name);
  });
  makeBox(ui.choice, "sl-equal", "equal level", false, level);
}

/** The choice of the listed tier. @param {Parts} ui @param {import("./draw.js").Layer[]} layers @param {number} tier */
export function fillTiers(ui, layers, tier) {
  ui.tiers.hidden = layers.length < 2;
  fillOptions(ui.tier, layers.map(({ name }, index) => [String(index), name || `tier ${index + 1}`]), String(tier));
  ui.list.setAttribute("aria-label", layers[tier]?.name ? `Segments: ${layers[tier].name}` : "Segments");
}
