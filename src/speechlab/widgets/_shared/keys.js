// Who has the keys. Any click in a widget gives them to it, and they stay until the user goes elsewhere. No key that a
// widget has then reaches the notebook, where "x" cuts the cell.

/** Time after a press in which a notebook may still move the focus. */
const PRESS_MS = 1_500;
// With Ctrl, these edit a text. All other keys with Ctrl, such as the one that saves, are the notebook's.
const EDITING = /^([acvxyzZ]|Enter|Backspace|Delete|Insert|Home|End|Arrow\w+)$/;

/** Whether a key is a widget's that has the keys. @param {KeyboardEvent} event */
const isOurs = (event) => !(event.ctrlKey || event.metaKey) || EDITING.test(event.key);

/** The element in a part of the page that has the focus, or null. @param {Node} area */
export function focusIn(area) {
  const { activeElement } = /** @type {Document | ShadowRoot} */ (area.getRootNode());
  return activeElement && area.contains(activeElement) ? activeElement : null;
}

/**
 * Gives the root of a widget the keys after each click. They go to its element with `data-sl-keys`, if it has one.
 * @param {HTMLElement} root
 */
export function holdKeys(root) {
  root.tabIndex = -1;
  /** @type {AbortController | null} */
  let held = null;
  let pressed = -Infinity;
  const release = () => {
    held?.abort();
    held = null;
  };
  const settle = () => {
    const now = focusIn(root);
    if (!held || (now && now !== root)) return;
    const main = root.querySelector("[data-sl-keys]");
    (main instanceof HTMLElement ? main : root).focus({ preventScroll: true });
  };
  const outside = (/** @type {Event} */ event) => {
    const path = event.composedPath();
    if (path.includes(root)) return;
    const { target } = event;
    if (event.type === "focusin" && target instanceof Node && target.contains(root) && performance.now() - pressed < PRESS_MS) {
      setTimeout(settle); // the notebook gives the focus to the cell of a press, and on a busy machine late
      return;
    }
    release();
    // JupyterLab leaves the focus in an output when its cell's prompt is clicked.
    if (event.type === "pointerdown") setTimeout(() => leave(path.find((node) => node instanceof HTMLElement && node.hasAttribute("tabindex"))));
  };
  const leave = (/** @type {EventTarget | undefined} */ to) => {
    const focused = held ? null : focusIn(root); // it may have been clicked again
    if (focused instanceof HTMLElement) focused.blur();
    if (focused && to instanceof HTMLElement) to.focus({ preventScroll: true });
  };
  const first = (/** @type {KeyboardEvent} */ event) => {
    if (!root.isConnected) release();
    if (!held) return;
    // Notebook 7 takes a shortcut before its key arrives here, unless the element with the focus has this attribute.
    focusIn(root)?.toggleAttribute("data-lm-suppress-shortcuts", isOurs(event));
    // An element that had the focus may be disabled or removed. The page then gets its keys.
    if (event.target !== document.body || !isOurs(event)) return;
    event.stopImmediatePropagation();
    settle();
    if (!focusIn(root)?.dispatchEvent(new KeyboardEvent(event.type, event))) event.preventDefault();
  };
  const hold = () => {
    if (held) return;
    held = new AbortController();
    const options = { capture: true, signal: held.signal };
    for (const name of ["pointerdown", "focusin"]) document.addEventListener(name, outside, options);
    window.addEventListener("keydown", first, options);
  };
  for (const name of ["pointerdown", "focusin"]) root.addEventListener(name, hold);
  root.addEventListener("pointerdown", () => (pressed = performance.now()), { capture: true });
  root.addEventListener("focusout", ({ target, relatedTarget }) => {
    const usable = target instanceof HTMLElement && !target.matches(":disabled") && target.checkVisibility();
    if (!relatedTarget && usable) release(); // the user went elsewhere, as with Tab from the last element
  });
  root.addEventListener("click", () => {
    settle();
    setTimeout(settle); // the notebook's own listeners come later, and may give the focus to the cell
  });
  root.addEventListener("keydown", (event) => {
    if (isOurs(event)) event.stopPropagation();
  });
}
