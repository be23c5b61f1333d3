"""How soon the page of a report is there: ``python benchmarks/reports.py [--rows 2000] [--quick]``.

A report of 2,000 rows, each with 4 s of the bundled Chinese speech from another place, is written as a page. Printed
are the seconds of building it, the size by part, and how near the previews are to the sounds; then the times at which
Chromium shows anything of the page, its rows, the rows sorted, and plays the first sound, by the browser's own clock
and the median of three, at full speed and with the processor four times slower; and the memory of the page's scripts.

Times of different machines cannot be compared, and those of a busy machine say little.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import statistics
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from speechlab.audio import AudioClip, build_sound_preview
from speechlab.datasets import zh_speech
from speechlab.evaluate import Report, recognition
from speechlab.metrics import score

if TYPE_CHECKING:
    from numpy.typing import NDArray

RATE = 24_000
SECONDS = 4
SLOWER = (1, 4)
TIMES = 3
PAINTED = """
(selector) => new Promise((done) => {
  const look = () => document.querySelector(selector)
    ? requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())))
    : requestAnimationFrame(look);
  look();
})
"""
SORTED = """
() => new Promise((done) => {
  const begun = performance.now();
  document.querySelector(".sl-sort").click();
  requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begun)));
})
"""
PLAYED = """
() => new Promise((done) => {
  const play = HTMLMediaElement.prototype.play;
  HTMLMediaElement.prototype.play = function () {
    this.addEventListener("playing", () => done(performance.now() - begun), { once: true });
    return play.call(this);
  };
  const begun = performance.now();
  document.querySelector(".sl-row .sl-play").click();
})
"""
FIRST = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def report_of(rows: int, folder: Path) -> Report:
    """Rows of speech, each cut from another place."""
    bundled = zh_speech()
    joined = np.concatenate(
        [AudioClip.from_file(one).to_mono().resample(RATE).samples for one in bundled["audio"]]
    )
    length = SECONDS * RATE
    starts = np.linspace(0, len(joined) - length, rows).astype(int)
    paths = [
        AudioClip(joined[first : first + length].copy(), RATE).save(folder / f"{row}.wav")
        for row, first in enumerate(starts)
    ]
    said = [bundled["text"].iloc[row % len(bundled)] for row in range(rows)]
    frame = pd.DataFrame(
        {
            "id": [f"row-{row}" for row in range(rows)],
            "text": said,
            "language": "zh",
            "voice": [f"voice {row % 4}" for row in range(rows)],
            "voice_name": [f"voice {row % 4}" for row in range(rows)],
            "gender": "",
            "audio": [str(path) for path in paths],
            "duration_s": float(SECONDS),
            "hypothesis": [text.replace("的", "地") if row % 3 else text for row, text in enumerate(said)],
            "status": "ok",
            "error": None,
        }
    )
    return Report.of_scores("A page of many rows", score(frame).assign(loop=False))


def spectrum(samples: NDArray[np.float32]) -> NDArray[np.float64]:
    """Levels of 40 mel bands up to 8 kHz in dB, windows of 25 ms every 10 ms at 16 kHz."""
    frames = np.lib.stride_tricks.sliding_window_view(samples, 400)[::160]
    power = np.abs(np.fft.rfft(frames * np.hanning(400), 512)) ** 2
    edges = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + 8000 / 700), 42) / 2595) - 1)
    hertz = np.arange(257) * 16_000 / 512
    bands = [
        np.clip(np.minimum((hertz - low) / (mid - low), (high - hertz) / (high - mid)), 0, None)
        for low, mid, high in zip(edges, edges[1:], edges[2:], strict=False)
    ]
    levels: NDArray[np.float64] = 10 * np.log10(np.maximum(power @ np.array(bands).T, 1e-9))
    return levels


def nearness(paths: pd.Series[str]) -> tuple[float, float]:
    """Mean distance of previews from sounds in dB, where speech is, and kbit/s."""
    distances, size = [], 0
    for path in paths:
        clip = AudioClip.from_file(path)
        made = build_sound_preview(clip)
        size += len(made.data)
        one, other = (
            spectrum(each.resample(16_000).samples) for each in (clip, AudioClip.from_bytes(made.data))
        )
        floor = one.max() - 55
        windows = min(len(one), len(other))
        loud = one[:windows].max(1) > floor + 15
        apart = np.abs(np.maximum(one[:windows], floor) - np.maximum(other[:windows], floor))
        distances.append(apart[loud].mean())
    return float(np.mean(distances)), size * 8 / (len(paths) * SECONDS * 1000)


def opened(page: Path, chromium: str) -> pd.DataFrame:
    """Milliseconds until the page is there, by how much slower the processor is."""
    from playwright.sync_api import sync_playwright

    found: dict[str, dict[str, float]] = {}
    with sync_playwright() as playwright:
        for slower in SLOWER:
            tries = [once(playwright, chromium, page, slower) for _ in range(TIMES)]
            found[f"{slower}x slower" if slower > 1 else "full speed"] = {
                name: statistics.median(one[name] for one in tries) for name in tries[0]
            }
    return pd.DataFrame(found)


def once(playwright: Any, chromium: str, file: Path, slower: int) -> dict[str, float]:
    browser = playwright.chromium.launch(
        executable_path=chromium,
        args=["--no-sandbox", "--disable-gpu", "--autoplay-policy=no-user-gesture-required"],
    )
    try:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        session = page.context.new_cdp_session(page)
        session.send("Emulation.setCPUThrottlingRate", {"rate": slower})
        session.send("Performance.enable")
        page.goto(file.as_uri(), wait_until="commit")
        rows = page.evaluate(PAINTED, ".sl-row")
        sort = page.evaluate(SORTED)
        page.wait_for_load_state("load")
        whole = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventStart")
        play = page.evaluate(PLAYED)
        metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
        return {
            "first of the page (ms)": page.evaluate(FIRST),
            "rows on the screen (ms)": rows,
            "all of the page (ms)": whole,
            "a click sorts within (ms)": sort,
            "a click sounds within (ms)": play,
            "memory of scripts (MB)": metrics["JSHeapUsedSize"] / 1e6,
        }
    finally:
        browser.close()


def measure_study(rows: int) -> None:
    """Print the processor time of a study of two systems whose outputs exist, and of its page."""
    chance = random.Random(0)
    words = "the old red small cat dog house tree sees finds likes today color twenty three street"
    vocabulary = words.split(" ")
    lines = [chance.choices(vocabulary, k=11) for _ in range(rows)]
    frame = pd.DataFrame(
        {"text": [f"{' '.join(line)} {row}" for row, line in enumerate(lines)], "language": "en"}
    )
    for name, rate in (("a", 0.05), ("b", 0.08)):
        frame[name] = [
            " ".join(word if chance.random() > rate else chance.choice(vocabulary) + "s" for word in line)
            for line in lines
        ]
    begun = time.process_time()
    report = recognition(None, frame, hypotheses=["a", "b"], progress=False)
    scored = time.process_time()
    report.to_html(max_bytes=100_000_000)
    print(
        f"{rows:,} rows of two systems: study {scored - begun:.1f} s of processor, "
        f"page {time.process_time() - scored:.1f} s"
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=2_000)
    arguments.add_argument("--quick", action="store_true", help="200 rows")
    given = arguments.parse_args()
    rows = 200 if given.quick else given.rows
    with tempfile.TemporaryDirectory() as folder:
        report = report_of(rows, Path(folder))
        report.figures()  # imports what draws
        begun, used = time.perf_counter(), time.process_time()
        page = report.to_html(max_bytes=100_000_000)
        wall, processor = time.perf_counter() - begun, time.process_time() - used
        measure_study(5)  # imports
        measure_study(5 * rows)
        print(f"{rows:,} rows built in {wall:.1f} s, {processor:.1f} s of processor")
        parts = {
            name: len(re.findall(rf'id="{name}">(.*?)</script>', page)[0].encode())
            for name in ("data", "sounds")
        }
        total = len(page.encode())
        print(
            f"{total / 1e6:.2f} MB: sounds {parts['sounds'] / 1e6:.2f}, rows and outlines {parts['data'] / 1e6:.2f}, "
            f"the rest {(total - sum(parts.values())) / 1e6:.2f}"
        )
        distance, rate = nearness(report.table["audio"].iloc[:: max(rows // 40, 1)])
        print(f"previews of {rate:.1f} kbit/s, {distance:.2f} dB from the sounds (log-mel spectra to 8 kHz)")
        chromium = (
            shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        )
        if chromium is None or find_spec("playwright") is None:
            print("opening it needs Chromium and Playwright")
            return
        file = Path(folder) / "report.html"
        file.write_text(page, "utf-8")
        print(opened(file, chromium).round().astype(int).to_string())


if __name__ == "__main__":
    main()
