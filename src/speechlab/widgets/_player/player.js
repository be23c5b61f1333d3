// The player: a waveform to look at and to drag through, segments that play to the sample, and keys.
//
// Sound goes through Web Audio rather than an <audio> element, because a buffer source plays exactly the samples
// from `start` to `end`; elements run on by up to a video frame.

import { clock, make, makeRoot, spoken } from "../_shared/dom.js";
import { liveWidget } from "../_shared/mount.js";

const STEP_S = 1;
const PAGE_S = 5;
const DRAG_PX = 4;
const HEIGHT_PX = 88;
const REPORT_MS = 250;

// One context for each sample rate, shared by all players on the page: browsers allow only a few, and a context at
// the recording's own rate decodes without resampling.
const contexts = new Map();
function contextAt(rate) {
  if (!contexts.has(rate)) contexts.set(rate, new AudioContext({ sampleRate: rate }));
  return contexts.get(rate);
}

// Only one player sounds at a time.
let sounding = null;

// ---------------------------------------------------------------------------------------------------- the sound

class Sound {
  constructor(model, changed) {
    this.model = model;
    this.changed = changed;
    this.position = Math.min(model.get("current_time"), model.get("duration"));
    this.source = null;
    this.ticket = 0;
  }

  get playing() {
    return this.source !== null;
  }

  now() {
    if (!this.source) return this.position;
    return Math.min(this.from + Math.max(this.context.currentTime - this.startedAt, 0), this.until);
  }

  async decoded() {
    if (!this.buffer) {
      const view = this.model.get("audio");
      const bytes = view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
      this.buffer = contextAt(this.model.get("sample_rate")).decodeAudioData(bytes);
    }
    return this.buffer;
  }

  async play(from, until) {
    this.stop();
    const ticket = ++this.ticket;
    this.context = contextAt(this.model.get("sample_rate"));
    const [buffer] = await Promise.all([this.decoded(), this.context.resume()]);
    if (ticket !== this.ticket) return;
    if (sounding && sounding !== this) sounding.stop();
    sounding = this;
    const source = this.context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.context.destination);
    source.onended = () => this.source === source && this.settle(this.until);
    this.from = from;
    this.until = until;
    this.startedAt = this.context.currentTime;
    this.source = source;
    source.start(0, from, until - from);
    this.changed();
  }

  stop() {
    this.ticket += 1;
    if (this.source) this.settle(this.now());
  }

  settle(position) {
    const { source } = this;
    this.source = null;
    this.position = position;
    if (sounding === this) sounding = null;
    source.stop();
    source.disconnect();
    this.changed();
  }

  forget() {
    this.stop();
    this.position = 0;
    this.buffer = null;
  }
}

// -------------------------------------------------------------------------------------------------- the picture

function draw(canvas, state) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  if (!width) return;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(HEIGHT_PX * ratio);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const colors = getComputedStyle(canvas);
  const color = (name) => colors.getPropertyValue(name).trim();
  const x = (seconds) => (state.duration ? (seconds / state.duration) * width : 0);

  state.segments.forEach((segment, index) => {
    pen.fillStyle = color(index === state.selected ? "--sl-band-on" : "--sl-band");
    pen.fillRect(x(segment.start), 0, Math.max(x(segment.end) - x(segment.start) - 1, 1), HEIGHT_PX);
  });
  // A chosen segment is marked already; two washes over each other turn brown.
  if (state.selection && state.selected < 0) {
    pen.fillStyle = color("--sl-selection");
    pen.fillRect(x(state.selection[0]), 0, x(state.selection[1]) - x(state.selection[0]), HEIGHT_PX);
  }

  const count = state.peaks.length / 2;
  const middle = HEIGHT_PX / 2;
  const half = middle - 4;
  const edge = x(state.position);
  const done = color("--sl-done");
  const wave = color("--sl-wave");
  for (let column = 0; column < width; column += 1) {
    const first = Math.floor((column / width) * count);
    const last = Math.max(Math.floor(((column + 1) / width) * count), first + 1);
    let low = 127;
    let high = -127;
    for (let bin = first; bin < last && bin < count; bin += 1) {
      low = Math.min(low, state.peaks[2 * bin]);
      high = Math.max(high, state.peaks[2 * bin + 1]);
    }
    if (high < low) low = high = 0;
    const top = middle - (high / 127) * half;
    const bottom = middle - (low / 127) * half;
    pen.fillStyle = column < edge ? done : wave;
    pen.fillRect(column, top - 0.5, 1, bottom - top + 1);
  }
  pen.fillStyle = color("--sl-cursor");
  pen.fillRect(Math.min(Math.max(edge - 0.75, 0), width - 1.5), 0, 1.5, HEIGHT_PX);
}

