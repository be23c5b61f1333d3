// The order of the questions and of the sounds in each: random, but the same for a listener who returns.

/** @typedef {{id: string, practice: boolean, group: number, sounds: string[], x?: string, reference?: string, text: string, lang: string}} Trial */

/**
 * Generator of random numbers in [0, 1): mulberry32, seeded with FNV-1a of a text. Both are in the public domain.
 * @param {string} text
 */
export function randomOf(text) {
  let state = 2166136261;
  for (const byte of new TextEncoder().encode(text)) state = Math.imul(state ^ byte, 16777619);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/**
 * @template Thing
 * @param {Thing[]} things
 * @param {() => number} random
 */
export function shuffled(things, random) {
  const mixed = [...things];
  for (let last = mixed.length - 1; last > 0; last -= 1) {
    const place = Math.floor(random() * (last + 1));
    [mixed[last], mixed[place]] = [mixed[place], mixed[last]];
  }
  return mixed;
}

/**
 * The questions of a listener in order, practice first. Of the groups of questions a listener may have a part, so that all
 * groups are asked equally often of listeners with the parts 0, 1, 2 …
 * @param {Trial[]} trials
 * @param {string} seed
 * @param {{listener: string, part?: number}} session
 * @param {{groups: number, each: number}} design
 * @returns {Trial[]}
 */
export function questionsFor(trials, seed, { listener, part = 0 }, { groups, each }) {
  const random = randomOf(`${seed}\n${listener}`);
  const mine = (/** @type {Trial} */ { group }) => group < 0 || !each || (group - ((part * each) % groups) + groups) % groups < each;
  const counted = trials.filter((trial) => !trial.practice && mine(trial));
  const questions = [...trials.filter((trial) => trial.practice), ...shuffled(counted, random)];
  return questions.map((trial) => ({ ...trial, sounds: shuffled(trial.sounds, random) }));
}
