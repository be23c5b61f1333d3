// An exported page: a model without a kernel, which holds the sounds and stores the answers in the browser.
//
// Each listener's answers are one item of the storage. A window merges its answers with the stored ones, so that windows
// open at the same time do not overwrite each other's answers.

import { bytesOf, heldIn, keepText, keptText, PageModel } from "../../_shared/page.js";

/** @type {any} */
// @ts-expect-error The module of the test precedes this one and exports its default under this name.
const test = widget;
/** @type {typeof import("./session.js")} */
// @ts-expect-error The same module brings these functions.
const sessions = { isSession, joined, lacking };
const carried = heldIn("data");
const { words, design } = carried.state;
const place = `speechlab-listening-${carried.state.test}`;
const shared = () => localStorage;
const tab = () => sessionStorage;
/** Whether the browser's storage works. */
let keeps = keptText(shared, place) !== null;
/** Sessions in this window: the only copy if the browser's storage does not work. @type {Map<string, import("./session.js").Session>} */
const inThisWindow = new Map();

/** @param {string} listener */
const itemOf = (listener) => `${place}/${listener}`;

/** Merged session of a listener from the storage and this window. @param {string} listener @returns {import("./session.js").Session | null} */
function sessionOf(listener) {
  let held = null;
  try {
    held = JSON.parse(keptText(shared, itemOf(listener)) || "null");
  } catch {
    // The item was edited by hand.
  }
  const stored = sessions.isSession(held) && held.listener === listener ? held : null;
  const mine = inThisWindow.get(listener);
  return mine ? sessions.joined(stored, mine) : stored;
}

/** @param {import("./session.js").Session} session */
function put(session) {
  inThisWindow.set(session.listener, session);
  keeps = keepText(shared, itemOf(session.listener), JSON.stringify(session)) && keeps;
  Object.assign(model.state, { session, note: keeps ? "" : words.unstored });
  model.announce("change:session");
}

/** Sets the listener of this window and of windows opened later. @param {string} listener */
function become(listener) {
  for (const storage of [tab, shared]) keeps = keepText(storage, place, listener) && keeps;
}

/** The listener's part of the items: his page's, that in the address (`#3`), or any. @param {string} listener */
function partOf(listener) {
  const number = design.part ?? (/^#\d{1,6}$/.test(location.hash) ? Number(location.hash.slice(1)) - 1 : null);
  return number ?? [...new TextEncoder().encode(listener)].reduce((sum, byte) => (sum * 31 + byte) % 1_000_003, 7);
}

const current = keptText(tab, place) || keptText(shared, place) || "";
keeps = keepText(tab, place, current) && keeps;
const resumed = current ? sessionOf(current) : null;
if (resumed) inThisWindow.set(current, resumed);
const state = { ...carried.state, exported: true, session: resumed ?? {}, note: keeps ? "" : words.unstored };
const model = new PageModel(state, {
  sound: ({ token }) => ({ data: bytesOf(carried.sounds[token]) }),
  begin: ({ listener }) => {
    become(listener);
    const begun = { listener, started: new Date().toISOString(), finished: null, answers: [], part: partOf(listener) };
    put(sessionOf(listener) ?? begun);
    return { session: state.session };
  },
  next: () => become(""),
  keep: ({ session }) => {
    put(sessions.joined(sessionOf(session.listener), session));
    return {};
  },
});
// Another window has written. Store the answers again that it did not have.
addEventListener("storage", ({ key }) => {
  const { listener } = state.session;
  const mine = listener && inThisWindow.get(listener);
  if (!mine || (key !== null && key !== itemOf(listener))) return;
  inThisWindow.delete(listener);
  const stored = sessionOf(listener);
  inThisWindow.set(listener, sessions.joined(stored, mine));
  if (!stored || sessions.lacking(mine, stored)) put(sessions.joined(stored, mine));
  else {
    state.session = stored;
    model.announce("change:session");
  }
});
addEventListener("beforeunload", (event) => {
  if (!keeps && state.session.answers?.length) event.preventDefault();
});
test.render({ el: document.getElementById("widget"), model });
