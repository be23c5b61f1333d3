// The live view takes the place of the plain HTML that stands in the notebook, and gives it back when it ends.
//
// The output in the notebook is HTML alone, never a widget: so it survives without a kernel, and a notebook that is
// opened again says nothing of missing models. A widget's module begins to run when its model reaches the page,
// finds its place by a class name, and shows itself there.

const GONE_MS = 5000;

/**
 * @param {(place: {model: any, el: HTMLElement}) => (() => void) | undefined} render
 */
export function liveWidget(render) {
  return {
    // for hosts that show widgets themselves, and for widgets within other widgets
    render,
    /** @param {{model: any}} place */
    initialize({ model }) {
      /** @type {Map<HTMLElement, () => void>} */
      const shown = new Map();
      const places = document.getElementsByClassName(model.get("_place"));

      const scan = () => {
        for (const place of places) {
          if (place instanceof HTMLElement && !shown.has(place)) shown.set(place, takePlace(place, model, render));
        }
      };
      // A notebook may take a cell out of the page and put it back when it is scrolled to.
      const sweep = () => {
        for (const [place, leave] of shown) {
          if (place.isConnected) continue;
          shown.delete(place);
          leave();
        }
      };
      const observer = new MutationObserver(scan);
      observer.observe(document.body, { childList: true, subtree: true });
      const timer = setInterval(sweep, GONE_MS);
      scan();
      return () => {
        observer.disconnect();
        clearInterval(timer);
        for (const leave of shown.values()) leave();
      };
    },
  };
}

/**
 * @param {HTMLElement} place
 * @param {any} model
 * @param {(place: {model: any, el: HTMLElement}) => (() => void) | undefined} render
 */
function takePlace(place, model, render) {
  const el = document.createElement("div");
  place.after(el);
  const cleanup = render({ model, el });
  for (const audio of place.querySelectorAll("audio")) audio.pause();
  place.style.display = "none";
  return () => {
    if (cleanup) cleanup();
    el.remove();
    place.style.display = "";
  };
}
