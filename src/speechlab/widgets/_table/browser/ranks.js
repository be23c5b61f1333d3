// Ranks of texts, by which many rows are ordered. They are made in parts of some milliseconds, between which the page answers.

const PART = 1_000;
const PART_MS = 10;

export const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

/** Lets the page do what waits, if it has waited for the length of a part. */
class Pace {
  begun = performance.now();

  async rest() {
    if (performance.now() - this.begun < PART_MS) return;
    await new Promise((resolve) => {
      const { port1, port2 } = new MessageChannel(); // a timer waits for four milliseconds more
      port1.onmessage = () => (port1.close(), resolve(null));
      port2.postMessage(null);
    });
    this.begun = performance.now();
  }
}

/** @param {string[]} first @param {string[]} second @param {Pace} pace */
async function mergeTexts(first, second, pace) {
  const merged = [];
  let [left, right] = [0, 0];
  while (left < first.length && right < second.length) {
    merged.push(collator.compare(first[left], second[right]) <= 0 ? first[left++] : second[right++]);
    if (merged.length % PART === 0) await pace.rest();
  }
  return merged.concat(first.slice(left), second.slice(right));
}

/** The rank of each text, the same for texts that are ordered alike, and -1 for none. @param {(string | null)[]} cells */
export async function rankTexts(cells) {
  const pace = new Pace();
  /** The ranks of the texts, once these are ordered. @type {Map<string | null, number>} */
  const ranks = new Map();
  for (const [row, cell] of cells.entries()) {
    if (cell !== null) ranks.set(cell, 0);
    if (row % PART === 0) await pace.rest();
  }
  const texts = /** @type {string[]} */ ([...ranks.keys()]);
  let parts = [];
  for (let start = 0; start < texts.length; start += PART) {
    parts.push(texts.slice(start, start + PART).sort(collator.compare));
    await pace.rest();
  }
  while (parts.length > 1) {
    const pairs = [];
    for (let at = 0; at < parts.length; at += 2) {
      pairs.push(at + 1 < parts.length ? await mergeTexts(parts[at], parts[at + 1], pace) : parts[at]);
    }
    parts = pairs;
  }
  let rank = -1;
  for (const [at, text] of (parts[0] ?? []).entries()) {
    if (!at || collator.compare(parts[0][at - 1], text)) rank += 1;
    ranks.set(text, rank);
    if (at % PART === 0) await pace.rest();
  }
  const ranked = new Int32Array(cells.length);
  for (const [row, cell] of cells.entries()) {
    ranked[row] = ranks.get(cell) ?? -1;
    if (row % PART === 0) await pace.rest();
  }
  return ranked;
}

/** Orders rows by their ranks; rows without one come last. @param {number[]} rows @param {Int32Array} ranks @param {boolean} down */
export function orderByRank(rows, ranks, down) {
  const count = ranks.length;
  const keys = new Float64Array(rows.length);
  rows.forEach((row, at) => (keys[at] = (ranks[row] < 0 ? count : down ? count - 1 - ranks[row] : ranks[row]) * count + row));
  keys.sort().forEach((key, at) => (rows[at] = key % count));
}
