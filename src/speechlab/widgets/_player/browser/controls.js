// The elements of a player, and its list of segments, which follows playback.

import { clock, fillOptions, make, makeBox, makeKeys } from "../../_shared/dom.js";

export const PLAYER_KEYS = [
  ["Space", "play and pause"],
  ["← →", "back and on by a second"],
  [", .", "by a hundredth"],
  ["Page Up, Page Down", "by five seconds"],
  ["Home, End", "to the beginning, to the end"],
  ["Enter", "play the selection"],
  ["[ ]", "select from here, to here"],
  ["Escape", "drop the selection"],
  ["l", "loop"],
  ["+ − 0", "zoom in, zoom out, see all"],
  ["p n", "play the previous, the next segment"],
  ["s", "spectrogram"],
  ["1 2 …", "hear another clip"],
];

/** @param {HTMLElement} root @param {string[][]} keys Keys and what they do. */
export function buildPlayer(root, keys) {
  const head = make(root, "div", "sl-head");
  const title = make(head, "strong", "sl-title", { dir: "auto" });
  const facts = make(head, "span", "sl-facts");
  const choice = make(root, "div", "sl-bar sl-choice", { role: "group", "aria-label": "Clip that is heard" });
  const place = { role: "slider", "aria-label": "Position", "aria-valuemin": 0, tabindex: 0 };
  const slider = make(root, "div", "sl-slider", place);
  const canvas = make(slider, "canvas", "sl-canvas");
  const range = { type: "range", min: 0, max: 1, step: "any", "aria-label": "Part that is seen" };
  const scroll = make(root, "input", "sl-scroll", range);
  const bar = make(root, "div", "sl-bar");
  /** @param {string} text @param {string} label */
  const small = (text, label) => make(bar, "button", "sl-small", text, { title: label, ...(text === label ? {} : { "aria-label": label }) });
  const ui = {
    root, title, facts, choice, slider, canvas, scroll,
    toggle: make(bar, "button", "sl-toggle", "Play"),
    part: make(bar, "button", "sl-part", "Play selection"),
    loop: small("Loop", "Loop"),
    speed: make(bar, "select", "sl-speed", { "aria-label": "Speed" }),
    zoomOut: small("−", "Zoom out"),
    zoomIn: small("+", "Zoom in"),
    all: small("All", "See all"),
    spectrogram: small("Spectrogram", "Spectrogram"),
    time: make(bar, "span", "sl-time"),
    // Announces states, not every tick of the clock.
    live: make(root, "div", "sl-live", { role: "status" }),
    tiers: make(root, "div", "sl-bar sl-tiers"),
  };
  const tier = make(make(ui.tiers, "label", "", "Listed: "), "select", "sl-speed");
  const list = make(root, "ol", "sl-segments");
  makeKeys(root, keys);
  return { ...ui, tier, list };
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

/** @param {Parts} ui @param {import("./draw.js").Layer[]} layers @param {number} tier @param {(index: number) => void} play */
export function fillSegments(ui, layers, tier, play) {
  ui.tiers.hidden = layers.length < 2;
  fillOptions(ui.tier, layers.map(({ name }, index) => [String(index), name || `tier ${index + 1}`]), String(tier));
  ui.list.replaceChildren();
  const layer = layers[tier];
  ui.list.setAttribute("aria-label", layer?.name ? `Segments: ${layer.name}` : "Segments");
  layer?.segments.forEach((segment, index) => {
    const button = make(make(ui.list, "li"), "button", "sl-segment", { click: () => play(index) });
    make(button, "span", "sl-span", `${clock(segment.start)} – ${clock(segment.end)}`);
    make(button, "span", "sl-text", segment.text, { dir: "auto", ...(layer.lang ? { lang: layer.lang } : {}) });
  });
  ui.list.hidden = !ui.list.children.length;
}

/** Marks a segment of the list and scrolls the list to it without scrolling the page. @param {HTMLElement} list @param {number} index */
export function followSegment(list, index) {
  const before = list.querySelector("[aria-current]");
  const item = list.children[index];
  const button = item?.firstElementChild ?? null;
  if (before === button) return;
  before?.removeAttribute("aria-current");
  if (!(item instanceof HTMLElement) || !button) return;
  button.setAttribute("aria-current", "true");
  const top = item.offsetTop - list.offsetTop;
  if (top < list.scrollTop || top + item.offsetHeight > list.scrollTop + list.clientHeight) {
    list.scrollTop = Math.max(top - list.clientHeight / 3, 0);
  }
}
