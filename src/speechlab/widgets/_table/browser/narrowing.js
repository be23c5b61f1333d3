// Filters of a table: search, marks, categories, ranges of numbers, and the choice of columns.

import { fillOptions, make, makeBox, shareAt } from "../../_shared/dom.js";
import { post } from "../../_shared/kernel.js";

const SEARCH_MS = 120;
const MAX_CATEGORIES = 16;
const BINS = 32;
const GROUPS = /** @type {[string, string[]][]} */ ([
  ["Texts", ["text"]], ["Categories and lists", ["category", "list"]], ["Numbers", ["number"]], ["Names and dates", ["label"]],
]);

export class Narrowing {
  /** @type {HTMLElement | undefined} */ marks;

  /** @param {import("./table.js").AudioTableView} table */
  constructor(table) {
    this.table = table;
    this.data = table.data;
    /** Whether the reader of a page can save the marks. */
    this.saves = table.editable && Boolean(table.model.get("exported"));
    /** Search text among the categories, by column. @type {Map<string, string>} */
    this.found = new Map();
    /** @type {import("./data.js").View} */
    this.view = { search: "", marked: false, sort: null, categories: new Map(), ranges: new Map() };
    const { root } = table;
    const bar = make(root, "div", "sl-tools");
    let timer = 0;
    const search = () => {
      clearTimeout(timer);
      timer = window.setTimeout(() => {
        this.view.search = this.search.value;
        this.table.narrowed();
      }, SEARCH_MS);
    };
    const words = { type: "search", placeholder: "Search", "aria-label": "Search texts and notes" };
    this.search = make(bar, "input", "sl-search", { ...words, input: search });
    this.filter = this.panel(bar, root, "Filter");
    this.layout = this.panel(bar, root, "Columns");
    if (this.table.editable) {
      const click = () => {
        this.view.marked = !this.view.marked;
        this.marks?.setAttribute("aria-pressed", String(this.view.marked));
        this.table.narrowed();
      };
      this.marks = make(bar, "button", "sl-button", "Marked", { "aria-pressed": false, click });
    }
    if (this.saves) {
      const title = "Save the marks, ratings and notes as a file, to send to the author of this page";
      make(bar, "button", "sl-button", "Save marks", { title, click: () => post(this.table.model, { type: "save" }) });
    }
    this.clear = make(bar, "button", "sl-button sl-clear", "Show all", { click: () => this.showAll() });
    this.status = make(bar, "span", "sl-status", { role: "status" });
  }

  /** @param {Element} bar @param {Element} root @param {string} name */
  panel(bar, root, name) {
    const button = make(bar, "button", "sl-button sl-opener", name, { "aria-expanded": false, click: () => open(panel.hidden) });
    const panel = make(root, "div", "sl-panel", { role: "group", "aria-label": name, hidden: "" });
    const open = (/** @type {boolean} */ on) => {
      panel.hidden = !on;
      button.setAttribute("aria-expanded", String(on));
      root.classList.toggle("sl-open", Boolean(root.querySelector(".sl-panel:not([hidden])")));
      if (!on) return;
      panel.style.top = `${button.offsetTop + button.offsetHeight + 4}px`;
      this.fill();
    };
    root.addEventListener("pointerdown", ({ target }) => {
      if (!panel.hidden && target instanceof Node && !panel.contains(target) && target !== button) open(false);
    });
    for (const area of [button, panel]) {
      area.addEventListener("keydown", (event) => {
        if (!(event instanceof KeyboardEvent) || event.key !== "Escape" || panel.hidden) return;
        event.stopPropagation();
        open(false);
        button.focus();
      });
    }
    return { button, panel };
  }

  /** Shows the rows with a value of a column alone, or all rows again. @param {string} name @param {string} value */
  toggle(name, value) {
    const chosen = this.view.categories.get(name);
    if (chosen?.size === 1 && chosen.has(value)) this.view.categories.delete(name);
    else this.view.categories.set(name, new Set([value]));
    this.table.narrowed();
    this.fill();
  }

