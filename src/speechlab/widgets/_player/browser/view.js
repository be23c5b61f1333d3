// The view of a player: recordings to view, zoom and select in, with segments that play exactly to the sample.
//
// The model answers requests: pieces of sound, finer waveforms and spectrograms arrive as messages.
// begin() starts the view, so that a derived view can first add its own parts.

import { clock, fillSpeeds, spoken, View } from "../../_shared/dom.js";
import { buildPlayer, fillClips, fillTiers } from "./controls.js";
import { Detail } from "./detail.js";
import { drawScene, layLanes } from "./draw.js";
import { Gestures } from "./gestures.js";
import { SegmentList } from "./list.js";
import { Transport } from "./transport.js";

const REPORT_MS = 250;
const SHORTEST_VIEW_S = 0.02;

export class PlayerView extends View {
  /** @type {Gestures} */ gestures;
  /** Name of the widget. */
  kind = "Player";
  /** The tiers of the model, and below them the same tiers with lanes. @type {import("./draw.js").Layer[]} */
  given = [];
  /** @type {import("./draw.js").Layer[]} */
  laid = [];
  reportedAt = 0;
  wasPlaying = false;

  /** @param {any} model @param {Element} el @param {string} className @param {string[][]} keys */
  constructor(model, el, className, keys) {
    super(model, el, className);
    this.ui = buildPlayer(this, keys);
    this.list = new SegmentList(this.ui.list, (id) => this.pressSegment(this.segments.findIndex((row, index) => (row.id ?? index) === id)));
    this.reported = model.get("current_time");
    this.transport = new Transport(model, () => this.moved(), (error) => this.say(error, true));
    this.detail = new Detail(model, () => this.paint());
    this.atEnd(() => (this.transport.dispose(), this.detail.reset()));
  }

  begin() {
    this.gestures = this.makeGestures();
    this.listen();
    this.describe();
    this.listSegments();
    this.paint();
    return this;
  }

  makeGestures() {
    return new Gestures(this);
  }

  get duration() {
    return this.model.get("duration");
  }

  /** @returns {[number, number] | null} */
  get selection() {
    const selection = this.model.get("selection");
    return selection.length === 2 ? selection : null;
  }

  /** @returns {[number, number]} */
  get view() {
    const view = this.model.get("view");
    return view.length === 2 && view[1] > view[0] ? view : [0, this.duration];
  }

  /** All tiers. @returns {import("./draw.js").Layer[]} */
  get layers() {
    const layers = this.model.get("layers");
    if (layers !== this.given) {
      this.given = layers;
      this.laid = layers.map((/** @type {import("./draw.js").Layer} */ layer) => {
        const segments = layer.segments.map((segment) => ({ ...segment }));
        return { ...layer, segments, lanes: layLanes(segments) };
      });
    }
    return this.laid;
  }

  /** Segments of the listed tier. @returns {import("./draw.js").Segment[]} */
  get segments() {
    return this.layers[this.model.get("tier")]?.segments ?? [];
  }

  /** @param {number} seconds */
  clamp(seconds) {
    return Math.min(Math.max(seconds, 0), this.duration);
  }

  /** @param {string} words @param {boolean} [failed] */
  say(words, failed = false) {
    this.ui.live.textContent = words;
    this.ui.live.classList.toggle("sl-failed", failed);
  }

  /** Announces the state of playback. @param {string} words */
  sayState(words) {
    this.say(words);
  }

  // -- playback

  moved() {
    const playing = this.transport.active;
    if (playing !== this.wasPlaying) {
      this.wasPlaying = playing;
      this.sayState(playing ? "Playing" : `Paused at ${spoken(this.transport.now())}`);
      this.put({ playing });
    }
    this.report(true);
    this.paint();
  }

  /** @param {boolean} now */
  report(now) {
    if (!now && performance.now() - this.reportedAt < REPORT_MS) return;
    this.reportedAt = performance.now();
    const position = this.transport.now();
    if (position === this.reported) return;
    this.reported = position;
    this.put({ current_time: position });
  }

  /** Plays an interval, repeatedly if the loop is on. @param {number} from @param {number} until */
  start(from, until) {
    this.transport.play(this.clamp(from), this.clamp(until), this.model.get("loop"));
  }

  playOrPause() {
    if (this.transport.active) this.transport.stop();
    else this.playOn();
  }

  /** Plays on from the position: to the end, or in the selection again and again if the loop is on. */
  playOn() {
    const loop = this.model.get("loop");
    const [from, until] = (loop && this.selection) || [0, this.duration];
    const at = this.transport.now();
    const inside = at >= from && at < until - 1e-3;
    this.transport.play(inside ? at : from, until, loop, from);
  }

