// A player of streamed speech: each piece is put behind the one before it, on the clock of the sound.
//
// Players of one page share an output. One that is made while another still sounds begins at that one's end.

import { make, penOf, shortClock, View } from "../../_shared/dom.js";
import { ask, post } from "../../_shared/kernel.js";
import { liveWidget } from "../../_shared/mount.js";
import { Line, outputAt } from "../../_shared/sound.js";

const LEAD_S = 0.03;
const WAIT_MS = 1_500;
const LEAST_S = 4;
const BINS = 240;

/** @typedef {{until: number | null, view: object}} Turn */
/** The turns of all players of the page. @returns {{turns: Map<string, Turn>, waiting: Set<() => void>}} */
const queue = () => (/** @type {any} */ (window).speechlabQueue ??= { turns: new Map(), waiting: new Set() });

class StreamView extends View {
  samples = new Float32Array(0);
  /** Frames that came, and frames that are on the clock. */
  frames = 0;
  sent = 0;
  stopped = false;
  made = performance.now();
  line = new Line(outputAt());

  /** @param {any} model @param {Element} el */
  constructor(model, el) {
    super(model, el, "speechlab-stream");
    const { turns, waiting } = queue();
    this.id = model.get("_place");
    // A second place of the same player, and a page that is loaded again, are silent until Play is pressed.
    this.silent = turns.has(this.id) || (this.ended && model.get("_heard"));
    if (!this.silent) turns.set(this.id, { until: null, view: this });
    make(this.root, "strong", "sl-title", model.get("title"), { dir: "auto" });
    this.act = make(this.root, "button", "sl-act", "Stop", { "data-sl-keys": "", click: () => this.press() });
    this.canvas = make(this.root, "canvas");
    this.time = make(this.root, "span", "sl-time");
    this.facts = make(this.root, "div", "sl-facts", { role: "status" });
    this.hear({
      "change:_sound": () => this.take(model.get("_sound"), 0),
      "change:state": () => (this.place(), this.paint()),
      "change:facts": () => this.paint(),
      /** @param {any} message @param {DataView[]} buffers */
      "msg:custom": (message, buffers) => {
        if (message.type === "sound") this.take(buffers[0], message.start);
        else if (message.type === "stop") this.stop();
      },
    });
    this.turn = () => this.place();
    waiting.add(this.turn);
    this.atEnd(() => {
      waiting.delete(this.turn);
      this.line.stop();
      this.pass(0);
    });
    this.watchSize(this.root, () => this.paint());
    this.take(model.get("_sound"), 0);
    // Pieces that came before this view.
    if (this.ended) this.askMissing();
    this.paint();
  }

  get ended() {
    return !["waiting", "speaking"].includes(this.model.get("state"));
  }

  get playing() {
    return this.line.spans.length > 0 && this.line.context.currentTime < this.line.until;
  }

  /** @param {DataView | undefined} view @param {number} start Frames before it. */
  take(view, start) {
    if (!view?.byteLength) return;
    if (start > this.frames) {
      this.askMissing();
      return;
    }
    const skip = this.frames - start;
    const more = view.byteLength / 2 - skip;
    if (more <= 0) return;
    if (this.frames + more > this.samples.length) {
      const grown = new Float32Array(2 * (this.frames + more));
      grown.set(this.samples);
      this.samples = grown;
    }
    for (let frame = 0; frame < more; frame += 1) this.samples[this.frames + frame] = view.getInt16(2 * (skip + frame), true) / 32_768;
    this.frames += more;
    this.place();
    this.paint();
  }

  /** Asks for the pieces that came elsewhere, or before this view. */
  askMissing() {
    const late = () => {}; // what comes next asks again
    ask(this.model, { type: "missing", start: this.frames }).then(({ data, start }) => this.take(new DataView(data.buffer), start), late);
  }

