// Asking the kernel, which may be gone.

export const PATIENCE_MS = 6_000;

/** Sends to the kernel; says whether there still is one. @param {any} model @param {Record<string, any>} message */
export function tell(model, message) {
  try {
    model.send(message);
    return true;
  } catch {
    return false;
  }
}
