// A list of thousands of rows of different heights, which only creates elements for visible rows.

import { make } from "../../_shared/dom.js";

const AROUND = 4;
/** Maximum number of rows on paper. */
const PRINTED = 12;

export class VirtualRows {
  /** @type {number} */ count;
  /** @type {Float32Array} */ heights;
  /** Top of each row in pixels, and the bottom of the last one. @type {Float64Array} */ tops;

  /**
   * @param {HTMLElement} scroller The element that scrolls.
   * @param {(position: number) => HTMLElement} build Builds the row at a position.
   * @param {(rows: number[]) => void} seen Called with the positions that have elements.
   * @param {AbortSignal} ended
   */
  constructor(scroller, build, seen, ended) {
    this.scroller = scroller;
    this.build = build;
    this.seen = seen;
    this.body = make(scroller, "div", "sl-body", { role: "rowgroup" });
    /** @type {Map<number, HTMLElement>} */
    this.there = new Map();
    this.height = 48;
    this.frame = 0;
    /** Position that keeps its element wherever the list is scrolled to, since it has the focus. */
    this.kept = -1;
    this.setCount(0);
    scroller.addEventListener("scroll", () => this.later(), { passive: true });
    /** Whether the rows are built for paper, where nothing can be scrolled to. */
    this.printing = false;
    const print = (/** @type {Event} */ event) => {
      this.printing = event.type === "beforeprint";
      if (this.count > PRINTED) scroller.dataset.printed = `The first ${PRINTED} of ${this.count.toLocaleString("en")} rows.`;
      else delete scroller.dataset.printed;
      this.paint();
    };
    for (const name of ["beforeprint", "afterprint"]) window.addEventListener(name, print, { signal: ended });
    ended.addEventListener("abort", () => cancelAnimationFrame(this.frame));
  }

  /** @param {number} count */
  setCount(count) {
    for (const row of this.there.values()) row.remove();
    this.there.clear();
    this.count = count;
    this.heights = new Float32Array(count).fill(this.height);
    this.tops = new Float64Array(count + 1);
    this.stack();
  }

  stack() {
    for (let row = 0; row < this.count; row += 1) this.tops[row + 1] = this.tops[row] + this.heights[row];
    this.body.style.height = `${this.tops[this.count]}px`;
  }

  later() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  /** The position at a distance from the top. @param {number} y */
  at(y) {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.tops[middle + 1] <= y) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  get head() {
    return this.body.offsetTop;
  }

  paint() {
    const top = Math.max(this.scroller.scrollTop, 0);
    const first = this.at(top);
    const last = this.at(top + this.scroller.clientHeight);
    const positions = new Set();
    // After a jump, rows around the visible ones are not built for a frame that is soon replaced.
    const near = !this.there.size || [...this.there.keys()].some((position) => position >= first && position <= last);
    const around = near ? AROUND : 0;
    const [begin, end] = this.printing ? [0, PRINTED - 1] : [Math.max(first - around, 0), last + around];
    for (let position = begin; position <= Math.min(end, this.count - 1); position += 1) positions.add(position);
    if (!this.printing && this.kept >= 0 && this.kept < this.count) positions.add(this.kept);
    for (const [position, row] of this.there) {
      if (positions.has(position)) continue;
      row.remove();
      this.there.delete(position);
    }
    for (const position of [...positions].sort((first, second) => first - second)) {
      if (this.there.has(position)) continue;
      const row = this.build(position);
      const next = [...this.there].filter(([place]) => place > position).sort((a, b) => a[0] - b[0])[0];
      this.body.insertBefore(row, next ? next[1] : null);
      this.there.set(position, row);
    }
    this.measure(first);
    this.seen([...positions]);
  }

  /** Measures the rows that have elements, and keeps the visible rows in place. @param {number} first */
  measure(first) {
    let changed = false;
    let shift = 0;
    for (const [position, row] of this.there) {
      const { height } = row.getBoundingClientRect();
      if (!height) continue;
      if (Math.abs(height - this.heights[position]) < 0.05) continue;
      if (position < first) shift += height - this.heights[position];
      this.heights[position] = height;
      changed = true;
    }
    if (changed) this.stack();
    for (const [position, row] of this.there) row.style.transform = `translateY(${this.tops[position]}px)`;
    if (shift) this.scroller.scrollTop += shift;
  }

  /** Measures the rows again after a change of width. */
  remeasure() {
    const rows = [...this.there.values()];
    if (rows.length) this.height = rows.reduce((sum, row) => sum + row.offsetHeight, 0) / rows.length || this.height;
    for (let position = 0; position < this.count; position += 1) if (!this.there.has(position)) this.heights[position] = this.height;
    this.stack();
    this.paint();
  }

  /** Measures the rows again after a change of their contents. */
  settle() {
    this.measure(this.at(this.scroller.scrollTop));
  }

  /** @param {number} [only] Position of the one row that changed. */
  rebuild(only) {
    for (const [position, old] of this.there) {
      if (only !== undefined && position !== only) continue;
      const row = this.build(position);
      old.replaceWith(row);
      this.there.set(position, row);
    }
    this.settle();
  }

  /** Scrolls as little as needed to show a row. @param {number} position */
  reveal(position) {
    if (position < 0 || position >= this.count) return;
    this.kept = position;
    this.paint();
    const room = this.scroller.clientHeight - this.head;
    const top = this.tops[position];
    const bottom = this.tops[position + 1];
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (bottom > this.scroller.scrollTop + room) this.scroller.scrollTop = Math.min(bottom - room, top);
    this.paint();
  }
}
