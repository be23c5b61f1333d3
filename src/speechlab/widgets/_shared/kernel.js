// Messages to the kernel, which may be gone.

export const PATIENCE_MS = 6_000;
export const GONE = "No answer: the kernel is gone";
export const LATE = "No answer: the kernel is busy, or gone";
let questions = 0;

/** The kernel has not answered. Its own errors are of the class Error. */
export class Unanswered extends Error {}

/** Sends a message to the kernel. Returns whether there still is one. @param {any} model @param {Record<string, any>} message @param {ArrayBufferLike[]} [buffers] */
export function post(model, message, buffers) {
  try {
    model.send(message, undefined, buffers);
    return true;
  } catch {
    return false;
  }
}

/**
 * Asks the kernel for data, which come in messages below 5 MB.
 * @param {any} model
 * @param {Record<string, any>} message
 * @param {ArrayBufferLike[]} [buffers]
 * @param {number} [patience] Time without an answer, in milliseconds, after which there is none.
 * @returns {Promise<any>} The answer with its bytes as `data`; an error with its words and the `answer`, or Unanswered.
 */
export function ask(model, message, buffers, patience = PATIENCE_MS) {
  const id = `${performance.now()}-${Math.random()}-${(questions += 1)}`;
  return new Promise((resolve, reject) => {
    /** @type {Uint8Array[]} */
    const pieces = [];
    let timer = 0;
    const settle = (/** @type {() => void} */ act) => {
      clearTimeout(timer);
      model.off("msg:custom", take);
      act();
    };
    const wait = () => {
      clearTimeout(timer);
      timer = window.setTimeout(() => settle(() => reject(new Unanswered(LATE))), patience);
    };
    const take = (/** @type {any} */ answer, /** @type {DataView[]} */ [view] = []) => {
      if (answer.ask !== id) return;
      if (answer.error) {
        settle(() => reject(Object.assign(new Error(answer.error), { answer })));
        return;
      }
      const piece = view ? new Uint8Array(view.buffer, view.byteOffset, view.byteLength) : new Uint8Array(0);
      pieces[answer.part ?? 0] = piece;
      wait();
      if (pieces.filter(Boolean).length < (answer.parts ?? 1)) return;
      const data = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
      pieces.reduce((at, piece) => (data.set(piece, at), at + piece.length), 0);
      settle(() => resolve({ ...answer, data }));
    };
    model.on("msg:custom", take);
    wait();
    if (!post(model, { ...message, ask: id }, buffers)) settle(() => reject(new Unanswered(GONE)));
  });
}