  /** Resets the filters for another table. */
  reset() {
    this.view = { search: "", marked: false, sort: null, categories: new Map(), ranges: new Map() };
    this.search.value = "";
    this.found.clear();
    this.marks?.setAttribute("aria-pressed", "false");
    this.fill();
  }

  showAll() {
    const { sort } = this.view;
    this.reset();
    this.view.sort = sort;
    this.table.narrowed();
  }

  get narrowed() {
    const { search, marked, categories, ranges } = this.view;
    return Boolean(search || marked || categories.size || ranges.size);
  }

  /** The order and the filters as JSON. */
  stored() {
    const { search, marked, sort, categories, ranges } = this.view;
    return { search, marked, sort, categories: [...categories].map(([name, chosen]) => [name, [...chosen]]), ranges: [...ranges] };
  }

  /** Sets the order and the filters of an earlier view. @param {any} stored */
  restore(stored) {
    if (!stored?.categories) return;
    const { search, marked, sort, categories, ranges } = stored;
    const chosen = categories.map((/** @type {[string, string[]]} */ [name, values]) => [name, new Set(values)]);
    this.view = { search, marked, sort, categories: new Map(chosen), ranges: new Map(ranges) };
    this.search.value = search;
    this.marks?.setAttribute("aria-pressed", String(marked));
  }

  /** The order and the filters in words; empty for all rows in their own order. */
  words() {
    const { search, marked, sort, categories, ranges } = this.view;
    const words = [...categories].map(([name, chosen]) => `${name}: ${[...chosen].map((value) => value || "(none)").join(", ")}`);
    for (const [name, [low, high]] of ranges) words.push(`${name} from ${+low.toPrecision(6)} to ${+high.toPrecision(6)}`);
    if (search) words.push(`with “${search}”`);
    if (marked) words.push("marked");
    if (sort) words.push(`by ${sort.name.replace("noted:", "")}, ${sort.down ? "descending" : "ascending"}`);
    return words.map((text) => (text.length > 200 ? `${text.slice(0, 199)}…` : text));
  }

  /** @param {number} marked */
  show(marked) {
    const { count, loaded, order } = this.data;
    const matching = order.length.toLocaleString("en");
    const all = count.toLocaleString("en");
    const facts = [this.narrowed ? `${matching} of ${all} rows` : `${all} rows`];
    if (loaded < count) facts.push("still loading");
    if (this.data.unranked(this.view.sort)) facts.push("sorting");
    if (marked) facts.push(`${marked.toLocaleString("en")} marked`);
    const words = facts.join(" · ");
    if (this.status.textContent !== words) this.status.textContent = words;
    this.clear.hidden = !this.narrowed;
    const { categories, ranges } = this.view;
    const used = categories.size + ranges.size;
    this.filter.button.textContent = used ? `Filter · ${used}` : "Filter";
  }

  fill() {
    if (!this.filter.panel.hidden) this.fillFilter(this.filter.panel);
    const { panel } = this.layout;
    if (panel.hidden) return;
    panel.replaceChildren();
    for (const [title, kinds] of GROUPS) this.fillColumns(panel, title, this.data.columns.filter((column) => kinds.includes(column.kind)));
    this.fillCompared(panel);
  }

  /** @param {HTMLElement} panel */
  fillFilter(panel) {
    panel.replaceChildren();
    for (const column of this.data.columns) {
      if (column.kind === "category" || column.kind === "list") this.fillCategories(panel, column);
      // A scored table has many numbers: offer only columns that are shown or filtered.
      if (column.kind === "number" && (column.shown || this.view.ranges.has(column.name))) this.fillRange(panel, column);
    }
    if (!panel.children.length) make(panel, "p", "sl-none", "No column that is seen has categories, lists or numbers.");
  }

