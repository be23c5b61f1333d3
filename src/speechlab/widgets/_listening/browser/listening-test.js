// A listening test: a welcome page, practice questions, questions that count, and a last page.
//
// The model has the questions, under names that do not give the systems away, and stores the answers. The order is
// drawn here for each listener.

import { make, makeRoot } from "../../_shared/dom.js";
import { PATIENCE_MS, tell } from "../../_shared/kernel.js";
import { liveWidget } from "../../_shared/mount.js";
import { Hearing } from "./hearing.js";
import { questionsFor } from "./order.js";
import { buildQuestion } from "./questions.js";
import { joined, lacking } from "./session.js";

const MAX_NAME = 100;
const UNKEPT = "The kernel does not answer: what you answer now is not kept. Run the cell again, and begin with the same name.";
const ELSEWHERE = "This test is answered in another window too. All answers are kept; please go on in one window only.";

/** @typedef {import("./session.js").Session} Session */

class TestView {
  /** @type {HTMLElement} */ stage;
  /** @type {HTMLElement} */ warning;
  /** @type {Session | null} */ session;

  /** @param {any} model @param {Element} el */
  constructor(model, el) {
    this.model = model;
    this.root = makeRoot(el, "speechlab-listening");
    this.root.setAttribute("aria-label", model.get("title"));
    this.stage = make(this.root, "div", "sl-stage");
    this.warning = make(this.root, "p", "sl-warning", this.note);
    this.warning.setAttribute("role", "alert");
    this.hearing = new Hearing(model, () => this.paint());
    /** @type {import("./questions.js").Question | null} */
    this.question = null;
    /** @type {import("./order.js").Trial[]} */
    this.questions = [];
    this.started = 0;
    this.frame = 0;
    this.waiting = 0;
    /** @type {() => void} */
    this.next = () => {};
    this.session = null;
    /** Id of this view, since a kernel sends every message to all windows. */
    this.view = Math.random().toString(36).slice(2);
    /** Whether the same listener has answered in another window. */
    this.doubled = false;
    /** Whether the listener has passed the page between practice and test. */
    this.practised = false;
    this.listeners = {
      "change:session": () => this.heed(this.model.get("session")),
      /** @param {any} message */
      "msg:custom": (message) => {
        if (message.view !== this.view) return;
        if (message.type === "kept") this.kept();
        else if (message.type === "begun") this.begin(message.session, true);
      },
    };
    for (const [name, listener] of Object.entries(this.listeners)) model.on(name, listener);
    this.root.addEventListener("keydown", (event) => this.key(event));
    const held = model.get("session");
    if (held?.listener) this.begin(held, false);
    else this.welcome(false);
  }

  /** Warning about the browser's storage or a second window. */
  get note() {
    return [this.model.get("note"), this.doubled && ELSEWHERE].filter(Boolean).join(" ");
  }

  /** Continues a listener's session. @param {Session} held @param {boolean} focus */
  begin(held, focus) {
    this.kept();
    this.doubled = false;
    this.session = { ...held, answers: [...held.answers] };
    this.questions = questionsFor(this.model.get("trials"), this.model.get("order_seed"), held.listener);
    const asked = new Set(this.questions.filter((one) => !one.practice).map((one) => one.id));
    this.practised = held.answers.some((one) => asked.has(one.trial));
    this.go(focus);
  }

  /** Merges answers that the same listener gave in another window. @param {Session | Record<string, never>} held */
  heed(held) {
    const { session } = this;
    if (!session || held?.listener !== session.listener || !lacking(/** @type {Session} */ (held), session)) return;
    this.session = joined(session, /** @type {Session} */ (held));
    this.doubled = true;
    this.warning.textContent = this.note;
    const open = this.trial && !this.session.answers.some((one) => one.trial === this.trial?.id);
    if (!open) this.go(true);
  }

