// The microphone: opened for a take, read in blocks and closed. Errors of the browser are explained in words.

const BLOCK_FRAMES = 2048;
const LAST_BLOCK_MS = 400;

/** Runs in the browser's audio thread. It is sent there as text and must not use anything of this module. @param {number} frames */
function collect(frames) {
  const scope = /** @type {any} */ (globalThis);
  class Collector extends scope.AudioWorkletProcessor {
    constructor() {
      super();
      this.block = new Float32Array(frames);
      this.filled = 0;
      this.ended = false;
      this.port.onmessage = () => {
        this.flush();
        this.port.postMessage(null);
        this.ended = true;
      };
    }

    flush() {
      const block = this.block.slice(0, this.filled);
      if (block.length) this.port.postMessage(block, [block.buffer]);
      this.filled = 0;
    }

    /** @param {Float32Array[][]} inputs */
    process(inputs) {
      const sound = inputs[0][0];
      for (let at = 0; !this.ended && sound && at < sound.length; ) {
        const piece = sound.subarray(at, at + this.block.length - this.filled);
        this.block.set(piece, this.filled);
        this.filled += piece.length;
        at += piece.length;
        if (this.filled === this.block.length) this.flush();
      }
      return !this.ended;
    }
  }
  scope.registerProcessor("speechlab-collector", Collector);
}

/**
 * Loads the code into the audio thread from a blob instead of a file. Notebooks load the modules of widgets in the same
 * way, under the same rule of the content security policy.
 * @param {AudioContext} context
 */
async function teach(context) {
  const source = `(${collect})(${BLOCK_FRAMES});`;
  const blob = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  try {
    await context.audioWorklet.addModule(blob);
  } catch {
    throw new Error("the page's policy lets no code into the audio thread (script-src without blob:)");
  } finally {
    URL.revokeObjectURL(blob);
  }
}

/** Why this page cannot record at all; empty if it can. */
export function forbidden() {
  if (!window.isSecureContext) {
    return "Browsers give the microphone only to pages over https, or from this machine (localhost, 127.0.0.1). " +
      "This page is neither: open the notebook by https, or through a tunnel at localhost.";
  }
  if (!navigator.mediaDevices?.getUserMedia) return "This browser gives pages no microphone. Open the notebook in another browser.";
  if (!window.AudioWorklet) return "This browser cannot record without loss (it has no AudioWorklet). Open the notebook in another browser.";
  const policy = /** @type {any} */ (document).featurePolicy;
  if (policy && !policy.allowsFeature("microphone")) {
    return "The program that shows this notebook keeps the microphone from it. Open the notebook in JupyterLab in a browser.";
  }
  return "";
}

/** Text for an error: what happened and what to do. @param {unknown} error */
export function refusal(error) {
  const name = error instanceof Error ? error.name : "";
  if (name === "NotAllowedError") {
    return "The browser refuses the microphone. Allow it for this page (next to the address, or in the browser's and the system's settings), then record again.";
  }
  if (name === "NotFoundError") return "There is no microphone. Connect one, then record again.";
  if (name === "OverconstrainedError") return "The chosen microphone is not there any more. Choose another one, then record again.";
  if (name === "NotReadableError" || name === "AbortError") {
    return "The microphone cannot be read; another program may be using it. Close that, then record again.";
  }
  return `The microphone cannot be used: ${error instanceof Error ? error.message : error}`;
}

/** The microphones that the browser lists by id. */
export async function microphones() {
  try {
    const all = (await navigator.mediaDevices?.enumerateDevices()) ?? [];
    return all.filter((device) => device.kind === "audioinput" && device.deviceId && device.deviceId !== "default");
  } catch {
    return [];
  }
}

export class Microphone {
  /** @type {AudioContext} */ context;
  /** @type {MediaStream} */ stream;
  /** @type {AudioWorkletNode} */ node;

  /** @param {(block: Float32Array) => void} receive @param {() => void} lost Called when the device is gone. */
  constructor(receive, lost) {
    this.receive = receive;
    this.lost = lost;
    this.closed = false;
    this.ending = false;
    /** @type {() => void} */
    this.flushed = () => {};
  }

  /** @param {string} deviceId @param {boolean} processing */
  async open(deviceId, processing) {
    const constraints = { echoCancellation: processing, noiseSuppression: processing, autoGainControl: processing, channelCount: 1 };
    const device = deviceId ? { deviceId: { exact: deviceId } } : {};
    this.stream = await navigator.mediaDevices.getUserMedia({ audio: { ...constraints, ...device } });
    const [track] = this.stream.getAudioTracks();
    this.label = track.label;
    try {
      if (this.closed) throw new Error("it was closed while it opened");
      const source = this.connect(track.getSettings().sampleRate);
      await teach(this.context);
      // The browser mixes several channels to one.
      this.node = new AudioWorkletNode(this.context, "speechlab-collector", { channelCount: 1, channelCountMode: "explicit" });
      this.node.port.onmessage = ({ data }) => (data ? this.receive(data) : this.flushed());
      source.connect(this.node);
      this.node.connect(this.context.destination); // silent, but some browsers do not run a node that is not connected
      track.addEventListener("ended", () => this.lost());
      if (this.context.state !== "running") await this.context.resume();
    } catch (error) {
      this.close();
      throw error;
    }
    return this.context.sampleRate;
  }

  /** Connects at the microphone's sample rate if the browser knows and supports it, which avoids resampling. @param {number} [sampleRate] */
  connect(sampleRate) {
    try {
      this.context = new AudioContext({ sampleRate });
      return this.context.createMediaStreamSource(this.stream);
    } catch {
      this.context?.close();
      this.context = new AudioContext();
      return this.context.createMediaStreamSource(this.stream);
    }
  }

  /** Waits for the last block, then closes the microphone. */
  async finish() {
    this.ending = true;
    if (this.node) {
      await new Promise((resolve) => {
        this.flushed = () => resolve(undefined);
        this.node.port.postMessage("end");
        setTimeout(resolve, LAST_BLOCK_MS);
      });
    }
    this.close();
  }

  close() {
    this.closed = true;
    for (const track of this.stream?.getTracks() ?? []) track.stop();
    if (this.context && this.context.state !== "closed") this.context.close();
  }
}
