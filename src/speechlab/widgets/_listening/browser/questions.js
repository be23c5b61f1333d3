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

const OPINIONS = [[5, "Excellent"], [4, "Good"], [3, "Fair"], [2, "Poor"], [1, "Bad"]];
const LETTERS = "AB";

/**
 * A button that plays a sound and shows its progress.
 * @param {Element} parent
 * @param {string} token
 * @param {string} label
 * @returns {SoundPart}
 */
function soundPart(parent, token, label) {
  const part = make(parent, "div", "sl-sound");
  const button = make(part, "button", "sl-hear");
  make(button, "span", "sl-icon").setAttribute("aria-hidden", "true");
  make(button, "span", "sl-name", label);
  const track = make(button, "span", "sl-track");
  track.setAttribute("aria-hidden", "true");
  const bar = make(track, "span", "sl-bar");
  const error = make(part, "span", "sl-error");
  error.setAttribute("role", "alert");
  return { token, button, bar, error };
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
    const input = make(label, "input");
    input.type = "radio";
    input.name = name;
    input.value = value;
    make(label, "span", "", text);
  }
  return () => /** @type {HTMLInputElement | null} */ (group.querySelector("input:checked"))?.value ?? null;
}

/** @param {Element} root @param {Trial} trial @param {string} question @returns {Question} */
function opinionQuestion(root, trial, question) {
  const sound = soundPart(root, trial.sounds[0], "Play");
  const chosen = choiceGroup(root, question, OPINIONS.map(([value, text]) => [String(value), `${value} ${text}`]));
  const answer = () => {
    const score = chosen();
    return score === null ? null : { scores: { [trial.sounds[0]]: Number(score) } };
  };
  return { sounds: [sound], whole: true, answer };
}

/** @param {Element} root @param {Trial} trial @param {string} question @param {boolean} neither @returns {Question} */
function pairQuestion(root, trial, question, neither) {
  const row = make(root, "div", "sl-sounds");
  const sounds = trial.sounds.map((token, at) => soundPart(row, token, `Sound ${LETTERS[at]}`));
  if (trial.x) sounds.push(soundPart(row, trial.x, "Sound X"));
  /** @type {[string, string][]} */
  const choices = trial.sounds.map((token, at) => [token, trial.x ? `X is ${LETTERS[at]}` : LETTERS[at]]);
  if (neither && !trial.x) choices.push(["", "No preference"]);
  const chosen = choiceGroup(root, question, choices);
  const answer = () => {
    const choice = chosen();
    return choice === null ? null : { choice };
  };
  return { sounds, whole: !trial.x, answer };
}

/** @param {Element} root @param {Trial} trial @param {string} question @returns {Question} */
function scaleQuestion(root, trial, question) {
  make(root, "p", "sl-question", question);
  const sounds = [soundPart(root, trial.reference ?? "", "Reference")];
  sounds[0].button.classList.add("sl-reference");
  const scale = make(root, "div", "sl-scale");
  scale.setAttribute("aria-hidden", "true");
  for (const [, text] of [...OPINIONS].reverse()) make(scale, "span", "", String(text));
  /** @type {Map<string, HTMLInputElement>} */
  const ranges = new Map();
  for (const [at, token] of trial.sounds.entries()) {
    const row = make(root, "div", "sl-rated");
    sounds.push(soundPart(row, token, `Sound ${at + 1}`));
    const range = make(row, "input", "sl-range sl-unrated");
    const shown = make(row, "output", "sl-score", "–");
    Object.assign(range, { type: "range", min: "0", max: "100", step: "1", value: "50" });
    range.setAttribute("aria-label", `Quality of sound ${at + 1}`);
    range.setAttribute("aria-valuetext", "not rated yet");
    const rate = () => {
      ranges.set(token, range);
      range.classList.remove("sl-unrated");
      shown.textContent = range.value;
      const [, word] = OPINIONS[4 - Math.min(Math.floor(Number(range.value) / 20), 4)];
      range.setAttribute("aria-valuetext", `${range.value}, ${word}`);
    };
    for (const happened of ["input", "change", "pointerup"]) range.addEventListener(happened, rate);
  }
  const answer = () => {
    if (ranges.size < trial.sounds.length) return null;
    return { scores: Object.fromEntries([...ranges].map(([token, range]) => [token, Number(range.value)])) };
  };
  return { sounds, whole: false, answer };
}

/**
 * @param {Element} root
 * @param {string} method
 * @param {Trial} trial
 * @param {string} question
 * @param {boolean} neither
 * @returns {Question}
 */
export function buildQuestion(root, method, trial, question, neither) {
  if (method === "mos") return opinionQuestion(root, trial, question);
  if (method === "mushra") return scaleQuestion(root, trial, question);
  return pairQuestion(root, trial, question, neither);
}
