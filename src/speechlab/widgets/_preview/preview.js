// The preview of a batch: a line with its progress, and its last rows.

import { make, View } from "../_shared/dom.js";
import { liveWidget } from "../_shared/mount.js";

// Interval at which screen readers announce the progress, which changes five times a second.
const SAY_MS = 10_000;
// In a narrower view, a row's text is below its status and latency.
const NARROW_PX = 360;

class PreviewView extends View {
  said = -Infinity;

  /** @param {any} model @param {Element} el */
  constructor(model, el) {
    super(model, el, "speechlab-preview");
    this.earlier = make(this.root, "div", "sl-earlier");
    const head = make(this.root, "div", "sl-head");
    this.title = make(head, "strong", "sl-title");
    this.summary = make(head, "span", "sl-summary");
    this.bar = make(this.root, "progress", "sl-progress", { "aria-label": "Progress" });
    this.table = make(this.root, "table", "sl-rows");
    const names = make(make(this.table, "thead"), "tr");
    for (const name of ["Status", "Text", "Latency"]) make(names, "th", "", name, { scope: "col" });
    this.body = make(this.table, "tbody");
    this.live = make(this.root, "div", "sl-live", { "aria-live": "polite" });
    const summary = () => this.showSummary();
    const bar = () => this.showBar();
    const updates = {
      earlier: () => this.showEarlier(), title: () => this.showTitle(), summary, running: summary, done: bar, total: bar,
      recent: () => this.showRows(),
    };
    this.hear(Object.fromEntries(Object.entries(updates).map(([name, show]) => [`change:${name}`, show])));
    for (const show of new Set(Object.values(updates))) show();
    this.watchSize(this.root, ([entry]) => this.root.classList.toggle("sl-narrow", entry.contentRect.width < NARROW_PX));
  }

  showTitle() {
    this.title.textContent = this.model.get("title");
    this.root.setAttribute("aria-label", `Batch: ${this.model.get("title")}`);
  }

  showEarlier() {
    this.earlier.replaceChildren();
    for (const stage of this.model.get("earlier")) {
      const line = make(this.earlier, "div", "sl-head");
      make(line, "strong", "", stage.title);
      make(line, "span", "sl-summary", stage.summary);
    }
    this.earlier.hidden = !this.model.get("earlier").length;
  }

  showSummary() {
    const { model } = this;
    this.summary.textContent = model.get("summary");
    const now = performance.now();
    if (model.get("running") && now - this.said < SAY_MS) return;
    this.said = now;
    this.live.textContent = model.get("summary");
  }

  showBar() {
    this.bar.max = Math.max(this.model.get("total"), 1);
    this.bar.value = this.model.get("done");
    this.bar.hidden = !this.model.get("total");
  }

  showRows() {
    this.body.replaceChildren();
    for (const { status, text, lang, latency } of this.model.get("recent")) {
      const row = make(this.body, "tr", status === "ok" ? "" : "sl-bad");
      make(row, "td", "sl-status", status);
      make(make(row, "td", "sl-cell"), "div", "sl-text", text, { dir: "auto", ...(lang ? { lang } : {}) });
      make(row, "td", "sl-latency", latency);
    }
    this.table.hidden = !this.model.get("recent").length;
  }
}

export default liveWidget((model, el) => new PreviewView(model, el));