// --------------------------------------------------------------------------------------------------- the widget

function build(el) {
  const root = makeRoot(el, "speechlab-player");
  const head = make(root, "div", "sl-head");
  const title = make(head, "strong", "sl-title");
  const facts = make(head, "span", "sl-facts");
  const slider = make(root, "div", "sl-slider");
  slider.tabIndex = 0;
  slider.setAttribute("role", "slider");
  slider.setAttribute("aria-label", "Position");
  slider.setAttribute("aria-valuemin", "0");
  const canvas = make(slider, "canvas", "sl-canvas");
  const bar = make(root, "div", "sl-bar");
  const toggle = make(bar, "button", "sl-toggle", "Play");
  const part = make(bar, "button", "sl-part", "Play selection");
  const time = make(bar, "span", "sl-time");
  const list = make(root, "ol", "sl-segments");
  // Speaks of states, not of every tick of the clock.
  const live = make(root, "div", "sl-live");
  live.setAttribute("aria-live", "polite");
  return { root, title, facts, slider, canvas, toggle, part, time, list, live };
}

function render({ model, el }) {
  const ui = build(el);
  const off = new AbortController();
  const { signal } = off;
  let frame = 0;
  let reported = model.get("current_time");
  let reportedAt = 0;
  let drag = null;
  let wasPlaying = false;

  const duration = () => model.get("duration");
  const clamp = (seconds) => Math.min(Math.max(seconds, 0), duration());
  const selection = () => (model.get("selection").length === 2 ? model.get("selection") : null);
  const put = (values) => {
    for (const [name, value] of Object.entries(values)) model.set(name, value);
    model.save_changes();
  };
  const segmentAt = (seconds) =>
    model.get("segments").findIndex((segment) => segment.start <= seconds && seconds < segment.end);

  const sound = new Sound(model, () => {
    if (sound.playing !== wasPlaying) {
      wasPlaying = sound.playing;
      ui.live.textContent = wasPlaying ? "Playing" : `Paused at ${spoken(sound.now())}`;
      put({ playing: wasPlaying });
    }
    report(true);
    paint();
  });

  function report(now) {
    if (!now && performance.now() - reportedAt < REPORT_MS) return;
    reportedAt = performance.now();
    const position = sound.now();
    if (position === reported) return;
    reported = position;
    put({ current_time: position });
  }

  function paint() {
    cancelAnimationFrame(frame);
    const position = sound.now();
    const view = model.get("peaks");
    draw(ui.canvas, {
      duration: duration(),
      segments: model.get("segments"),
      selected: model.get("selected"),
      selection: selection(),
      peaks: new Int8Array(view.buffer, view.byteOffset, view.byteLength),
      position,
    });
    ui.time.textContent = `${clock(position)} / ${clock(duration())}`;
    ui.slider.setAttribute("aria-valuemax", duration().toFixed(2));
    ui.slider.setAttribute("aria-valuenow", position.toFixed(2));
    ui.slider.setAttribute("aria-valuetext", `${spoken(position)} of ${spoken(duration())}`);
    ui.toggle.textContent = sound.playing ? "Pause" : "Play";
    ui.root.classList.toggle("sl-playing", sound.playing);
    const range = selection();
    ui.part.hidden = !range;
    if (range) ui.part.textContent = `Play ${clock(range[0])} – ${clock(range[1])}`;
    const heard = sound.playing ? segmentAt(position) : model.get("selected");
    [...ui.list.children].forEach((item, index) => {
      item.firstElementChild?.toggleAttribute("aria-current", index === heard);
      if (index === heard) item.firstElementChild?.setAttribute("aria-current", "true");
    });
    if (sound.playing) {
      report(false);
      frame = requestAnimationFrame(paint);
    }
  }

  function describe() {
    const name = model.get("title");
    ui.title.textContent = name;
    ui.title.hidden = !name;
    ui.facts.textContent = model.get("facts");
    ui.root.setAttribute("aria-label", name ? `Player: ${name}` : "Player");
  }

  function listSegments() {
    ui.list.replaceChildren();
    const lang = model.get("lang");
    model.get("segments").forEach((segment, index) => {
      const button = make(make(ui.list, "li"), "button", "sl-segment");
      make(button, "span", "sl-span", `${clock(segment.start)} – ${clock(segment.end)}`);
      const text = make(button, "span", "sl-text", segment.text);
      text.dir = "auto";
      if (lang) text.lang = lang;
      button.addEventListener("click", () => playSegment(index));
    });
    ui.list.hidden = !ui.list.children.length;
  }

  function seek(seconds) {
    const to = clamp(seconds);
    const again = sound.playing;
    sound.stop();
    sound.position = to;
    report(true);
    if (again && to < duration()) start(to, duration());
    else paint();
  }

  function start(from, until) {
    sound.play(clamp(from), clamp(until)).catch((error) => {
      ui.live.textContent = `This browser cannot play the sound: ${error.message}`;
      ui.live.classList.add("sl-failed");
    });
  }

  function playOrPause() {
    if (sound.playing) sound.stop();
    else start(sound.now() >= duration() - 1e-3 ? 0 : sound.now(), duration());
  }

  function playSegment(index) {
    const segment = model.get("segments")[index];
    const same = sound.playing && model.get("selected") === index && sound.until === clamp(segment.end);
    put({ selected: index, selection: [segment.start, segment.end] });
    if (same) sound.stop();
    else start(segment.start, segment.end);
  }

  // -- pointer: a click seeks, a drag selects

  const secondsAt = (event) => {
    const box = ui.canvas.getBoundingClientRect();
    return clamp(((event.clientX - box.left) / box.width) * duration());
  };
  const on = (node, name, listener) => node.addEventListener(name, listener, { signal });
  on(ui.slider, "pointerdown", (event) => {
    if (event.button !== 0) return;
    drag = { x: event.clientX, seconds: secondsAt(event), moved: false };
    ui.slider.setPointerCapture(event.pointerId);
  });
  on(ui.slider, "pointermove", (event) => {
    if (!drag) return;
    drag.moved ||= Math.abs(event.clientX - drag.x) > DRAG_PX;
    if (!drag.moved) return;
    const to = secondsAt(event);
    model.set("selection", [Math.min(drag.seconds, to), Math.max(drag.seconds, to)]);
    model.set("selected", -1);
    paint();
  });
  on(ui.slider, "pointerup", () => {
    if (!drag) return;
    if (drag.moved) model.save_changes();
    else seek(drag.seconds);
    drag = null;
  });
  on(ui.slider, "pointercancel", () => (drag = null));
  on(ui.toggle, "click", playOrPause);
  on(ui.part, "click", () => selection() && start(...selection()));

  // -- keys: the slider's own, and nothing through to the notebook, where "x" cuts the cell

  on(ui.slider, "keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = {
      ArrowLeft: () => seek(sound.now() - STEP_S),
      ArrowDown: () => seek(sound.now() - STEP_S),
      ArrowRight: () => seek(sound.now() + STEP_S),
      ArrowUp: () => seek(sound.now() + STEP_S),
      PageDown: () => seek(sound.now() - PAGE_S),
      PageUp: () => seek(sound.now() + PAGE_S),
      Home: () => seek(0),
      End: () => seek(duration()),
      " ": playOrPause,
      Enter: () => (selection() ? start(...selection()) : playOrPause()),
      Escape: () => put({ selection: [], selected: -1 }),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  });

  // -- the kernel

  const heard = {
    "change:title": describe,
    "change:facts": describe,
    "change:segments": () => (listSegments(), paint()),
    "change:lang": listSegments,
    "change:selection": paint,
    "change:selected": paint,
    "change:peaks": paint,
    "change:audio": () => (sound.forget(), paint()),
    "change:current_time": () => model.get("current_time") !== reported && seek(model.get("current_time")),
    "msg:custom": (message) => {
      if (message.type === "play") start(message.start ?? sound.now(), message.end ?? duration());
      if (message.type === "pause") sound.stop();
    },
  };
  for (const [name, listener] of Object.entries(heard)) model.on(name, listener);

  // -- size and theme

  const sized = new ResizeObserver(() => paint());
  sized.observe(ui.canvas);
  const themed = new MutationObserver(() => paint());
  themed.observe(document.body, { attributes: true });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint, { signal });

  describe();
  listSegments();
  paint();

  return () => {
    for (const [name, listener] of Object.entries(heard)) model.off(name, listener);
    off.abort();
    sized.disconnect();
    themed.disconnect();
    sound.stop();
    cancelAnimationFrame(frame);
  };
}

export default liveWidget(render);