  playSelection() {
    if (this.selection) this.start(...this.selection);
    else this.playOrPause();
  }

  /** Chooses a segment; plays it if it is chosen, or if sound plays. @param {number} index */
  pressSegment(index) {
    if (this.transport.active || this.model.get("selected") === index) this.playSegment(index);
    else if (this.segments[index]) {
      const { start, end } = this.segments[index];
      this.chooseSegment(index);
      this.show(start, end);
      this.seek(start);
    }
  }

  /** @param {number} index */
  playSegment(index) {
    const { transport } = this;
    const segment = this.segments[index];
    if (!segment) return;
    const same = transport.active && this.model.get("selected") === index && transport.until === this.clamp(segment.end);
    this.chooseSegment(index);
    this.show(segment.start, segment.end);
    if (same) transport.stop();
    else this.start(segment.start, segment.end);
  }

  /** @param {number} index */
  chooseSegment(index) {
    const { start, end } = this.segments[index];
    this.put({ selected: index, selection: [start, end] });
  }

  /** @param {number} step */
  stepSegment(step) {
    const at = this.transport.now();
    const selected = this.model.get("selected");
    const later = this.segments.findIndex((segment) => segment.start > at + 1e-3);
    const next = later < 0 ? this.segments.length : later;
    const index = selected >= 0 ? selected + step : step > 0 ? next : next - 1;
    if (this.segments[index]) this.playSegment(index);
    else this.say(`There is no ${step > 0 ? "next" : "previous"} segment`);
  }

  /** @param {number} seconds */
  seek(seconds) {
    const to = this.clamp(seconds);
    const { transport } = this;
    const goesOn = transport.active && to < this.duration;
    transport.stop();
    transport.position = to;
    this.report(true);
    if (to < this.view[0] || to > this.view[1]) this.show(to, to);
    if (goesOn) transport.play(to, this.duration, this.model.get("loop"), 0);
    else this.paint();
  }

  /** Applies a change of the loop or of its selection during playback. */
  replay() {
    if (this.transport.active) this.playOn();
  }

  // -- display

  /** Moves the view so that an interval is visible. @param {number} from @param {number} to */
  show(from, to) {
    const [start, end] = this.view;
    if (from >= start && to <= end) return;
    const span = Math.max(end - start, Math.min((to - from) * 1.1, this.duration));
    this.look(from - span * 0.1, from + span * 0.9);
  }

  /** @param {number} start @param {number} end */
  look(start, end) {
    const span = Math.min(Math.max(end - start, Math.min(SHORTEST_VIEW_S, this.duration)), this.duration);
    const first = Math.min(Math.max(start, 0), this.duration - span);
    this.put({ view: [first, first + span] });
  }

  /** @param {number} share Of the part before the view, 0 to 1. */
  scrollTo(share) {
    const [start, end] = this.view;
    const first = share * (this.duration - (end - start));
    this.look(first, first + end - start);
  }

  /** @param {number} factor @param {number} [around] Fixed point in seconds. */
  zoom(factor, around) {
    const [start, end] = this.view;
    const at = this.transport.now();
    const range = this.selection;
    const middle = range ? (range[0] + range[1]) / 2 : (start + end) / 2;
    const center = around ?? (!range && at >= start && at <= end ? at : middle);
    const share = Math.min(Math.max((center - start) / Math.max(end - start, 1e-9), 0), 1);
    const span = Math.min((end - start) * factor, this.duration);
    this.look(center - share * span, center + (1 - share) * span);
  }

  paint() {
    cancelAnimationFrame(this.frame);
    const { ui, model, transport, duration } = this;
    const position = transport.now();
    const [start, end] = this.view;
    if (transport.playing && !this.gestures.dragging && end - start < duration && (position > end || position < start)) this.show(position, position);
    drawScene(ui.canvas, {
      view: this.view, position, selection: this.selection, detail: this.detail,
      clips: model.get("clips"), active: model.get("active_clip"), layers: this.layers, tier: model.get("tier"),
      selected: model.get("selected"), spectrogram: model.get("spectrogram"), playing: transport.active,
    });
    this.detail.look(ui.canvas.clientWidth * (window.devicePixelRatio || 1));
    ui.time.textContent = `${clock(position)} / ${clock(duration)}`;
    ui.slider.setAttribute("aria-valuemax", duration.toFixed(2));
    ui.slider.setAttribute("aria-valuenow", position.toFixed(2));
    ui.slider.setAttribute("aria-valuetext", `${spoken(position)} of ${spoken(duration)}`);
    ui.toggle.textContent = transport.active ? "Pause" : "Play";
    ui.root.classList.toggle("sl-playing", transport.active);
    ui.root.classList.toggle("sl-waiting", transport.waiting);
    const inside = (/** @type {import("./draw.js").Segment} */ segment) => segment.start <= position && position < segment.end;
    this.list.follow(transport.active ? this.segments.findIndex(inside) : model.get("selected"));
    if (transport.active) {
      this.report(false);
      this.frame = requestAnimationFrame(() => this.paint());
    }
  }