  /** Shows the next page or question. @param {boolean} focus */
  go(focus) {
    const { session } = this;
    if (!session) return;
    const done = new Set(session.answers.map((one) => one.trial));
    const trial = this.questions.find((one) => !done.has(one.id));
    if (!trial) {
      if (!session.finished) this.keep();
      this.end(focus);
    } else if (!trial.practice && !this.practised && this.questions[0].practice) this.between(focus);
    else this.ask(trial, focus);
  }

  /** Empties the page. @param {string} heading @param {boolean} focus */
  clear(heading, focus) {
    cancelAnimationFrame(this.frame);
    this.hearing.stop();
    this.question = null;
    /** The question on the page. @type {import("./order.js").Trial | null} */
    this.trial = null;
    this.stage.replaceChildren();
    // The main heading of an exported page, but one of many in a notebook.
    const title = make(this.stage, this.model.get("exported") ? "h1" : "h2", "sl-heading", heading);
    title.tabIndex = -1;
    if (focus) {
      title.focus({ preventScroll: true });
      this.stage.scrollIntoView({ block: "nearest" });
    }
    return title;
  }

  /** @param {string} text @param {() => void} act */
  mainButton(text, act) {
    const button = make(this.stage, "button", "sl-next", text);
    button.addEventListener("click", act);
    return button;
  }

  // -- pages

