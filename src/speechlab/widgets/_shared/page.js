// A model without a kernel, for a page that holds its data.

/** The data in an element of the page. @param {string} name */
export const heldIn = (name) => JSON.parse(document.getElementById(name)?.textContent ?? "");

/** @param {string} text Base64. */
export const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

export class PageModel {
  /** @type {[string, (...values: any[]) => void][]} */ listeners = [];

  /**
   * @param {Record<string, any>} state
   * @param {Record<string, (message: any) => any>} replies Answer to each type of message: its facts, with bytes as `data`;
   *   nothing for no answer.
   */
  constructor(state, replies) {
    this.state = state;
    this.replies = replies;
  }

  /** @param {string} name */
  get(name) {
    return this.state[name];
  }

  /** @param {string} name @param {any} value */
  set(name, value) {
    this.state[name] = value;
  }

  save_changes() {}

  /** @param {string} name @param {(...values: any[]) => void} listener */
  on(name, listener) {
    this.listeners.push([name, listener]);
  }

  /** @param {string} name @param {(...values: any[]) => void} listener */
  off(name, listener) {
    this.listeners = this.listeners.filter((entry) => entry[0] !== name || entry[1] !== listener);
  }

  /** @param {string} name @param {any[]} values */
  announce(name, ...values) {
    queueMicrotask(() => {
      for (const [event, listener] of this.listeners) if (event === name) listener(...values);
    });
  }

  /** @param {any} message */
  async send(message) {
    const { data, ...facts } = (await this.replies[message.type](message)) ?? {};
    const views = data ? [new DataView(data.buffer)] : [];
    if (message.ask) this.announce("msg:custom", { ...facts, ask: message.ask }, views);
  }
}

/** Keeps a text in the browser. Returns whether it could. @param {() => Storage} storage @param {string} name @param {string} text */
export function keepText(storage, name, text) {
  try {
    storage().setItem(name, text);
    return true;
  } catch {
    return false;
  }
}

/** A kept text; empty if there is none, and null if the browser keeps nothing. @param {() => Storage} storage @param {string} name */
export function keptText(storage, name) {
  try {
    return storage().getItem(name) ?? "";
  } catch {
    return null;
  }
}
