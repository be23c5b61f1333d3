// An exported page: a model without a kernel, which holds the sounds and stores the answers in the browser.
//
// Each listener's answers are one item of the storage. A window merges its answers with the stored ones, so that windows
// open at the same time do not overwrite each other's answers.

/** @type {any} */
// @ts-expect-error The module of the test precedes this one and exports its default under this name.
const test = widget;
/** @type {typeof import("./session.js")} */
// @ts-expect-error The same module brings these functions.
const sessions = { isSession, joined, lacking };
const carried = JSON.parse(document.getElementById("data")?.textContent ?? "");
const place = `speechlab-listening-${carried.state.test}`;

/** Whether the browser's storage works. */
let keeps = true;

/** @param {() => Storage} storage @param {string} name */
function load(storage, name) {
  try {
    return storage().getItem(name) ?? "";
  } catch {
    keeps = false;
    return "";
  }
}

/** @param {() => Storage} storage @param {string} name @param {string} text */
function save(storage, name, text) {
  try {
    storage().setItem(name, text);
  } catch {
    keeps = false;
  }
}

const shared = () => localStorage;
const own = () => sessionStorage;
/** Sessions in this window: the only copy if the browser's storage does not work. @type {Map<string, import("./session.js").Session>} */
const known = new Map();

/** @param {string} listener */
function itemOf(listener) {
  return `${place}/${listener}`;
}

/** Merged session of a listener from the storage and this window. @param {string} listener @returns {import("./session.js").Session | null} */
function sessionOf(listener) {
  let held = null;
  try {
    held = JSON.parse(load(shared, itemOf(listener)) || "null");
  } catch {
    // The item was edited by hand.
  }
  const stored = sessions.isSession(held) && held.listener === listener ? held : null;
  const here = known.get(listener);
  return here ? sessions.joined(stored, here) : stored;
}

/** @param {import("./session.js").Session} session */
function put(session) {
  known.set(session.listener, session);
  save(shared, itemOf(session.listener), JSON.stringify(session));
  state.session = session;
  state.note = keeps ? "" : UNSTORED;
  announce("change:session");
}

/** Sets the listener of this window and of windows opened later. @param {string} listener */
function become(listener) {
  for (const storage of [own, shared]) save(storage, place, listener);
}

const UNSTORED = "This browser keeps nothing. Leave this page open until you have saved your answers.";
/** @type {[string, (...values: any[]) => void][]} */
const hearers = [];
/** @param {string} name @param {any[]} values */
function announce(name, ...values) {
  queueMicrotask(() => {
    for (const [one, hearer] of [...hearers]) if (one === name) hearer(...values);
  });
}

const current = load(own, place) || load(shared, place);
save(own, place, current);
const left = current ? sessionOf(current) : null;
if (left) known.set(current, left);
/** @type {Record<string, any>} */
const state = {
  ...carried.state, exported: true, session: left ?? {}, note: keeps ? "" : UNSTORED,
};
/** @type {Record<string, (message: any) => void>} */
const replies = {
  sound: ({ token, ask }) => {
    const bytes = Uint8Array.from(atob(carried.sounds[token]), (one) => one.charCodeAt(0));
    announce("msg:custom", { type: "sound", token, ask }, [new DataView(bytes.buffer)]);
  },
  begin: ({ listener, view }) => {
    become(listener);
    const begun = { listener, started: new Date().toISOString(), finished: null, answers: [] };
    put(sessionOf(listener) ?? begun);
    announce("msg:custom", { type: "begun", view, session: state.session }, []);
  },
  next: () => become(""),
  keep: ({ session, view }) => {
    put(sessions.joined(sessionOf(session.listener), session));
    announce("msg:custom", { type: "kept", view }, []);
  },
};
// Another window has written. Store the answers again that it did not have.
addEventListener("storage", ({ key }) => {
  const { listener } = state.session;
  const here = listener && known.get(listener);
  if (!here || (key !== null && key !== itemOf(listener))) return;
  known.delete(listener);
  const there = sessionOf(listener);
  known.set(listener, sessions.joined(there, here));
  if (!there || sessions.lacking(here, there)) put(sessions.joined(there, here));
  else {
    state.session = there;
    announce("change:session");
  }
});
addEventListener("beforeunload", (event) => {
  if (!keeps && state.session.answers?.length) event.preventDefault();
});
test.render({
  el: document.getElementById("widget"),
  model: {
    /** @param {string} name */
    get: (name) => state[name],
    /** @param {string} name @param {(...values: any[]) => void} hearer */
    on: (name, hearer) => hearers.push([name, hearer]),
    /** @param {string} name @param {(...values: any[]) => void} hearer */
    off: (name, hearer) => hearers.splice(hearers.findIndex((one) => one[1] === hearer) >>> 0, 1),
    /** @param {any} message */
    send: (message) => replies[message.type](message),
  },
});
