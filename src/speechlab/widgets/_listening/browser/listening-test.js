// A listening test: a welcome page, practice questions, questions that count, and a last page.
//
// The model has the questions, under names that do not give the systems away, and stores the answers. The order is
// drawn here for each listener.

import { fillOptions, make, View } from "../../_shared/dom.js";
import { ask, post } from "../../_shared/kernel.js";
import { liveWidget } from "../../_shared/mount.js";
import { Hearing } from "./hearing.js";
import { questionsFor } from "./order.js";
import { buildQuestion, soundPart } from "./questions.js";
import { joined, lacking } from "./session.js";

const MAX_NAME = 100;

/** @typedef {import("./session.js").Session} Session */
/** @typedef {{name: string, text: string, choices: string[]}} Asked A question about the listener. */

class TestView extends View {
  /** @type {import("./questions.js").Question | null} */ question = null;
  /** The question on the page. @type {import("./order.js").Trial | null} */ trial = null;
  /** @type {import("./order.js").Trial[]} */ questions = [];
  /** @type {Session | null} */ session = null;
  started = 0;
  /** Whether the same listener has answered in another window. */
  doubled = false;
  /** Whether the listener has passed the page between practice and test. */
  practiced = false;
  /** Enables the button for the next question. */
  next = () => {};

  /** @param {any} model @param {Element} el */
  constructor(model, el) {
    super(model, el, "speechlab-listening");
    this.words = model.get("words");
    this.design = model.get("design");
    this.root.setAttribute("aria-label", model.get("title"));
    this.root.lang = this.words.lang;
    this.stage = make(this.root, "div", "sl-stage");
    this.warning = make(this.root, "p", "sl-warning", this.note, { role: "alert" });
    this.hearing = new Hearing(model, this.words.silent, () => this.paint());
    this.atEnd(() => this.hearing.stop());
    this.hear({ "change:session": () => this.heed(model.get("session")) });
    this.root.addEventListener("keydown", (event) => this.key(event));
    const held = model.get("session");
    if (held?.listener) this.begin(held, false);
    else this.welcome(false);
  }

  /** Warning about the browser's storage or a second window. */
  get note() {
    return [this.model.get("note"), this.doubled && this.words.elsewhere].filter(Boolean).join(" ");
  }

  /** Words in the language of the page, with values in their places. @param {string} name @param {Record<string, any>} [values] */
  say(name, values = {}) {
    return this.words[name].replace(/\{(\w+)\}/g, (/** @type {string} */ _, /** @type {string} */ place) => String(values[place]));
  }

  /** Asks the kernel to keep something, and says whether it did. @param {Record<string, any>} message */
  async asked(message) {
    try {
      const answer = await ask(this.model, message);
      this.warning.textContent = this.note;
      return answer;
    } catch {
      this.warning.textContent = this.words.unkept;
      return null;
    }
  }

  /** Continues a listener's session. @param {Session} held @param {boolean} focus */
  begin(held, focus) {
    this.doubled = false;
    this.session = { ...held, answers: [...held.answers] };
    this.questions = questionsFor(this.model.get("trials"), this.model.get("order_seed"), held, this.design);
    this.practiced = held.answers.some((answer) => this.counted.has(answer.trial));
    this.go(focus);
  }

  /** Ids of the questions that count. */
  get counted() {
    return new Set(this.questions.filter((trial) => !trial.practice).map((trial) => trial.id));
  }

  /** Merges answers that the same listener gave in another window. @param {Session | Record<string, never>} held */
  heed(held) {
    const { session } = this;
    if (!session || held?.listener !== session.listener || !lacking(/** @type {Session} */ (held), session)) return;
    this.session = joined(session, /** @type {Session} */ (held));
    this.doubled = true;
    this.warning.textContent = this.note;
    const open = this.trial && !this.session.answers.some((answer) => answer.trial === this.trial?.id);
    if (!open) this.go(true);
  }

  /** Shows the next page or question. @param {boolean} focus */
  go(focus) {
    const { session, design } = this;
    if (!session) return;
    const answered = new Set(session.answers.map((answer) => answer.trial));
    const trial = this.questions.find((question) => !answered.has(question.id));
    const open = (/** @type {Asked[]} */ questions) => questions.some(({ name }) => !(name in (session.about ?? {})));
    if (open(design.before)) this.inquire("before", design.before, focus);
    else if (!trial && open(design.after)) this.inquire("after", design.after, focus);
    else if (!trial) {
      if (!session.finished) this.keep();
      this.end(focus);
    } else if (!trial.practice && !this.practiced && this.questions[0].practice) this.between(focus);
    else this.showTrial(trial, focus);
  }

