// The recorder: one button that records and stops, a level, a choice of microphones, and the takes.

import { clock, fillOptions, make, spoken, View } from "../../_shared/dom.js";
import { liveWidget } from "../../_shared/mount.js";
import { Meter } from "./meter.js";
import { forbidden, Microphone, microphones, refusal } from "./microphone.js";
import { Sending } from "./sending.js";
import { Takes } from "./takes.js";

/** @param {HTMLElement} root */
function buildRecorder(root) {
  const title = make(make(root, "div", "sl-head"), "strong", "", { dir: "auto" });
  const bar = make(root, "div", "sl-bar");
  const record = make(bar, "button", "sl-record");
  make(record, "span", "sl-dot", { "aria-hidden": true });
  const word = make(record, "span", "", "Record");
  const again = make(bar, "button", "sl-small", "Play the last");
  const label = make(bar, "label", "sl-device");
  make(label, "span", "", "Microphone");
  const device = make(label, "select");
  const time = make(bar, "span", "sl-time");
  const meter = new Meter(make(root, "div", "sl-levels"));
  const live = make(root, "div", "sl-said", { role: "status" });
  const list = make(root, "ol", "sl-takes", { "aria-label": "Takes" });
  return { title, record, word, again, device, time, meter, live, list };
}

class RecorderView extends View {
  /** @type {Microphone | null} */ microphone = null;
  /** @type {Sending | null} */ sending = null;
  warned = false;
  saying = "";

  /** @param {any} model @param {Element} el */
  constructor(model, el) {
    super(model, el, "speechlab-recorder");
    this.ui = buildRecorder(this.root);
    this.takes = new Takes(model, this.ui.list, (words, failed) => this.say(words, failed));
    const { signal } = this.off;
    this.ui.record.addEventListener("click", () => (this.microphone ? this.stop() : this.start()), { signal });
    this.ui.again.addEventListener("click", () => this.takes.playLast(), { signal });
    navigator.mediaDevices?.addEventListener?.("devicechange", () => this.listDevices(), { signal });
    this.hear({
      "change:title": () => this.describe(),
      "change:max_s": () => this.describe(),
      "change:takes": () => (this.takes.fill(), this.describe()),
      "change:_outlines": () => this.takes.draw(),
    });
    this.watchSize(this.root, () => (this.takes.draw(), this.ui.meter.show()));
    this.atEnd(() => {
      this.sending?.leave();
      if (this.microphone) this.stop();
      this.takes.stop();
    });
    this.describe();
    this.listDevices();
    const why = forbidden();
    this.say(why || "The microphone is on only while you record", Boolean(why));
    this.ui.record.disabled = Boolean(why);
  }

  /** @param {string} words @param {boolean} [failed] */
  say(words, failed = false) {
    // Setting the same text again would have it read aloud again at each chunk.
    if (this.ui.live.textContent !== words) this.ui.live.textContent = words;
    this.ui.live.classList.toggle("sl-failed", failed);
  }

  describe() {
    const { ui, model } = this;
    const title = model.get("title");
    ui.title.textContent = title;
    this.root.setAttribute("aria-label", title ? `Recorder: ${title}` : "Recorder");
    const on = this.microphone !== null;
    ui.word.textContent = on ? "Stop" : model.get("takes").length ? "Record again" : "Record";
    this.root.classList.toggle("sl-recording", on);
    ui.again.disabled = on || !model.get("takes").length;
    ui.device.disabled = on;
    this.tick();
  }

  tick() {
    const { ui, sending, model } = this;
    const seconds = sending && this.microphone ? sending.frames / sending.rate : 0;
    ui.time.textContent = `${clock(seconds)} / ${clock(model.get("max_s"))}`;
  }

  /** Lists the microphones. Their labels are known once the user has granted access. */
  async listDevices() {
    const { device } = this.ui;
    const chosen = device.value;
    const devices = await microphones();
    const choices = devices.map((device) => /** @type {[string, string]} */ ([device.deviceId, device.label || "Microphone"]));
    fillOptions(device, [["", "Default"], ...choices], choices.some(([id]) => id === chosen) ? chosen : "");
  }

  async start() {
    const { model, ui } = this;
    this.takes.stop();
    this.warned = false;
    const microphone = new Microphone((block) => this.block(block), () => this.stop("Microphone disconnected; the recording so far is kept"));
    this.microphone = microphone;
    this.sending = null;
    ui.meter.reset();
    this.describe();
    this.say("Allow the microphone if the browser asks");
    try {
      const rate = await microphone.open(ui.device.value, model.get("processing"));
      this.sending = new Sending(model, rate, (late) => late ? this.say(late, true) : this.say(this.saying, this.warned));
    } catch (error) {
      if (this.microphone === microphone) {
        this.microphone = null;
        this.say(refusal(error), true);
        this.describe();
      }
      return;
    }
    this.put({ recording: true });
    this.saying = "Recording";
    this.say(this.saying);
    this.listDevices();
    this.draw();
  }

  /** @param {Float32Array} block */
  block(block) {
    const { sending, ui } = this;
    if (!sending || sending.ended) return;
    const room = Math.round(this.model.get("max_s") * sending.rate) - sending.frames;
    const samples = block.subarray(0, Math.max(room, 0));
    ui.meter.add(samples);
    sending.add(samples);
    if (ui.meter.clipped && !this.warned) {
      this.warned = true;
      this.saying = "Recording. Too loud: the sound is clipped. Lower the input's level, or go further away";
      this.say(this.saying, true);
    }
    if (block.length >= room) this.stop(`Stopped: a take has ${spoken(this.model.get("max_s"))} at most`);
  }

  draw() {
    this.ui.meter.show();
    this.tick();
    if (this.microphone) this.nextFrame(() => this.draw());
  }

  /** @param {string} [why] */
  async stop(why) {
    const { microphone, model } = this;
    if (!microphone || microphone.ending) return;
    if (!this.sending) {
      // Not open yet: a permission that is granted now comes too late.
      microphone.close();
      this.microphone = null;
      this.describe();
      this.say("Stopped before the microphone was on");
      return;
    }
    await microphone.finish();
    if (this.microphone !== microphone) return;
    const { sending } = this;
    this.microphone = null;
    this.warned = false;
    this.saying = why ?? `Stopped after ${spoken(sending.frames / sending.rate)}`;
    this.say(this.saying);
    if (sending.frames) sending.end(microphone.label ?? "");
    else {
      sending.dispose();
      this.say("No sound from the microphone; record again", true);
    }
    this.put({ recording: false });
    this.describe();
    this.ui.meter.rest();
  }
}

export default liveWidget((model, el) => new RecorderView(model, el));
