// An exported page: a model without a kernel, which answers from the data in the page.

import { settleBeside } from "./beside.js";

/** @type {any} */
// @ts-expect-error The module of the table precedes this one and exports its default under this name.
const table = widget;
const parsed = (name) => JSON.parse(document.getElementById(name)?.textContent ?? "");
const held = parsed("data");
/** @type {any} */
let sounds; // the largest part of the page: parsed when the first sound is requested

/** @type {Promise<void>} */
const whole = new Promise((there) => {
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", () => there(), { once: true });
  else there();
});

function bytesOf(text) {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let one = 0; one < characters.length; one += 1) bytes[one] = characters.charCodeAt(one);
  return new DataView(bytes.buffer);
}

const answers = {
  rows: ({ revision }) => {
    const piece = new TextEncoder().encode(JSON.stringify(held.rows));
    answer({ type: "rows", start: 0, end: held.state.count, revision }, [new DataView(piece.buffer)]);
  },
  sound: async ({ row, revision }) => {
    await whole; // the sounds come after the rows in the page
    sounds ??= parsed("sounds");
    const [data, note] = sounds[row];
    if (!data) answer({ type: "sound", row, revision, error: note });
    else answer({ type: "sound", row, revision, content_type: "audio/ogg", note, piece: 0, pieces: 1 }, [bytesOf(data)]);
  },
  outlines: ({ rows, bins, revision }) => {
    for (const row of rows) {
      const [peaks, seconds, error] = held.outlines[row];
      answer({ type: "outline", row, bins, seconds, error, revision }, [bytesOf(peaks)]);
    }
  },
  differences: ({ rows, reference, columns, revision }) => {
    const found = rows.flatMap((row) =>
      columns.map((column) => ({ row, column, pieces: held.differences[column]?.[row] ?? null })),
    );
    const data = new TextEncoder().encode(JSON.stringify(found));
    answer({ type: "differences", reference, revision }, [new DataView(data.buffer)]);
  },
  noted: () => {},
};

const state = { ...held.state, revision: 0, editable: false, chosen: -1, max_rating: held.max_rating };
const listeners = [];
function answer(message, buffers = []) {
  queueMicrotask(() => {
    for (const [name, listener] of listeners) if (name === "msg:custom") listener(message, buffers);
  });
}
const model = {
  get: (name) => state[name],
  set: (name, value) => {
    state[name] = value;
  },
  save_changes: () => {},
  on: (name, listener) => listeners.push([name, listener]),
  off: () => {},
  send: (message) => answers[message.type](message),
};
table.render({ model, el: document.getElementById("widget") });
settleBeside();