  /** Empties the page. @param {string} heading @param {boolean} focus */
  clear(heading, focus) {
    cancelAnimationFrame(this.frame);
    this.hearing.stop();
    this.question = this.trial = null;
    this.stage.replaceChildren();
    // The main heading of an exported page, but one of many in a notebook.
    const title = make(this.stage, this.model.get("exported") ? "h1" : "h2", "sl-heading", heading, { tabindex: -1 });
    if (!focus) return;
    title.focus({ preventScroll: true });
    this.stage.scrollIntoView({ block: "nearest" });
  }

  /** @param {string} text @param {() => void} click */
  mainButton(text, click) {
    return make(this.stage, "button", "sl-next", text, { click });
  }

  // -- pages

  /** @param {boolean} focus */
  welcome(focus) {
    const { words, design } = this;
    this.clear(this.model.get("title"), focus);
    for (const text of this.model.get("instructions")) make(this.stage, "p", "sl-text", text, { dir: "auto" });
    const [token] = this.model.get("trials")[0].sounds;
    this.example = soundPart(make(this.stage, "div", "sl-sounds"), token, words.volume);
    this.hearing.open([token]);
    this.example.button.addEventListener("click", () => this.hearing.play(token));
    const form = make(this.stage, "form", "sl-form");
    const label = make(form, "label", "sl-field");
    make(label, "span", "", words.name);
    const name = make(label, "input", "", { type: "text", required: "", maxlength: MAX_NAME, autocomplete: "off", spellcheck: false });
    make(label, "small", "sl-soft", words.returning);
    label.hidden = Boolean(design.listener);
    name.value = design.listener;
    make(form, "button", "sl-next", words.begin).type = "submit";
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const listener = name.value.trim().replace(/[\ud800-\udfff]/gu, "\ufffd");  // lone surrogates, which UTF-8 cannot encode
      const answer = listener && (await this.asked({ type: "begin", listener }));
      if (answer) this.begin(answer.session, true);
    });
  }

  /** Asks about the listener. @param {"before" | "after"} when @param {Asked[]} questions @param {boolean} focus */
  inquire(when, questions, focus) {
    this.clear(this.words[when], focus);
    const form = make(this.stage, "form", "sl-form");
    const fields = questions.map(({ text, choices }) => {
      const label = make(form, "label", "sl-field");
      make(label, "span", "", text, { dir: "auto" });
      if (!choices.length) return make(label, "input", "", { type: "text", required: "", maxlength: 500, dir: "auto" });
      const field = make(label, "select", "", { required: "" });
      fillOptions(field, ["", ...choices].map((choice) => [choice, choice || this.words.choose]), "");
      return field;
    });
    make(form, "button", "sl-next", this.words.next).type = "submit";
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const { session } = this;
      if (!session) return;
      const about = Object.fromEntries(questions.map(({ name }, index) => [name, fields[index].value.trim()]));
      session.about = { ...session.about, ...about };
      this.keep();
      this.go(true);
    });
    this.showListener();
  }

  /** @param {boolean} focus */
  between(focus) {
    this.clear(this.words.practiced, focus);
    make(this.stage, "p", "sl-text", this.say("follow", { count: this.counted.size }));
    this.mainButton(this.words.start, () => {
      this.practiced = true;
      this.go(true);
    });
    this.showListener();
  }

  /** Shows the listener's name, in case somebody else takes over the computer. */
  showListener() {
    const { session, words, counted } = this;
    if (!session) return;
    const line = make(this.stage, "p", "sl-who", words.listener);
    make(line, "bdi", "", session.listener);
    if (!this.design.listener) make(line, "button", "sl-small", words.else, { click: () => this.leave() });
    if (!this.model.get("exported") || !session.answers.some((answer) => counted.has(answer.trial))) return;
    make(line, "button", "sl-small", words.save_some, { click: () => this.fileLink(line).click() });
  }

  /** Lets the next listener begin. The answers of this one are kept. */
  leave() {
    post(this.model, { type: "next" });
    this.session = null;
    this.doubled = false;
    this.warning.textContent = this.note;
    this.welcome(true);
  }

  /** @param {import("./order.js").Trial} trial @param {boolean} focus */
  showTrial(trial, focus) {
    const { words } = this;
    const same = this.questions.filter((question) => question.practice === trial.practice);
    const at = same.indexOf(trial) + 1;
    this.clear(this.say(trial.practice ? "practice" : "question", { at, count: same.length }), focus);
    if (trial.practice) make(this.stage, "p", "sl-soft", words.uncounted);
    else make(this.stage, "progress", "sl-progress", { max: same.length, value: at - 1, "aria-label": words.progress });
    if (trial.text) make(this.stage, "p", "sl-said", trial.text, { dir: "auto", lang: trial.lang });
    const body = make(this.stage, "div", "sl-body", { input: () => this.paint(), change: () => this.paint() });
    const question = buildQuestion(body, this.model, trial, words);
    this.hearing.open(question.sounds.map((sound) => sound.token));
    for (const { token, button } of question.sounds) button.addEventListener("click", () => this.toggle(token));
    const hint = make(this.stage, "p", "sl-soft sl-hint");
    const next = this.mainButton(words.next, () => this.answer(trial, question));
    this.showListener();
    const scales = this.model.get("method") === "mushra";
    const hear = scales ? "hear_scales" : !question.whole ? "hear_all" : question.sounds.length > 1 ? "hear_many" : "hear_one";
    this.next = () => {
      const unplayed = question.sounds.some((sound) => !this.hearing.isPlayed(sound.token, question.whole));
      const open = question.answer() === null;
      next.disabled = unplayed || open;
      hint.textContent = unplayed ? words[hear] : open ? words[scales ? "now_rate" : "now_choose"] : "";
    };
    this.trial = trial;
    this.question = question;
    this.started = performance.now();
    this.paint();
  }

  /** @param {boolean} focus */
  end(focus) {
    const { session, words, design } = this;
    if (!session) return;
    this.clear(words.thanks, focus);
    const code = make(this.stage, "p", "sl-text", design.code && this.say("code", { code: design.code }));
    code.hidden = !design.code;
    if (this.model.get("exported")) this.handOver(code);
    else make(this.stage, "p", "sl-text", words.kept);
    if (!design.listener) this.mainButton(words.next_listener, () => this.leave()).classList.add("sl-quiet");
  }

  /** Adds a hidden link that downloads the answers as a file. @param {Element} parent */
  fileLink(parent) {
    const name = this.session?.listener.replace(/[^\p{L}\p{N}_-]+/gu, "-").slice(0, 40);
    const href = URL.createObjectURL(new Blob([this.fileText()], { type: "application/json" }));
    return make(parent, "a", "", "", { href, download: `answers-${name}.json`, hidden: "" });
  }

  fileText() {
    const head = { format: "speechlab listening answers 1", test: this.model.get("test") };
    return JSON.stringify({ ...head, ...this.session }, null, 1);
  }

  /** Offers the file of answers, to be sent to the author of the test. A code of completion comes with it. @param {HTMLElement} code */
  handOver(code) {
    const { words } = this;
    const link = this.fileLink(this.stage);
    make(this.stage, "p", "sl-text", words.hand_over).after(link);
    Object.assign(link, { hidden: false, className: "sl-next sl-download", textContent: words.save });
    const copy = make(this.stage, "details", "sl-copy");
    make(copy, "summary", "", words.copy);
    make(copy, "textarea", "", { readonly: "", rows: 6, "aria-label": words.answers }).value = this.fileText();
    if (code.hidden) return;
    code.hidden = true;
    for (const button of [link, copy]) button.addEventListener("click", () => (code.hidden = false));
  }

  // -- answers

  /** @param {import("./order.js").Trial} trial @param {import("./questions.js").Question} question */
  answer(trial, question) {
    const answer = question.answer();
    const { session } = this;
    if (!answer || !session) return;
    this.hearing.stop();
    const seconds = (performance.now() - this.started) / 1000;
    const practice = this.questions.length - this.counted.size;
    const order = this.questions.indexOf(trial) + 1;
    session.answers.push({
      trial: trial.id, order: trial.practice ? order : order - practice, sounds: trial.sounds,
      ...answer, time_s: Math.round(seconds * 1000) / 1000, plays: { ...this.hearing.plays },
    });
    this.keep();
    this.go(true);
  }

  keep() {
    const { session } = this;
    if (!session) return;
    const answered = new Set(session.answers.map((answer) => answer.trial));
    const all = this.questions.every((question) => answered.has(question.id));
    if (all && this.design.after.every((/** @type {Asked} */ { name }) => name in (session.about ?? {}))) {
      session.finished ??= new Date().toISOString();
    }
    void this.asked({ type: "keep", session: { ...session, answers: [...session.answers] } });
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
    hearing.play(token, question && !question.whole && hearing.playing ? hearing.line.position : 0);
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
      button.classList.toggle("sl-heard", hearing.isPlayed(token, question.whole));
      const seconds = hearing.duration(token);
      const share = playing && hearing.playing && seconds ? Math.min(hearing.line.position / seconds, 1) : 0;
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
}

export default liveWidget((model, el) => new TestView(model, el));