  /** @param {boolean} focus */
  welcome(focus) {
    this.clear(this.model.get("title"), focus);
    for (const text of this.model.get("instructions")) make(this.stage, "p", "sl-text", text).dir = "auto";
    const trials = this.model.get("trials");
    const [example] = trials;
    const about = make(this.stage, "div", "sl-sounds");
    const button = make(about, "button", "sl-hear");
    make(button, "span", "sl-icon").setAttribute("aria-hidden", "true");
    make(button, "span", "sl-name", "Play a sound to set the volume");
    this.hearing.open([example.sounds[0]]);
    button.addEventListener("click", () => this.hearing.play(example.sounds[0]));
    const error = make(about, "span", "sl-error");
    error.setAttribute("role", "alert");
    this.example = { token: example.sounds[0], error };
    const form = make(this.stage, "form", "sl-form");
    const label = make(form, "label", "sl-field");
    make(label, "span", "", "Your name or number");
    const name = make(label, "input");
    Object.assign(name, { type: "text", required: true, maxLength: MAX_NAME, autocomplete: "off", spellcheck: false });
    make(form, "button", "sl-next", "Begin").type = "submit";
    make(form, "p", "sl-soft", "It goes into the file of answers. With the same name you go on where you stopped.");
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const listener = name.value.trim().replace(/[\ud800-\udfff]/gu, "\ufffd");  // lone surrogates, which UTF-8 cannot encode
      if (!listener) return;
      this.expect();
      if (!tell(this.model, { type: "begin", listener, view: this.view })) this.lost();
    });
  }

  /** @param {boolean} focus */
  between(focus) {
    const count = this.questions.filter((one) => !one.practice).length;
    this.clear("The practice is over", focus);
    make(this.stage, "p", "sl-text", `${count} questions follow, and their answers count. You may take breaks, and go on later.`);
    this.mainButton("Start the test", () => {
      this.practised = true;
      this.go(true);
    });
    this.showListener();
  }

  /** Shows the listener's name, in case somebody else takes over the computer. */
  showListener() {
    const { session } = this;
    if (!session) return;
    const line = make(this.stage, "p", "sl-who", "Listener: ");
    make(line, "bdi", "", session.listener);
    make(line, "button", "sl-small", "Someone else").addEventListener("click", () => this.leave());
    const counted = new Set(this.questions.filter((one) => !one.practice).map((one) => one.id));
    if (!this.model.get("exported") || !session.answers.some((one) => counted.has(one.trial))) return;
    make(line, "button", "sl-small", "Save the answers so far").addEventListener("click", () => this.fileLink(line).click());
  }

  /** Lets the next listener begin. The answers of this one are kept. */
  leave() {
    tell(this.model, { type: "next" });
    this.session = null;
    this.doubled = false;
    this.warning.textContent = this.note;
    this.welcome(true);
  }

  /** @param {import("./order.js").Trial} trial @param {boolean} focus */
  ask(trial, focus) {
    const { model } = this;
    const same = this.questions.filter((one) => one.practice === trial.practice);
    const at = same.indexOf(trial) + 1;
    const heading = trial.practice ? `Practice ${at} of ${same.length}` : `Question ${at} of ${same.length}`;
    this.clear(heading, focus);
    if (trial.practice) make(this.stage, "p", "sl-soft", "This answer does not count.");
    else {
      const progress = make(this.stage, "progress", "sl-progress");
      Object.assign(progress, { max: same.length, value: at - 1 });
      progress.setAttribute("aria-label", "Questions answered");
    }
    if (trial.text) {
      const text = make(this.stage, "p", "sl-said", trial.text);
      text.dir = "auto";
      text.lang = trial.lang;
    }
    const body = make(this.stage, "div", "sl-body");
    const question = buildQuestion(body, model.get("method"), trial, model.get("question"), model.get("no_preference"));
    this.hearing.open(question.sounds.map((one) => one.token));
    for (const { token, button } of question.sounds) button.addEventListener("click", () => this.toggle(token));
    body.addEventListener("input", () => this.paint());
    body.addEventListener("change", () => this.paint());
    const hint = make(this.stage, "p", "sl-soft sl-hint");
    const next = this.mainButton("Next", () => this.answer(trial, question));
    this.showListener();
    this.trial = trial;
    this.next = () => {
      const unheard = question.sounds.some((one) => !this.hearing.heard(one.token, question.whole));
      const open = question.answer() === null;
      next.disabled = unheard || open;
      const many = question.sounds.length > 1;
      const hear = question.whole ? `Hear ${many ? "the sounds" : "the sound"} to the end` : "Hear all sounds";
      const rate = model.get("method") === "mushra" ? "move every slider" : "choose";
      hint.textContent = unheard ? `${hear}, then ${rate}.` : open ? `Now ${rate}.` : "";
    };
    this.question = question;
    this.started = performance.now();
    this.paint();
  }

  /** @param {boolean} focus */
  end(focus) {
    const { session, model } = this;
    if (!session) return;
    this.clear("Thank you", focus);
    if (model.get("exported")) this.handOver();
    else {
      make(this.stage, "p", "sl-text", "All questions are answered, and the answers are in the notebook.");
    }
    this.mainButton("Next listener", () => this.leave()).classList.add("sl-quiet");
  }

  /** Adds a hidden link that downloads the answers as a file. @param {Element} parent */
  fileLink(parent) {
    const { session } = this;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([this.fileText()], { type: "application/json" }));
    link.download = `answers-${session?.listener.replace(/[^\p{L}\p{N}_-]+/gu, "-").slice(0, 40)}.json`;
    link.hidden = true;
    parent.append(link);
    return link;
  }

  fileText() {
    const head = { format: "speechlab listening answers 1", test: this.model.get("test") };
    return JSON.stringify({ ...head, ...this.session }, null, 1);
  }

  /** Offers the file of answers, to be sent to the author of the test. */
  handOver() {
    make(this.stage, "p", "sl-text", "All questions are answered. Save the file of answers, and send it to whoever gave you this page.");
    const link = this.fileLink(this.stage);
    link.hidden = false;
    link.className = "sl-next sl-download";
    link.textContent = "Save the answers";
    const copy = make(this.stage, "details", "sl-copy");
    make(copy, "summary", "", "Or copy them");
    const area = make(copy, "textarea");
    Object.assign(area, { readOnly: true, rows: 6, value: this.fileText() });
    area.setAttribute("aria-label", "Answers");
  }

  // -- answers

  /** @param {import("./order.js").Trial} trial @param {import("./questions.js").Question} question */
  answer(trial, question) {
    const found = question.answer();
    const { session } = this;
    if (!found || !session) return;
    this.hearing.stop();
    const seconds = (performance.now() - this.started) / 1000;
    const practice = this.questions.filter((one) => one.practice).length;
    const order = this.questions.indexOf(trial) + 1;
    session.answers.push({
      trial: trial.id, order: trial.practice ? order : order - practice, sounds: trial.sounds,
      ...found, time_s: Math.round(seconds * 1000) / 1000, plays: { ...this.hearing.plays },
    });
    this.keep();
    this.go(true);
  }

  keep() {
    const { session } = this;
    if (!session) return;
    const done = new Set(session.answers.map((one) => one.trial));
    if (this.questions.every((one) => done.has(one.id))) session.finished ??= new Date().toISOString();
    this.expect();
    const kept = { ...session, answers: [...session.answers] };
    if (!tell(this.model, { type: "keep", session: kept, view: this.view })) this.lost();
  }

  expect() {
    clearTimeout(this.waiting);
    this.waiting = window.setTimeout(() => this.lost(), PATIENCE_MS);
  }

  lost() {
    clearTimeout(this.waiting);
    this.warning.textContent = UNKEPT;
  }

  kept() {
    clearTimeout(this.waiting);
    this.warning.textContent = this.note;
  }

  // -- sounds and keys

  /** @param {string} token */
  toggle(token) {
    const { hearing, question } = this;
    if (hearing.playing && hearing.token === token) {
      hearing.stop();
      return;
    }
    // Sounds that are compared in detail continue at the position of the previous one.
    const from = question && !question.whole && hearing.playing ? hearing.position : 0;
    hearing.play(token, from);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { question, hearing } = this;
    const { target } = event;
    if (!question || event.ctrlKey || event.metaKey || event.altKey) return;
    const typed = target instanceof HTMLInputElement && target.type === "range";
    const control = target instanceof HTMLButtonElement || target instanceof HTMLInputElement;
    const number = Number(event.key);
    if (event.key === "p" || (event.key === " " && !control)) {
      this.toggle(hearing.token || question.sounds[0].token);
    } else if (event.key >= "0" && event.key <= "9" && !typed) {
      const method = this.model.get("method");
      if (method !== "mos") {
        // In MUSHRA, key 0 plays the reference, which comes first.
        const sound = question.sounds[method === "mushra" ? number : number - 1];
        if (sound) this.toggle(sound.token);
      } else {
        const option = this.stage.querySelector(`.sl-choices input[value="${number}"]`);
        if (option instanceof HTMLInputElement) option.click();
      }
    } else if (event.key === "Enter" && !(target instanceof HTMLButtonElement)) {
      const next = this.stage.querySelector(".sl-next");
      if (next instanceof HTMLButtonElement) next.click();
    } else return;
    event.preventDefault();
  }

  paint() {
    cancelAnimationFrame(this.frame);
    const { hearing, question } = this;
    if (this.example?.error.isConnected) this.example.error.textContent = hearing.errors.get(this.example.token) ?? "";
    if (!question) return;
    for (const { token, button, bar, error } of question.sounds) {
      const playing = hearing.token === token && (hearing.playing || hearing.wanted === token);
      button.classList.toggle("sl-playing", playing);
      button.setAttribute("aria-pressed", String(playing));
      button.classList.toggle("sl-heard", hearing.heard(token, question.whole));
      const seconds = hearing.duration(token);
      const share = playing && seconds ? Math.min(hearing.position / seconds, 1) : 0;
      bar.style.width = `${100 * share}%`;
      const words = hearing.errors.get(token) ?? "";
      if (error.textContent !== words) error.textContent = words;
    }
    if (hearing.playing) {
      hearing.listened();
      this.frame = requestAnimationFrame(() => this.paint());
    }
    this.next();
  }

  dispose() {
    for (const [name, listener] of Object.entries(this.listeners)) this.model.off(name, listener);
    clearTimeout(this.waiting);
    cancelAnimationFrame(this.frame);
    this.hearing.dispose();
  }
}

/** @param {{model: any, el: HTMLElement}} place */
function renderTest({ model, el }) {
  const view = new TestView(model, el);
  return () => view.dispose();
}

export default liveWidget(renderTest);