  /** @param {HTMLElement} panel @param {import("./data.js").Column} column */
  fillCategories(panel, { name, label }) {
    const counts = this.data.categories(name);
    if (counts.length < 2) return;
    const group = make(panel, "fieldset", "sl-facet");
    make(group, "legend", "", label).title = name;
    if (counts.length > MAX_CATEGORIES) {
      const input = () => {
        this.found.set(name, find.value);
        this.list(list, name, counts);
      };
      const placeholder = `Find one of ${counts.length.toLocaleString("en")}`;
      const find = make(group, "input", "sl-find", { type: "search", placeholder, "aria-label": `Find in ${label}`, input });
      find.value = this.found.get(name) ?? "";
    }
    const list = make(group, "div");
    this.list(list, name, counts);
  }

  /**
   * Lists the selected categories, then the most frequent ones that match the search.
   * @param {HTMLElement} list @param {string} name @param {[string, number][]} counts
   */
  list(list, name, counts) {
    list.replaceChildren();
    const chosen = this.view.categories.get(name);
    const find = (this.found.get(name) ?? "").toLowerCase();
    const fits = counts.filter(([value]) => !chosen?.has(value) && value.toLowerCase().includes(find));
    const first = counts.filter(([value]) => chosen?.has(value));
    // If all fit, none changes its place when it is selected.
    const listed = counts.length > MAX_CATEGORIES ? [...first, ...fits.slice(0, MAX_CATEGORIES)] : counts;
    for (const [value, count] of listed) {
      const box = makeBox(list, "sl-choice", value || "(none)", chosen?.has(value) ?? false, (checked) => {
        const values = this.view.categories.get(name) ?? new Set();
        if (checked) values.add(value);
        else values.delete(value);
        if (values.size) this.view.categories.set(name, values);
        else this.view.categories.delete(name);
        this.table.narrowed();
      });
      make(/** @type {Element} */ (box.parentElement), "span", "sl-count", count.toLocaleString("en"));
    }
    const more = first.length + fits.length - listed.length;
    if (more > 0 && counts.length > MAX_CATEGORIES) make(list, "span", "sl-none", `and ${more.toLocaleString("en")} more`);
    if (!listed.length) make(list, "span", "sl-none", "no match");
  }

  /** @param {HTMLElement} panel @param {import("./data.js").Column} column */
  fillRange(panel, column) {
    const extent = this.data.extent(column.name);
    if (!extent || extent[0] === extent[1]) return;
    new RangeFilter(panel, this.data, column, extent, this.view.ranges.get(column.name), (range) => {
      if (range) this.view.ranges.set(column.name, range);
      else this.view.ranges.delete(column.name);
      this.table.narrowed();
    });
  }

  /** @param {HTMLElement} panel @param {string} title @param {import("./data.js").Column[]} columns */
  fillColumns(panel, title, columns) {
    if (!columns.length) return;
    const group = make(panel, "fieldset", "sl-facet sl-wide");
    make(group, "legend", "", title);
    const sorted = [...columns].sort((first, second) => Number(second.shown) - Number(first.shown) || first.label.localeCompare(second.label));
    for (const column of sorted) {
      const box = makeBox(group, "sl-choice", column.label, column.shown && !column.squeezed, (checked) => {
        column.shown = column.pinned = checked;
        this.table.layOut();
        if (!this.filter.panel.hidden) this.fillFilter(this.filter.panel);
      });
      /** @type {HTMLElement} */ (box.parentElement).title = column.name;
    }
  }

  /** The choice of the reference from which differences are shown. @param {HTMLElement} panel */
  fillCompared(panel) {
    const texts = this.data.columns.filter((column) => column.kind === "text");
    // A page has the differences from one reference only, and suggestions are for one.
    if (texts.length < 2 || !this.table.editable || this.saves || this.data.column("suggestion")) return;
    const compare = make(panel, "fieldset", "sl-facet");
    make(compare, "legend", "", "Differences");
    const choice = make(make(compare, "label", "sl-against", "from "), "select");
    fillOptions(choice, ["", ...texts.map((column) => column.name)].map((name) => [name, name || "(nothing)"]), this.table.reference);
    choice.addEventListener("change", () => this.table.put({ reference: choice.value }));
    for (const column of texts) {
      makeBox(compare, "sl-choice", `show in ${column.label}`, column.compared, (checked) => {
        column.compared = checked;
        this.table.layOut();
      });
    }
  }
}

