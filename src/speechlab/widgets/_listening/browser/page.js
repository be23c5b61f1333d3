// A page of its own: the model that a kernel would stand behind has the sounds, and keeps answers in the browser.

/** @type {any} */
// @ts-expect-error The module of the test stands before this one, with its default export under this name.
const test = widget;
const carried = JSON.parse(document.getElementById("data")?.textContent ?? "");
const place = `speechlab-listening-${carried.state.test}`;

/** Whether this browser keeps anything. */
let keeps = true;

/** @returns {{current: string, sessions: Record<string, any>}} */
function stored() {
  try {
    const text = localStorage.getItem(place);
    return text ? JSON.parse(text) : { current: "", sessions: {} };
  } catch {
    keeps = false;
    return { current: "", sessions: {} };
  }
}

const memory = stored();
function store() {
  try {
    localStorage.setItem(place, JSON.stringify(memory));
  } catch {
    keeps = false;
  }
}
store();

const UNSTORED = "This browser keeps nothing. Leave this page open until you have saved your answers.";
/** @type {[string, (...values: any[]) => void][]} */
const hearers = [];
/** @param {string} name @param {any[]} values */
function announce(name, ...values) {
  queueMicrotask(() => {
    for (const [one, hearer] of hearers) if (one === name) hearer(...values);
  });
}

/** @param {string} current */
function become(current) {
  memory.current = current;
  if (current) memory.sessions[current] ??= { listener: current, started: new Date().toISOString(), finished: null, answers: [] };
  store();
  state.session = current ? memory.sessions[current] : {};
  announce("change:session");
  announce("msg:custom", { type: "kept" }, []);
}

const state = {
  ...carried.state, exported: true, session: memory.sessions[memory.current] ?? {}, note: keeps ? "" : UNSTORED,
};
/** @type {Record<string, (message: any) => void>} */
const replies = {
  sound: ({ token }) => {
    const bytes = Uint8Array.from(atob(carried.sounds[token]), (one) => one.charCodeAt(0));
    announce("msg:custom", { type: "sound", token }, [new DataView(bytes.buffer)]);
  },
  begin: ({ listener }) => become(listener),
  next: () => become(""),
  keep: ({ session }) => {
    memory.sessions[session.listener] = session;
    store();
    state.session = session;
    state.note = keeps ? "" : UNSTORED;
    announce("msg:custom", { type: "kept" }, []);
  },
};
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
    off: () => {},
    /** @param {any} message */
    send: (message) => replies[message.type](message),
  },
});
