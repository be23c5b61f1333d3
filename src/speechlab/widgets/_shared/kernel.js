// Messages to the kernel, which may be gone.

export const PATIENCE_MS = 6_000;

/** Sends a message to the kernel. Returns whether there still is one. @param {any} model @param {Record<string, any>} message @param {ArrayBufferLike[]} [buffers] */
export function tell(model, message, buffers) {
  try {
    model.send(message, undefined, buffers);
    return true;
  } catch {
    return false;
  }
}