/** A filter by range: a histogram to drag in, and two number fields. */
class RangeFilter {
  /**
   * @param {HTMLElement} panel
   * @param {import("./data.js").TableData} data
   * @param {import("./data.js").Column} column
   * @param {[number, number]} extent
   * @param {[number, number] | undefined} range
   * @param {(range: [number, number] | null) => void} changed
   */
  constructor(panel, data, column, extent, range, changed) {
    this.extent = extent;
    this.range = range ?? extent;
    this.changed = changed;
    this.decimals = column.decimals;
    const group = make(panel, "fieldset", "sl-facet");
    make(group, "legend", "", column.label).title = column.name;
    this.picture = make(group, "div", "sl-histogram");
    this.picture.title = "Drag to select a range";
    this.bars = this.count(data.cells.get(column.name) ?? []);
    const most = Math.max(...this.bars, 1);
    this.nodes = this.bars.map((count) => {
      const bar = make(this.picture, "span", "sl-bar");
      // The square root keeps small counts visible next to large ones.
      bar.style.height = `${count ? Math.max(100 * Math.sqrt(count / most), 4) : 0}%`;
      return bar;
    });
    const fields = make(group, "div", "sl-ends");
    this.inputs = ["Least", "Greatest"].map((name, end) => {
      const change = () => {
        const typed = input.value === "" ? this.extent[end] : Number(input.value);
        this.set(end ? [this.range[0], typed] : [typed, this.range[1]]);
      };
      const input = make(fields, "input", "", { type: "number", step: "any", "aria-label": `${name} ${column.label}`, change });
      return input;
    });
    let start = 0;
    this.picture.addEventListener("pointerdown", (event) => {
      start = this.at(event);
      this.picture.setPointerCapture(event.pointerId);
      this.set([start, start]);
    });
    this.picture.addEventListener("pointermove", (event) => {
      if (event.buttons & 1) this.set([Math.min(start, this.at(event)), Math.max(start, this.at(event))]);
    });
    this.picture.addEventListener("dblclick", () => this.set(this.extent));
    this.show();
  }

  /** @param {any[]} values */
  count(values) {
    const bars = new Array(BINS).fill(0);
    const [low, high] = this.extent;
    for (const value of values) {
      if (Number.isFinite(value)) bars[Math.min(Math.floor(((value - low) / (high - low)) * BINS), BINS - 1)] += 1;
    }
    return bars;
  }

  /** The number under the pointer, rounded to an edge between bars. @param {PointerEvent} event */
  at(event) {
    const [low, high] = this.extent;
    return low + (Math.round(shareAt(this.picture, event) * BINS) / BINS) * (high - low);
  }

  /** @param {[number, number]} range */
  set(range) {
    this.range = /** @type {[number, number]} */ (range[0] <= range[1] ? range : [range[1], range[0]]);
    // A click without a drag selects no range.
    const all = this.range[0] === this.range[1] || (this.range[0] <= this.extent[0] && this.range[1] >= this.extent[1]);
    this.show();
    this.changed(all ? null : this.range);
  }

  show() {
    const [low, high] = this.extent;
    this.inputs.forEach((input, end) => (input.value = this.range[end].toFixed(this.decimals)));
    this.nodes.forEach((bar, index) => {
      const from = low + (index / BINS) * (high - low);
      const to = low + ((index + 1) / BINS) * (high - low);
      bar.classList.toggle("sl-out", to <= this.range[0] || from >= this.range[1]);
    });
  }
}
