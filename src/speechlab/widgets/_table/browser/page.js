// An exported page: a model without a kernel, which answers from the data in the page.

import { bytesOf, heldIn, keepText, keptText, PageModel } from "../../_shared/page.js";
import { settleBeside } from "./beside.js";

/** @type {any} */
// @ts-expect-error The module of the table precedes this one and exports its default under this name.
const table = widget;
const held = heldIn("data");
/** @type {any} */
let sounds; // the largest part of the page: parsed when the first sound is requested

/** @type {Promise<void>} */
const loaded = new Promise((resolve) => {
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", () => resolve(), { once: true });
  else resolve();
});
const UNSTORED = "This browser keeps nothing. Save your marks before you leave this page.";
const place = `speechlab-marks-${held.name}`;
const storage = () => localStorage;
const noted = Object.fromEntries(["mark", "rating", "note"].map((name) => [name, held.rows[`n:${name}`]]));
if (held.keys) {
  try {
    for (const [row, mark, rating, note] of JSON.parse(keptText(storage, place) || "[]")) {
      if (row in noted.mark) [noted.mark[row], noted.rating[row], noted.note[row]] = [Boolean(mark), rating, String(note ?? "")];
    }
  } catch {
    // Somebody has edited it.
  }
}
/** Rows with a mark, a rating or a note. */
const notedRows = () => [...noted.mark.keys()].filter((row) => noted.mark[row] || noted.rating[row] || noted.note[row]);
const textOf = (value) => new TextEncoder().encode(JSON.stringify(value));

const model = new PageModel({ ...held.state, revision: 0, chosen: -1, exported: true }, {
  rows: () => ({ start: 0, end: held.state.count, data: textOf(held.rows) }),
  sound: async ({ row }) => {
    await loaded; // the sounds come after the rows in the page
    sounds ??= heldIn("sounds");
    const [data, note] = sounds[row];
    return data ? { content_type: "audio/ogg", note, data: bytesOf(data) } : { error: note };
  },
  outlines: ({ rows }) => {
    const peaks = rows.map((row) => bytesOf(held.outlines[row][0]));
    const facts = rows.map((row, index) => [held.outlines[row][1], held.outlines[row][2], peaks[index].length]);
    return { facts, data: Uint8Array.from(peaks.flatMap((outline) => [...outline])) };
  },
  differences: ({ rows, columns }) => {
    const pieces = rows.flatMap((row) =>
      columns.map((column) => ({ row, column, pieces: held.differences[column]?.[row] ?? null })),
    );
    return { data: textOf(pieces) };
  },
  noted: ({ row, name, value }) => {
    noted[name][row] = value;
    model.announce("msg:custom", { type: "noted", row, name, value });
    const lines = notedRows().map((row) => [row, noted.mark[row], noted.rating[row], noted.note[row]]);
    if (!keepText(storage, place, JSON.stringify(lines))) model.announce("msg:custom", { type: "warning", words: UNSTORED });
    return {};
  },
  // The file for sl.show(frame, marks=file): only the rows with a mark, a rating or a note.
  save: () => {
    const cell = (text) => `"${String(text).replaceAll('"', '""')}"`;
    const guarded = (text) => (/^[=+\-@\t\r]/.test(text) ? `'${text}` : text); // a spreadsheet would compute it
    const lines = notedRows().map((row) => {
      const [key, text] = held.keys[row];
      return [key, text, noted.mark[row] ? 1 : "", noted.rating[row] ?? "", guarded(noted.note[row] ?? "")].map(cell).join(",");
    });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([["\ufeffkey,text,mark,rating,note", ...lines, ""].join("\r\n")], { type: "text/csv" }));
    link.download = `marks-${document.title.replace(/[^\p{L}\p{N}_-]+/gu, "-").slice(0, 40)}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  },
});
table.render({ model, el: document.getElementById("widget") });
settleBeside((filter) => model.announce("msg:custom", { type: "narrow", ...filter }), held.state.sound);
