// What one listener has answered; windows of the same listener each have a copy, which are put together here.

/** @typedef {{listener: string, started: string, finished: string | null, answers: any[]}} Session */

/** Whether a value, which a listener may have edited, is a session. @param {any} value */
export function isSession(value) {
  return typeof value?.listener === "string" && Array.isArray(value.answers)
    && value.answers.every((/** @type {any} */ one) => typeof one?.trial === "string");
}

/** How many answers of a session another one lacks. @param {Session} one @param {Session} other */
export function lacking(one, other) {
  const has = new Set(other.answers.map((answer) => answer.trial));
  return one.answers.filter((answer) => !has.has(answer.trial)).length;
}

/**
 * Two copies of a session as one: what either has is kept, and of two answers to a question that of the first copy.
 * @param {Session | null} first
 * @param {Session} second
 * @returns {Session}
 */
export function joined(first, second) {
  if (!first) return second;
  const has = new Set(first.answers.map((answer) => answer.trial));
  return {
    listener: second.listener,
    started: first.started < second.started ? first.started : second.started,
    finished: first.finished ?? second.finished,
    answers: [...first.answers, ...second.answers.filter((answer) => !has.has(answer.trial))],
  };
}
