// The form above the table: ipywidgets created in the kernel.

import { make } from "../../_shared/dom.js";

/**
 * Shows the controls and returns a function that removes them. A page without a kernel has none.
 * @param {any} model
 * @param {Element} root
 */
export function showControls(model, root) {
  /** @type {string[]} */
  const references = model.get("_controls") ?? [];
  const manager = model.widget_manager;
  if (!references.length || !manager) return () => {};
  const bar = make(root, "div", "sl-controls");
  /** @type {any[]} */
  const views = [];
  let gone = false;
  const add = async () => {
    for (const reference of references) {
      const child = await manager.get_model(reference.replace("IPY_MODEL_", ""));
      const view = await manager.create_view(child);
      if (gone) {
        view.remove();
        return;
      }
      views.push(view);
      bar.append(view.el);
      view.trigger?.("displayed");
      // Its text changes during a synthesis.
      if (child.name === "LabelModel") view.el.setAttribute("role", "status");
    }
  };
  add().catch(() => {
    if (!gone) make(bar, "p", "sl-none", "The kernel is gone: run the cell again to have voices speak.");
  });
  return () => {
    gone = true;
    for (const view of views) view.remove();
  };
}
