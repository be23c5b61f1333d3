// The order of questions and of the sounds in each: drawn by chance, the same for a listener who comes back.

/** @typedef {{id: string, practice: boolean, sounds: string[], x?: string, reference?: string, text: string, lang: string}} Trial */

/**
 * A generator of numbers from 0 to 1: FNV-1a of a text seeds mulberry32. Both are in the public domain.
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
    const other = Math.floor(random() * (last + 1));
    [mixed[last], mixed[other]] = [mixed[other], mixed[last]];
  }
  return mixed;
}

/**
 * The questions of a listener, practice first.
 * @param {Trial[]} trials
 * @param {string} seed
 * @param {string} listener
 * @returns {Trial[]}
 */
export function questionsFor(trials, seed, listener) {
  const random = randomOf(`${seed}\n${listener}`);
  const asked = [...trials.filter((one) => one.practice), ...shuffled(trials.filter((one) => !one.practice), random)];
  return asked.map((one) => ({ ...one, sounds: shuffled(one.sounds, random) }));
}
