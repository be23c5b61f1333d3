// The preview of a batch: a line with its progress, and its last rows.

import { make, makeRoot } from "../_shared/dom.js";
import { liveWidget } from "../_shared/mount.js";

// Interval at which screen readers announce the progress, which changes five times a second.
const SAY_MS = 10_000;
// In a narrower view, a row's text is below its status and latency.
const NARROW_PX = 360;

function render({ model, el }) {
  const root = makeRoot(el, "speechlab-preview");
  const earlier = make(root, "div", "sl-earlier");
  const head = make(root, "div", "sl-head");
  const title = make(head, "strong", "sl-title");
  const summary = make(head, "span", "sl-summary");
  const bar = make(root, "progress", "sl-progress");
  bar.setAttribute("aria-label", "Calls done");
  const table = make(root, "table", "sl-rows");
  const names = make(make(table, "thead"), "tr");
  for (const name of ["Status", "Text", "Latency"]) make(names, "th", "", name).scope = "col";
  const body = make(table, "tbody");
  const live = make(root, "div", "sl-live");
  live.setAttribute("aria-live", "polite");

  function showTitle() {
    title.textContent = model.get("title");
    root.setAttribute("aria-label", `Batch: ${model.get("title")}`);
  }

  function showEarlier() {
    earlier.replaceChildren();
    for (const stage of model.get("earlier")) {
      const line = make(earlier, "div", "sl-head");
      make(line, "strong", "", stage.title);
      make(line, "span", "sl-summary", stage.summary);
    }
    earlier.hidden = !model.get("earlier").length;
  }

  let said = -Infinity;
  function showSummary() {
    summary.textContent = model.get("summary");
    const now = performance.now();
    if (model.get("running") && now - said < SAY_MS) return;
    said = now;
    live.textContent = model.get("summary");
  }

  function showBar() {
    bar.max = Math.max(model.get("total"), 1);
    bar.value = model.get("done");
    bar.hidden = !model.get("total");
  }

  function showRows() {
    body.replaceChildren();
    for (const { status, text, lang, latency } of model.get("recent")) {
      const row = make(body, "tr", status === "ok" ? "" : "sl-bad");
      make(row, "td", "sl-status", status);
      const words = make(make(row, "td", "sl-cell"), "div", "sl-text", text);
      words.dir = "auto";
      if (lang) words.lang = lang;
      make(row, "td", "sl-latency", latency);
    }
    table.hidden = !model.get("recent").length;
  }

  const listeners = [
    ["change:earlier", showEarlier],
    ["change:title", showTitle],
    ["change:summary", showSummary],
    ["change:running", showSummary],
    ["change:done", showBar],
    ["change:total", showBar],
    ["change:recent", showRows],
  ];
  for (const [name, listener] of listeners) model.on(name, listener);
  for (const show of [showEarlier, showTitle, showSummary, showBar, showRows]) show();
  const sized = new ResizeObserver(([entry]) => {
    root.classList.toggle("sl-narrow", entry.contentRect.width < NARROW_PX);
  });
  sized.observe(root);
  return () => {
    sized.disconnect();
    for (const [name, listener] of listeners) model.off(name, listener);
  };
}

export default liveWidget(render);
