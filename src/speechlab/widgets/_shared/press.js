// A press goes on where the page takes the view away and gets it back meanwhile. Browsers forget a press once its
// element has left the page, be it for a moment: no click comes, and what was dragged is let go of.

/**
 * Watches the presses in an element.
 * @param {HTMLElement} el
 * @returns {() => void} To be called when the element is back.
 */
export function keepPresses(el) {
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
    // the browser's own click comes first, if it comes
    setTimeout(() => clicked || common.dispatchEvent(new MouseEvent("click", click)));
  };

  el.addEventListener("pointerdown", (event) => {
    const { target, pointerId: pointer } = event;
    const holder = event.composedPath().find((node) => node instanceof Element && node.hasPointerCapture(pointer));
    // a finger's click comes later, and by where the finger was
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
