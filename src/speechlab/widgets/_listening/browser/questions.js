// The controls of a question: buttons to play the sounds, and choices or scales to answer. All are native controls.

import { make } from "../../_shared/dom.js";

/** @typedef {import("./order.js").Trial} Trial */
/** @typedef {{token: string, button: HTMLButtonElement, bar: HTMLElement, error: HTMLElement}} SoundPart */
/**
 * @typedef {{
 *   sounds: SoundPart[],
 *   whole: boolean,
 *   answer: () => ({scores: Record<string, number>} | {choice: string} | null),
 * }} Question
 */

const LETTERS = "AB";

/**
 * A button that plays a sound and shows its progress.
 * @param {Element} parent
 * @param {string} token
 * @param {string} label
 * @returns {SoundPart}
 */
export function soundPart(parent, token, label) {
  const part = make(parent, "div", "sl-sound");
  const button = make(part, "button", "sl-hear");
  make(button, "span", "sl-icon", { "aria-hidden": true });
  make(button, "span", "sl-name", label);
  const bar = make(make(button, "span", "sl-track", { "aria-hidden": true }), "span", "sl-bar");
  return { token, button, bar, error: make(part, "span", "sl-error", { role: "alert" }) };
}

let groups = 0;

/**
 * A group of options, one of which can be selected.
 * @param {Element} parent
 * @param {string} legend
 * @param {[string, string][]} choices Values and labels.
 */
function choiceGroup(parent, legend, choices) {
  const group = make(parent, "fieldset", "sl-choices");
  make(group, "legend", "sl-question", legend);
  const name = `speechlab-choice-${(groups += 1)}`;
  for (const [value, text] of choices) {
    const label = make(group, "label", "sl-option");
    make(label, "input", "", { type: "radio", name, value });
    make(label, "span", "", text);
  }
  return () => /** @type {HTMLInputElement | null} */ (group.querySelector("input:checked"))?.value ?? null;
}

/** @typedef {{question: string, neither: boolean, words: any}} Asking */

/** @param {Element} root @param {Trial} trial @param {Asking} asking @returns {Question} */
function opinionQuestion(root, { sounds: [token] }, { question, words }) {
  const sounds = [soundPart(root, token, words.play)];
  const chosen = choiceGroup(root, question, words.opinions.map((/** @type {string} */ word, /** @type {number} */ at) => [String(5 - at), `${5 - at} ${word}`]));
  const answer = () => {
    const score = chosen();
    return score === null ? null : { scores: { [token]: Number(score) } };
  };
  return { sounds, whole: true, answer };
}

/** @param {Element} root @param {Trial} trial @param {Asking} asking @returns {Question} */
function pairQuestion(root, trial, { question, neither, words }) {
  const row = make(root, "div", "sl-sounds");
  const sounds = trial.sounds.map((token, at) => soundPart(row, token, `${words.sound} ${LETTERS[at]}`));
  if (trial.x) sounds.push(soundPart(row, trial.x, `${words.sound} X`));
  /** @type {[string, string][]} */
  const choices = trial.sounds.map((token, at) => [token, trial.x ? words.x_is.replace("{name}", LETTERS[at]) : LETTERS[at]]);
  if (neither && !trial.x) choices.push(["", words.no_preference]);
  const chosen = choiceGroup(root, question, choices);
  const answer = () => {
    const choice = chosen();
    return choice === null ? null : { choice };
  };
  return { sounds, whole: !trial.x, answer };
}

/** @param {Element} root @param {Trial} trial @param {Asking} asking @returns {Question} */
function scaleQuestion(root, trial, { question, words }) {
  make(root, "p", "sl-question", question);
  const sounds = [soundPart(root, trial.reference ?? "", words.reference)];
  sounds[0].button.classList.add("sl-reference");
  const scale = make(root, "div", "sl-scale", { "aria-hidden": true });
  for (const text of [...words.opinions].reverse()) make(scale, "span", "", text);
  /** @type {Map<string, HTMLInputElement>} */
  const ranges = new Map();
  for (const [at, token] of trial.sounds.entries()) {
    const row = make(root, "div", "sl-rated");
    const name = `${words.sound} ${at + 1}`;
    sounds.push(soundPart(row, token, name));
    const rate = () => {
      ranges.set(token, range);
      range.classList.remove("sl-unrated");
      output.textContent = range.value;
      const word = words.opinions[4 - Math.min(Math.floor(Number(range.value) / 20), 4)];
      range.setAttribute("aria-valuetext", `${range.value}, ${word}`);
    };
    const numbers = { type: "range", min: 0, max: 100, step: 1, value: 50 };
    const acts = { input: rate, change: rate, pointerup: rate };
    const range = make(row, "input", "sl-range sl-unrated", { ...numbers, ...acts, "aria-label": `${words.quality}: ${name}`, "aria-valuetext": words.unrated });
    const output = make(row, "output", "sl-score", "–");
  }
  const answer = () => {
    if (ranges.size < trial.sounds.length) return null;
    return { scores: Object.fromEntries([...ranges].map(([token, range]) => [token, Number(range.value)])) };
  };
  return { sounds, whole: false, answer };
}

/** @param {Element} root @param {any} model @param {Trial} trial @param {any} words @returns {Question} */
export function buildQuestion(root, model, trial, words) {
  const build = { mos: opinionQuestion, mushra: scaleQuestion }[model.get("method")] ?? pairQuestion;
  return build(root, trial, { question: model.get("question"), neither: model.get("no_preference"), words });
}
