// Replaces the plain HTML in the notebook with the live view, and restores the HTML when the view ends.
//
// The output in the notebook is HTML alone, never a widget. It therefore survives without a kernel, and a reopened
// notebook does not complain about missing models. A widget's module starts when its model reaches the page, finds its
// place by a class name and shows the view there.

const GONE_MS = 5000;

/** @typedef {(place: {model: any, el: HTMLElement}) => () => void} Render */

/** @param {(model: any, el: HTMLElement) => {dispose: () => void}} show Shows a model in an element. */
export function liveWidget(show) {
  /** @type {Render} */
  const render = ({ model, el }) => {
    const view = show(model, el);
    return () => view.dispose();
  };
  return {
    // For hosts that show widgets themselves, and for widgets within other widgets.
    render,
    /** @param {{model: any}} place */
    initialize({ model }) {
      /** @type {Map<HTMLElement, Mounted>} */
      const views = new Map();
      const places = document.getElementsByClassName(model.get("_place"));

      const scan = () => {
        for (const place of places) {
          if (!(place instanceof HTMLElement) || views.has(place)) continue;
          // The page has replaced the HTML: the live view moves there and keeps its sound, focus and scroll position.
          const removed = [...views.keys()].find((candidate) => !candidate.isConnected);
          const view = removed ? views.get(removed) : undefined;
          if (removed) views.delete(removed);
          views.set(place, view ? movePlace(place, view) : takePlace(place, model, render));
        }
      };
      // A notebook may take a cell out of the page and put it back when the user scrolls to it.
      const sweep = () => {
        for (const [place, view] of views) {
          if (place.isConnected) continue;
          views.delete(place);
          view.leave();
        }
      };
      const observer = new MutationObserver(scan);
      observer.observe(document.body, { childList: true, subtree: true });
      const timer = setInterval(sweep, GONE_MS);
      scan();
      return () => {
        observer.disconnect();
        clearInterval(timer);
        for (const view of views.values()) view.leave();
      };
    },
  };
}

/** @typedef {{el: HTMLElement, place: HTMLElement, focus: Element | null, scrolled: Map<Element, number>, press: () => void, leave: () => void}} Mounted */

/**
 * @param {HTMLElement} place
 * @param {any} model
 * @param {Render} render
 * @returns {Mounted}
 */
function takePlace(place, model, render) {
  const el = document.createElement("div");
  place.after(el);
  const cleanup = render({ model, el });
  /** @type {Mounted} */
  const view = {
    el, place, focus: null, scrolled: new Map(), press: keepPresses(el),
    leave: () => {
      cleanup();
      el.remove();
      view.place.style.display = "";
    },
  };
  el.addEventListener("focusin", (event) => (view.focus = /** @type {Element} */ (event.target)));
  el.addEventListener("focusout", (event) => {
    // Remember the focus if the page removes the element, but not if the user moves on.
    if (event.relatedTarget) view.focus = null;
  });
  const scrolled = (/** @type {Event} */ { target }) => target instanceof Element && target.isConnected && view.scrolled.set(target, target.scrollTop);
  el.addEventListener("scroll", scrolled, { capture: true, passive: true });
  return movePlace(place, view);
}

/** @param {HTMLElement} place @param {Mounted} view */
function movePlace(place, view) {
  view.place = place;
  place.after(view.el);
  for (const audio of place.querySelectorAll("audio")) audio.pause();
  place.style.display = "none";
  for (const [node, top] of [...view.scrolled]) node.scrollTop = top;
  if (document.activeElement === document.body && view.focus instanceof HTMLElement) view.focus.focus({ preventScroll: true });
  view.press();
  return view;
}

/**
 * Watches the presses in an element, and keeps one alive while the page moves it. Browsers forget a press once its element
 * has left the page, even for a moment: no click follows, and a drag ends.
 * @param {HTMLElement} el
 * @returns {() => void} Function to call when the element is back in the page.
 */
function keepPresses(el) {
  /** @type {{target: Element, pointer: number, holder: Element | undefined, cut: boolean} | null} */
  let held = null;
  let watched = new AbortController();

  const end = (/** @type {PointerEvent} */ event) => {
    const press = held;
    if (press?.pointer !== event.pointerId) return;
    held = null;
    watched.abort();
    if (!press.cut || press.holder || event.type !== "pointerup") return;
    /** @type {Node | null} */
    let common = press.target;
    while (common && !common.contains(/** @type {Node} */ (event.target))) common = common.parentNode;
    if (!common || !el.contains(common)) return;
    let clicked = false;
    el.addEventListener("click", () => (clicked = true), { capture: true, once: true });
    const { clientX, clientY, ctrlKey, shiftKey, altKey, metaKey } = event;
    const click = { bubbles: true, cancelable: true, composed: true, detail: 1, clientX, clientY, ctrlKey, shiftKey, altKey, metaKey };
    // The browser's own click, if any, comes first.
    setTimeout(() => clicked || common.dispatchEvent(new MouseEvent("click", click)));
  };

  el.addEventListener("pointerdown", (event) => {
    const { target, pointerId: pointer } = event;
    const holder = event.composedPath().find((node) => node instanceof Element && node.hasPointerCapture(pointer));
    // The click of a touch comes later, at the position of the finger, so that only a mouse needs help.
    const clicks = event.pointerType === "mouse" && event.button === 0;
    if (!(target instanceof Element) || !(clicks || holder)) return;
    watched.abort();
    watched = new AbortController();
    held = { target, pointer, holder: /** @type {Element | undefined} */ (holder), cut: false };
    for (const name of /** @type {const} */ (["pointerup", "pointercancel"])) {
      addEventListener(name, end, { capture: true, signal: watched.signal });
    }
  });
  return () => {
    if (!held) return;
    held.cut = true;
    held.holder?.setPointerCapture(held.pointer);
  };
}