  /** Puts what came on the clock, once it is this player's turn. */
  place() {
    const { line, model } = this;
    const { turns } = queue();
    if (this.silent || this.stopped) return;
    if (!line.spans.length) {
      const after = model.get("_after");
      const before = turns.get(after);
      if (before?.until === null) return;
      if (after && !before && performance.now() - this.made < WAIT_MS) {
        setTimeout(this.turn, WAIT_MS);
        return;
      }
      line.until = before?.until ?? 0;
    }
    if (this.sent < this.frames) this.schedule(this.sent, this.frames);
    if (this.sent < this.frames && !model.get("_heard")) this.put({ _heard: true });
    this.sent = this.frames;
    if (this.ended && this.sent >= model.get("frames")) this.pass(line.until);
    if (line.context.state === "suspended") void line.context.resume().then(() => this.paint());
  }

  /** @param {number} from @param {number} to Frames. */
  schedule(from, to) {
    const { line } = this;
    const rate = this.model.get("rate");
    const buffer = line.context.createBuffer(1, to - from, rate);
    buffer.copyToChannel(this.samples.subarray(from, to), 0);
    const at = Math.max(line.until, line.context.currentTime + LEAD_S);
    line.sound(buffer, at);
    line.note(at, from / rate, to / rate);
  }

  /** Lets the next player begin. @param {number} until */
  pass(until) {
    const { turns, waiting } = queue();
    const turn = turns.get(this.id);
    if (!turn || turn.view !== this || turn.until !== null) return;
    turn.until = until;
    for (const begin of [...waiting]) begin();
  }

  press() {
    if (!this.ended) {
      post(this.model, { type: "stop" });
      this.stop();
    } else if (this.playing) this.line.stop();
    else {
      this.line.stop();
      void this.line.context.resume();
      if (this.frames) this.schedule(0, this.frames);
    }
    this.paint();
  }

  stop() {
    this.stopped = true;
    this.line.stop();
    this.pass(0);
    this.paint();
  }

  /** Seconds of the sound that were played. */
  get played() {
    const [first] = this.line.spans;
    return first && first.at <= this.line.context.currentTime ? this.line.position : 0;
  }

  paint() {
    cancelAnimationFrame(this.frame);
    // Once for the whole picture: the sound may end while it is painted, which the next one shows.
    const { model, canvas, playing, ended } = this;
    const rate = model.get("rate") || 1;
    const seconds = this.frames / rate;
    const state = model.get("state");
    const words = ended ? (playing ? "Pause" : "Play") : "Stop";
    if (this.act.textContent !== words) this.act.textContent = words;
    this.act.disabled = ended && !this.frames;
    this.root.setAttribute("aria-label", `Speech: ${model.get("title") || state}`);
    this.root.classList.toggle("sl-failed", state === "failed");
    const blocked = this.line.context.state === "suspended" && !ended && this.frames ? "the browser wants a click before it plays" : "";
    const facts = [state === "ended" ? "" : state, model.get("facts"), blocked].filter(Boolean).join(" · ");
    if (this.facts.textContent !== facts) this.facts.textContent = facts;
    this.time.textContent = `${shortClock(this.played)} / ${shortClock(seconds)}${ended ? "" : "+"}`;
    this.draw(canvas, seconds, rate);
    if (playing || !ended) this.frame = requestAnimationFrame(() => this.paint());
  }

  /** Draws the waveform, which grows; the part that was played in another color. @param {HTMLCanvasElement} canvas @param {number} seconds @param {number} rate */
  draw(canvas, seconds, rate) {
    const { clientWidth: width, clientHeight: height } = canvas;
    const pen = penOf(canvas);
    if (!pen) return;
    const style = getComputedStyle(this.root);
    const length = this.ended ? seconds : Math.max(seconds, LEAST_S);
    const step = Math.max(Math.floor((length * rate) / BINS), 1);
    for (let bin = 0; bin * step < this.frames; bin += 1) {
      let most = 0;
      for (let frame = bin * step; frame < Math.min((bin + 1) * step, this.frames); frame += 4) most = Math.max(most, Math.abs(this.samples[frame]));
      const high = Math.max(most * height, 1);
      pen.fillStyle = style.getPropertyValue((bin * step) / rate < this.played ? "--sl-done" : "--sl-wave");
      pen.fillRect((bin * width) / BINS, (height - high) / 2, Math.max(width / BINS - 1, 1), high);
    }
  }
}

export default liveWidget((model, el) => new StreamView(model, el));
