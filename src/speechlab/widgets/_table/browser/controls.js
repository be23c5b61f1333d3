// The form above the table: ipywidgets created in the kernel.

import { make } from "../../_shared/dom.js";

/**
 * Shows the controls and returns a function that removes them. A page without a kernel has none.
 * @param {any} model
 * @param {Element} root
 */
export function showControls(model, root) {
  const manager = model.widget_manager;
  if (!model.get("_controls")?.length || !manager) return () => {};
  const bar = make(root, "div", "sl-controls");
  /** Views by the references of their models. @type {Map<string, any>} */
  const views = new Map();
  let closed = false;
  const add = async (/** @type {string} */ reference) => {
    const child = await manager.get_model(reference.replace("IPY_MODEL_", ""));
    const view = await manager.create_view(child);
    if (closed || !model.get("_controls").includes(reference)) {
      view.remove();
      return;
    }
    views.set(reference, view);
    bar.append(view.el);
    view.trigger?.("displayed");
    // Its text changes during a synthesis.
    if (child.name === "LabelModel") view.el.setAttribute("role", "status");
  };
  const show = async () => {
    const references = model.get("_controls");
    for (const [reference, view] of [...views]) {
      if (references.includes(reference)) continue;
      views.delete(reference);
      view.remove();
    }
    for (const reference of references) if (!views.has(reference)) await add(reference);
  };
  const fail = () => closed || make(bar, "p", "sl-none", "The kernel is gone: run the cell again to have voices speak.");
  const renew = () => void show().catch(fail);
  renew();
  model.on("change:_controls", renew);
  return () => {
    closed = true;
    model.off("change:_controls", renew);
    for (const view of views.values()) view.remove();
  };
}
