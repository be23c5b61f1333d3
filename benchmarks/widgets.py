"""How quickly a table with sound is there, by the browser's own clock: ``python benchmarks/widgets.py [--quick]``.

Chromium shows, one after the other in one run and each in a browser of its own: an AudioTable of 1,000, of
10,000 and of 100,000 rows, 1,000 audio elements as IPython.display.Audio makes them, and itables of 1,000 and
of 10,000 rows (without sound, since it has none). The AudioTable asks Python over the channel that steers the
browser, which stands in for the kernel's. For each: the times from the start of the page to the first rows on
the screen and to all of the page and its rows; the middle and the worst frame while its rows are scrolled from
end to end in two seconds; the times from a click to the sound, for rows that nothing had prepared, with the
pointer at the head of the page; the time from a typed word to the rows that have it; the memory of the page's
process; and the largest message of rows. What is not installed is named.

Times of different machines cannot be compared, and those of a busy machine say little.
"""

from __future__ import annotations

import argparse
import base64
import html
import json
import shutil
import statistics
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from speechlab.audio import AudioClip
from speechlab.widgets import AudioTable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

RATE = 16_000
SECONDS = 1.0
CLICKS = 9
FLAGS = ["--no-sandbox", "--disable-gpu", "--autoplay-policy=no-user-gesture-required"]
STATE = "columns count revision reference max_rating editable chosen sound title"

MODEL = """
window.model = new (class {
  constructor(state) { this.state = state; this.listeners = []; }
  get(name) { return this.state[name]; }
  set(name, value) { this.state[name] = value; this.emit(`change:${name}`); }
  save_changes() {}
  on(name, listener) { this.listeners.push([name, listener]); }
  off(name, listener) { this.listeners = this.listeners.filter((one) => one[0] !== name || one[1] !== listener); }
  emit(name, ...values) { for (const [one, listener] of this.listeners) if (one === name) listener(...values); }
  async send(content) {
    for (const [message, buffers] of await window.ask(content)) {
      const views = buffers.map((text) => new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer));
      this.emit("msg:custom", message, views);
    }
  }
})(STATE);
"""
# On the screen: found by a frame, and painted by the next one but one.
PAINTED = """
(selector) => new Promise((done) => {
  const look = () => document.querySelector(selector)
    ? requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())))
    : requestAnimationFrame(look);
  look();
})
"""
SCROLLED = """
(selector) => new Promise((done) => {
  const node = selector ? document.querySelector(selector) : document.scrollingElement;
  const frames = [];
  const begin = performance.now();
  let last = begin;
  const step = (now) => {
    frames.push(now - last);
    last = now;
    const share = (now - begin) / 2000;
    node.scrollTop = share * (node.scrollHeight - node.clientHeight);
    if (share < 1) requestAnimationFrame(step);
    else done(frames.slice(1));
  };
  requestAnimationFrame(step);
})
"""
# From a word in the search field to the rows that have it, as the status under it counts them.
SEARCHED = """
([field, status]) => new Promise((done) => {
  const [input, words] = [document.querySelector(field), document.querySelector(status)];
  const before = words.textContent;
  const begin = performance.now();
  input.value = "golf";
  for (const type of ["input", "keyup"]) input.dispatchEvent(new Event(type, { bubbles: true }));
  const look = () => words.textContent !== before
    ? requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begin)))
    : requestAnimationFrame(look);
  look();
})
"""
LISTENING = """
window.heard = null;
const play = HTMLMediaElement.prototype.play;
HTMLMediaElement.prototype.play = function () {
  this.addEventListener("playing", () => (window.heard ??= performance.now()), { once: true });
  return play.call(this);
};
"""


def clips(rows: int) -> list[AudioClip]:
    """A hundred different sounds, over and over."""
    dice = np.random.default_rng(7)
    shape = np.hanning(round(SECONDS * RATE))
    made = [AudioClip(0.2 * shape * dice.standard_normal(len(shape)), RATE) for _ in range(min(rows, 100))]
    return [made[row % len(made)] for row in range(rows)]