  /** Updates the texts of the controls. */
  describe() {
    const { ui, model } = this;
    const clips = model.get("clips");
    const title = model.get("title");
    ui.title.textContent = title;
    ui.title.hidden = !title;
    ui.root.setAttribute("aria-label", title ? `${this.kind}: ${title}` : this.kind);
    fillClips(ui, clips, (clip) => this.put({ active_clip: clip }), (equal) => this.put({ equal_level: equal }));
    fillSpeeds(ui.speed, model.get("speed"));
    this.states();
  }

  states() {
    const { ui, model, selection } = this;
    const [start, end] = this.view;
    const span = end - start;
    const all = span >= this.duration - 1e-9;
    ui.part.disabled = !selection;
    ui.part.textContent = selection ? `Play ${clock(selection[0])} – ${clock(selection[1])}` : "Play selection";
    // As wide without a selection, so that the segments below it stay where they are at the first click.
    ui.part.style.minWidth = `${2 * clock(this.duration).length + 8}ch`;
    ui.loop.setAttribute("aria-pressed", String(model.get("loop")));
    ui.spectrogram.setAttribute("aria-pressed", String(model.get("spectrogram")));
    for (const [index, button] of ui.choice.querySelectorAll("button").entries()) {
      button.setAttribute("aria-pressed", String(index === model.get("active_clip")));
    }
    const box = ui.choice.querySelector("input");
    if (box) box.checked = model.get("equal_level");
    ui.facts.textContent = model.get("clips")[model.get("active_clip")]?.facts ?? "";
    ui.all.disabled = ui.zoomOut.disabled = all;
    ui.zoomIn.disabled = span <= SHORTEST_VIEW_S * 1.001;
    ui.scroll.hidden = all;
    if (!all) {
      ui.scroll.value = String(start / (this.duration - span));
      ui.scroll.setAttribute("aria-valuetext", `${spoken(start)} to ${spoken(end)}`);
    }
    this.paint();
  }

  /** Lists the segments of the chosen tier. @param {boolean} [roves] Whether one of them alone is in the tab order. */
  listSegments(roves = false) {
    const tier = this.model.get("tier");
    this.ui.canvas.lang = this.layers.find((layer) => layer.lang)?.lang ?? "";
    fillTiers(this.ui, this.layers, tier);
    this.ui.list.classList.toggle("sl-words", Boolean(this.layers[tier]?.words));
    this.list.fill(this.segments, this.layers[tier]?.lang ?? "", roves);
    this.paint();
  }

  // -- events

  listen() {
    // Load the sound before the click.
    const near = () => this.transport.pieces.ready(this.transport.now(), this.transport.now() + 0.1, true);
    for (const name of ["pointerenter", "focusin"]) this.root.addEventListener(name, near);
    this.hear(this.listeners());
    const paint = () => this.paint();
    this.watchSize(this.ui.canvas, paint);
    const themed = new MutationObserver(paint);
    themed.observe(document.body, { attributes: true });
    this.atEnd(() => themed.disconnect());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint, this.off);
  }

  /** Listeners for messages of the kernel and for changes of the model. @returns {Record<string, (...values: any[]) => void>} */
  listeners() {
    const { model } = this;
    const states = () => this.states();
    return {
      "change:title": () => this.describe(),
      "change:clips": () => this.describe(),
      "change:peaks": () => (this.detail.reset(), this.paint()),
      "change:layers": () => this.listSegments(),
      "change:tier": () => this.listSegments(),
      "change:selected": () => this.paint(),
      "change:selection": () => {
        if (model.get("loop") && !this.gestures.dragging) this.replay();
        states();
      },
      "change:view": states,
      "change:spectrogram": states,
      "change:loop": () => (this.replay(), states()),
      "change:speed": () => {
        fillSpeeds(this.ui.speed, model.get("speed"));
        const { transport } = this;
        if (transport.active) transport.play(transport.now(), transport.until, transport.loop, transport.from);
      },
      "change:active_clip": () => (this.transport.mix(), this.detail.forgetPicture(), states()),
      "change:equal_level": () => (this.transport.mix(), states()),
      "change:current_time": () => model.get("current_time") !== this.reported && this.seek(model.get("current_time")),
      "msg:custom": (message) => {
        if (message.type === "play") this.start(message.start ?? this.transport.now(), message.end ?? this.duration);
        else if (message.type === "pause") this.transport.stop();
      },
    };
  }
}
