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

const textOf = (value) => new DataView(new TextEncoder().encode(JSON.stringify(value)).buffer);
const answers = {
  rows: ({ ask }) => answer({ ask, start: 0, end: held.state.count }, [textOf(held.rows)]),
  sound: async ({ row, ask }) => {
    await whole; // the sounds come after the rows in the page
    sounds ??= parsed("sounds");
    const [data, note] = sounds[row];
    if (!data) answer({ ask, error: note });
    else answer({ ask, content_type: "audio/ogg", note }, [bytesOf(data)]);
  },
  outlines: ({ rows, ask }) => {
    const peaks = rows.map((row) => new Uint8Array(bytesOf(held.outlines[row][0]).buffer));
    const facts = rows.map((row, index) => [held.outlines[row][1], held.outlines[row][2], peaks[index].length]);
    answer({ ask, facts }, [new DataView(Uint8Array.from(peaks.flatMap((one) => [...one])).buffer)]);
  },
  differences: ({ rows, columns, ask }) => {
    const found = rows.flatMap((row) =>
      columns.map((column) => ({ row, column, pieces: held.differences[column]?.[row] ?? null })),
    );
    answer({ ask }, [textOf(found)]);
  },
  noted: ({ row, name, value }) => {
    noted[name][row] = value;
    const rows = [...noted.mark.keys()].filter((one) => noted.mark[one] || noted.rating[one] || noted.note[one]);
    answer({ type: "noted", row, name, value });
    try {
      localStorage.setItem(place, JSON.stringify(rows.map((one) => [one, noted.mark[one], noted.rating[one], noted.note[one]])));
    } catch {
      answer({ type: "warning", words: UNSTORED, revision: 0 });
    }
  },
  // The file for sl.show(frame, marks=file): only the rows with a mark, a rating or a note.
  save: () => {
    const cell = (text) => `"${String(text).replaceAll('"', '""')}"`;
    const guarded = (text) => (/^[=+\-@\t\r]/.test(text) ? `'${text}` : text); // a spreadsheet would compute it
    const lines = held.keys.flatMap(([key, text], row) => {
      const [mark, rating, note] = [noted.mark[row], noted.rating[row], noted.note[row]];
      return mark || rating || note ? [[key, text, mark ? 1 : "", rating ?? "", guarded(note ?? "")].map(cell).join(",")] : [];
    });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([["\ufeffkey,text,mark,rating,note", ...lines, ""].join("\r\n")], { type: "text/csv" }));
    link.download = `marks-${document.title.replace(/[^\p{L}\p{N}_-]+/gu, "-").slice(0, 40)}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  },
};

const UNSTORED = "This browser keeps nothing. Save your marks before you leave this page.";
const place = `speechlab-marks-${held.name}`;
const noted = Object.fromEntries(["mark", "rating", "note"].map((name) => [name, held.rows[`n:${name}`]]));
if (held.keys) {
  try {
    for (const [row, mark, rating, note] of JSON.parse(localStorage.getItem(place) ?? "[]")) {
      if (row in noted.mark) [noted.mark[row], noted.rating[row], noted.note[row]] = [Boolean(mark), rating, String(note ?? "")];
    }
  } catch {
    // The browser keeps nothing, or somebody has edited it.
  }
}
const state = { ...held.state, revision: 0, chosen: -1, exported: true };
const listeners = [];
function answer(message, buffers = []) {
  queueMicrotask(() => {
    for (const [name, listener] of [...listeners]) if (name === "msg:custom") listener(message, buffers);
  });
}
const model = {
  get: (name) => state[name],
  set: (name, value) => {
    state[name] = value;
  },
  save_changes: () => {},
  on: (name, listener) => listeners.push([name, listener]),
  off: (name, listener) => listeners.splice(listeners.findIndex((one) => one[1] === listener) >>> 0, 1),
  send: (message) => answers[message.type](message),
};
table.render({ model, el: document.getElementById("widget") });
settleBeside();
