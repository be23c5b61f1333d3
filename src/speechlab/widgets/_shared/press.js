// Keeps a press alive while the page moves the view. Browsers forget a press once its element has left the page, even
// for a moment: no click follows, and a drag ends.

/**
 * Watches the presses in an element.
 * @param {HTMLElement} el
 * @returns {() => void} Function to call when the element is back in the page.
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
