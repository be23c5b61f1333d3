// Changes of segments as pure functions of rows.

export const SHORTEST_SEGMENT_S = 0.001;
/** How far a key moves a segment without a grid. */
export const NUDGE_S = 0.01;
const NO_SPACES = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u;

/** @typedef {{id: number, start: number, end: number, text: string, speaker: string, like: number, lane?: number}} EditedRow */

/** Rounds to microseconds: times that agree to the microsecond count as equal. @param {number} seconds */
export const toMicroseconds = (seconds) => Math.round(seconds * 1e6) / 1e6;

/** @param {number} seconds @param {number} grid Seconds; 0 for none. */
export function onGrid(seconds, grid) {
  return toMicroseconds(grid ? Math.round(seconds / grid) * grid : seconds);
}

/** Signed distance to the nearest edge in seconds, or NaN if none is within reach. @param {number} seconds @param {number[]} edges @param {number} reach */
function toNearest(seconds, edges, reach) {
  let best = reach;
  let by = NaN;
  for (const edge of edges) {
    const far = Math.abs(edge - seconds);
    if (far <= best) [best, by] = [far, edge - seconds];
  }
  return by;
}

/** Snaps a time to an edge within reach, else to the grid. @param {number} seconds @param {{edges: number[], reach: number, grid: number}} hold */
export function holdOn(seconds, { edges, reach, grid }) {
  const by = toNearest(seconds, edges, reach);
  return Number.isNaN(by) ? onGrid(seconds, grid) : toMicroseconds(seconds + by);
}

/**
 * Moves a row without changing its length. Either end may snap to an edge.
 * @param {EditedRow} row @param {number} start @param {number} limit @param {{edges: number[], reach: number, grid: number}} hold
 */
export function movedRow(row, start, limit, hold) {
  const span = row.end - row.start;
  const head = toNearest(start, hold.edges, hold.reach);
  const tail = toNearest(start + span, hold.edges, hold.reach);
  const nearer = Number.isNaN(tail) || Math.abs(head) <= Math.abs(tail) ? head : tail;
  const to = Number.isNaN(nearer) ? onGrid(start, hold.grid) : start + nearer;
  const first = toMicroseconds(Math.min(Math.max(to, 0), Math.max(limit, row.end) - span));
  return { ...row, start: first, end: toMicroseconds(first + span) };
}

/**
 * Moves the start or the end of a row, which keeps at least the shortest length.
 * @param {EditedRow} row @param {"start" | "end"} side @param {number} seconds @param {number} limit @param {number} grid
 */
export function resizedRow(row, side, seconds, limit, grid) {
  const least = grid || SHORTEST_SEGMENT_S;
  if (side === "start") return { ...row, start: Math.max(Math.min(seconds, onGrid(row.end - least, grid)), 0) };
  const latest = Math.max(limit, row.end);
  return { ...row, end: Math.min(Math.max(seconds, onGrid(row.start + least, grid)), latest) };
}

/** Joins two texts, with a space between them if the language writes spaces. @param {string} first @param {string} second */
export function joinTexts(first, second) {
  if (!first || !second) return first || second;
  const close = NO_SPACES.test([...first].at(-1) ?? "") || NO_SPACES.test([...second][0]) || /[。、！？]$/u.test(first);
  return close ? first + second : `${first} ${second}`;
}
