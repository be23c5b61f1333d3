// The session of one listener, with the answers. Each window of a listener has a copy, and the copies are merged here.

/** @typedef {{listener: string, started: string, finished: string | null, answers: any[], part?: number, about?: Record<string, string>}} Session */

/** Whether a value, which a listener may have edited, is a session. @param {any} value */
export function isSession(value) {
  return typeof value?.listener === "string" && Array.isArray(value.answers)
    && value.answers.every((/** @type {any} */ answer) => typeof answer?.trial === "string");
}

/** Number of answers of the first session that the second one lacks. @param {Session} first @param {Session} second */
export function lacking(first, second) {
  const has = new Set(second.answers.map((answer) => answer.trial));
  return first.answers.filter((answer) => !has.has(answer.trial)).length;
}

/**
 * Merges two copies of a session. For a question answered in both, the answer of the first copy is kept.
 * @param {Session | null} first
 * @param {Session} second
 * @returns {Session}
 */
export function joined(first, second) {
  if (!first) return second;
  const has = new Set(first.answers.map((answer) => answer.trial));
  return {
    ...second, ...first,
    about: { ...second.about, ...first.about },
    started: first.started < second.started ? first.started : second.started,
    finished: first.finished ?? second.finished,
    answers: [...first.answers, ...second.answers.filter((answer) => !has.has(answer.trial))],
  };
}