def frame_of(rows: int) -> pd.DataFrame:
    """Texts, numbers and categories."""
    dice = np.random.default_rng(7)
    words = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel"]
    texts = [" ".join(dice.choice(words, 8)) for _ in range(rows)]
    said = [text.replace("golf", "gulf") for text in texts]
    rate = np.round(dice.uniform(0, 1, rows), 3)
    voice = dice.choice(["one", "two", "three"], rows)
    return pd.DataFrame({"text": texts, "hypothesis": said, "error_rate": rate, "voice": voice})


class Case:
    """One of the candidates: a page, and how it is looked at."""

    def __init__(self, name: str, rows: str, scroller: str, click: str = "") -> None:
        self.name, self.rows, self.scroller, self.click = name, rows, scroller, click
        self.page = ""
        self.ask: Callable[[Any], Any] | None = None
        self.message_bytes = 0
        self.search: list[str] = []  # the field, and the words that count the rows
        self.all_rows = ""  # whether all rows have arrived


def audio_table(rows: int) -> Case:
    table = AudioTable(frame_of(rows).assign(audio=pd.Series(clips(rows), dtype=object)))
    answers: list[tuple[Any, list[str]]] = []

    def send(content: Any, buffers: Sequence[bytes] = ()) -> None:
        answers.append((content, [base64.b64encode(data).decode() for data in buffers]))

    def ask(content: Any) -> list[tuple[Any, list[str]]]:
        answers.clear()
        table._answer_message(table, content, [])  # noqa: SLF001 - what a message of the browser calls
        sizes = (len(data) * 3 // 4 for _, buffers in answers for data in buffers)
        case.message_bytes = max(case.message_bytes, *sizes, 0)
        return list(answers)

    table.send = send
    # by hand, as a click would, but without a pointer that comes near before
    # upwards, since the next row is prepared while one plays
    click = "(turn) => document.querySelectorAll('.sl-row .sl-play')[9 - turn].click()"
    case = Case(f"AudioTable, {rows:,} rows", ".sl-row", ".sl-grid", click)
    case.ask = ask
    case.search = [".sl-search", ".sl-status"]
    case.all_rows = "!document.querySelector('.sl-status').textContent.includes('loading')"
    state = json.dumps({name: getattr(table, name) for name in STATE.split()}).replace("<", "\\u003c")
    source, sheet = table.get_state(["_esm", "_css"]).values()
    module = json.dumps("data:text/javascript;base64," + base64.b64encode(source.encode()).decode())
    case.page = (
        f"<style>{sheet}</style><main id=cell></main><script>{MODEL.replace('STATE', state)}</script>"
        f"<script type=module>const widget = (await import({module})).default;"
        "widget.render({ model, el: document.getElementById('cell') });</script>"
    )
    return case


def audio_elements(rows: int) -> Case:
    cells = ["<tr>" + "".join(f"<th>{name}" for name in [*frame_of(1), "audio"])]
    for values, clip in zip(frame_of(rows).itertuples(index=False), clips(rows), strict=True):
        sound = base64.b64encode(clip.encode("wav")).decode()
        texts = "".join(f"<td>{html.escape(str(value))}" for value in values)
        cells.append(f'<tr>{texts}<td><audio controls src="data:audio/wav;base64,{sound}"></audio>')
    click = "(turn) => document.querySelectorAll('audio')[100 + 7 * turn].play()"
    case = Case(f"audio elements, {rows:,}", "audio", "", click)
    case.page = f"<table>{''.join(cells)}</table>"
    return case


def itables(rows: int) -> Case:
    from itables import options, to_html_datatable
    from itables.javascript import generate_init_offline_itables_html

    case = Case(f"itables, {rows:,} rows", ".dt-scroll-body tbody tr:nth-child(9) td", ".dt-scroll-body")
    case.search = [".dt-search input", ".dt-info"]
    shown = to_html_datatable(frame_of(rows), connected=False, maxBytes=0, scrollY="500px", paging=False)
    case.page = generate_init_offline_itables_html(options.dt_bundle) + shown
    return case


def memory_mb(browser: Any) -> float:
    """Memory of the processes that show pages."""
    session = browser.new_browser_cdp_session()
    pids = [
        one["id"]
        for one in session.send("SystemInfo.getProcessInfo")["processInfo"]
        if one["type"] == "renderer"
    ]
    sizes = [Path(f"/proc/{pid}/smaps_rollup") for pid in pids]
    lines = [line for path in sizes for line in path.read_text().splitlines() if line.startswith("Pss:")]
    return sum(int(line.split()[1]) for line in lines) / 1024


def measured(playwright: Any, chromium: str, case: Case, folder: Path) -> dict[str, Any]:
    browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
    try:
        page = browser.new_page(viewport={"width": 1000, "height": 800})
        page.set_default_timeout(120_000)
        body = f"<!DOCTYPE html><meta charset=utf-8><script>{LISTENING}</script>{case.page}"
        file = folder / "page.html"
        file.write_text(body, encoding="utf-8")
        if case.ask:
            page.expose_function("ask", case.ask)
        page.goto(file.as_uri(), wait_until="commit")
        first = page.evaluate(PAINTED, case.rows)
        page.wait_for_load_state("load")
        loaded = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventStart")
        if case.all_rows:
            page.wait_for_function(case.all_rows)
        arrived = page.evaluate("performance.now()")
        page.mouse.move(500, 20)  # over the head of the page, as the pointer of whoever is about to click
        page.wait_for_timeout(1_500)
        clicks = [clicked(page, case.click, turn) for turn in range(CLICKS)] if case.click else []
        frames = page.evaluate(SCROLLED, case.scroller)
        searched = page.evaluate(SEARCHED, case.search) if case.search else float("nan")
        return {
            "": case.name,
            "page (MB)": len(body) / 1e6,
            "first rows (s)": first / 1000,
            "page ready (s)": max(first, loaded) / 1000,
            "all rows (s)": arrived / 1000,
            "frame (ms)": statistics.median(frames),
            "worst frame (ms)": max(frames),
            "click to sound (ms)": statistics.median(clicks) if clicks else float("nan"),
            "slowest click (ms)": max(clicks, default=float("nan")),
            "search (ms)": searched,
            "memory (MB)": memory_mb(browser),
            "largest message (MB)": case.message_bytes / 1e6 or float("nan"),
        }
    finally:
        browser.close()


def clicked(page: Any, click: str, turn: int) -> float:
    """Milliseconds from a click to the sound."""
    act = f"(turn) => {{ window.heard = null; window.begun = performance.now(); void ({click})(turn); }}"
    page.evaluate(act, turn)
    page.wait_for_function("window.heard !== null")
    found: float = page.evaluate("window.heard - window.begun")
    page.wait_for_timeout(250)
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="the small ones alone")
    quick = arguments.parse_args().quick
    programs = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")
    chromium = next(filter(None, map(shutil.which, programs)), None)
    if chromium is None or find_spec("playwright") is None:
        print("needs Chromium and Playwright")
        return
    from playwright.sync_api import sync_playwright

    cases = [audio_table(1_000), audio_elements(1_000)]
    cases += [] if quick else [audio_table(10_000), audio_table(100_000)]
    if find_spec("itables") is None:
        print("itables is not installed")
    else:
        cases += [itables(1_000)] + ([] if quick else [itables(10_000)])
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        found = [measured(playwright, chromium, case, Path(folder)) for case in cases]
    print(pd.DataFrame(found).set_index("").round(2).T.to_string())


if __name__ == "__main__":
    main()
