// The elements of a player, and its list of segments, which follows playback.

import { clock, make, makeRoot } from "../../_shared/dom.js";

const SPEED_CHOICES = [0.5, 0.75, 1, 1.25, 1.5, 2, 3];
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

/** @param {Element} el @param {string} className @param {string[][]} keyList Keys and what they do. */
export function buildPlayer(el, className, keyList) {
  const root = makeRoot(el, className);
  const head = make(root, "div", "sl-head");
  const title = make(head, "strong", "sl-title");
  title.dir = "auto";
  const facts = make(head, "span", "sl-facts");
  const choice = make(root, "div", "sl-bar sl-choice");
  choice.setAttribute("role", "group");
  choice.setAttribute("aria-label", "Clip that is heard");
  const slider = make(root, "div", "sl-slider");
  slider.tabIndex = 0;
  slider.setAttribute("role", "slider");
  slider.setAttribute("aria-label", "Position");
  slider.setAttribute("aria-valuemin", "0");
  const canvas = make(slider, "canvas", "sl-canvas");
  const scroll = make(root, "input", "sl-scroll");
  scroll.type = "range";
  scroll.min = "0";
  scroll.max = "1";
  scroll.step = "any";
  scroll.setAttribute("aria-label", "Part that is seen");
  const bar = make(root, "div", "sl-bar");
  const toggle = make(bar, "button", "sl-toggle", "Play");
  const part = make(bar, "button", "sl-part", "Play selection");
  /** @param {string} text @param {string} label */
  const small = (text, label) => {
    const button = make(bar, "button", "sl-small", text);
    button.title = label;
    if (text !== label) button.setAttribute("aria-label", label);
    return button;
  };
  const loop = small("Loop", "Loop");
  const speed = make(bar, "select", "sl-speed");
  speed.setAttribute("aria-label", "Speed");
  const zoomOut = small("−", "Zoom out");
  const zoomIn = small("+", "Zoom in");
  const all = small("All", "See all");
  const spectrogram = small("Spectrogram", "Spectrogram");
  const time = make(bar, "span", "sl-time");
  // Announces states, not every tick of the clock.
  const live = make(root, "div", "sl-live");
  live.setAttribute("role", "status");
  const tiers = make(root, "div", "sl-bar sl-tiers");
  const label = make(tiers, "label", "", "Listed: ");
  const tier = make(label, "select", "sl-speed");
  const list = make(root, "ol", "sl-segments");
  const help = make(root, "details", "sl-keys");
  make(help, "summary", "", "Keys");
  const keys = make(help, "ul");
  for (const [key, act] of keyList) {
    const line = make(keys, "li");
    make(line, "kbd", "", key);
    make(line, "span", "", act);
  }
  return {
    root, title, facts, choice, slider, canvas, scroll, toggle, part, loop, speed, zoomIn, zoomOut, all, spectrogram,
    time, live, tiers, tier, list,
  };
}

/** @typedef {ReturnType<typeof buildPlayer>} Parts */

/** Fills the list of speeds, and adds the speed set in Python if it is not among them. @param {HTMLSelectElement} select @param {number} speed */
export function fillSpeeds(select, speed) {
  const speeds = [...new Set([...SPEED_CHOICES, speed])].sort((a, b) => a - b);
  select.replaceChildren();
  for (const one of speeds) {
    const option = make(select, "option", "", `${one}×`);
    option.value = String(one);
    option.selected = one === speed;
  }
}

/** @param {Parts} ui @param {import("./pieces.js").Clip[]} clips @param {(clip: number) => void} choose @param {(equal: boolean) => void} level */
export function fillClips(ui, clips, choose, level) {
  ui.choice.replaceChildren();
  ui.choice.hidden = clips.length < 2;
  if (clips.length < 2) return;
  clips.forEach((clip, index) => {
    const button = make(ui.choice, "button", "sl-small sl-clip");
    make(button, "span", "sl-number", String(index + 1)).setAttribute("aria-hidden", "true");
    make(button, "bdi", "", clip.name);
    button.title = clip.facts;
    button.addEventListener("click", () => choose(index));
  });
  const equal = make(ui.choice, "label", "sl-equal");
  const box = make(equal, "input");
  box.type = "checkbox";
  make(equal, "span", "", "equal level");
  box.addEventListener("change", () => level(box.checked));
}

/** @param {Parts} ui @param {import("./draw.js").Layer[]} layers @param {number} tier @param {(index: number) => void} play */
export function fillSegments(ui, layers, tier, play) {
  ui.tiers.hidden = layers.length < 2;
  ui.tier.replaceChildren();
  layers.forEach((layer, index) => {
    const option = make(ui.tier, "option", "", layer.name || `tier ${index + 1}`);
    option.value = String(index);
    option.selected = index === tier;
  });
  ui.list.replaceChildren();
  const layer = layers[tier];
  ui.list.setAttribute("aria-label", layer?.name ? `Segments: ${layer.name}` : "Segments");
  layer?.segments.forEach((segment, index) => {
    const button = make(make(ui.list, "li"), "button", "sl-segment");
    make(button, "span", "sl-span", `${clock(segment.start)} – ${clock(segment.end)}`);
    const text = make(button, "span", "sl-text", segment.text);
    text.dir = "auto";
    if (layer.lang) text.lang = layer.lang;
    button.addEventListener("click", () => play(index));
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
