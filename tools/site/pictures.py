"""Pictures for the pages by task: ``python tools/site/pictures.py FOLDER [NAME …]``.

Reports are shown as a browser shows them; their studies run on the embedded service, so what is on the pictures are
results of its engines. Figures are those of the notebooks. ``poe pictures`` writes all into ``docs/images``.
"""

from __future__ import annotations

import html
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from gallery import first_figure
from PIL import Image
from playwright.sync_api import sync_playwright

import speechlab as sl

if TYPE_CHECKING:
    from collections.abc import Callable

BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
WIDTH, HEIGHT = 1020, 590


def compare_recognizers(lab: sl.Client) -> sl.evaluate.Report:
    """Return a report on the service and on the same model without a search, on spoken sentences."""
    from faster_whisper import WhisperModel

    sentences = sl.datasets.prompts("en").head(20)[["text", "language"]]
    spoken = sl.batch.synthesize(sentences, lab, voice="heart")
    engine = sl.engines.create("whisper")
    engine.find_model()
    model = WhisperModel(str(sl.engines.ModelStore().root / engine.model), compute_type="int8")

    def transcribe(clip: sl.AudioClip, language: str) -> str:
        segments, _ = model.transcribe(clip.samples, language=language, beam_size=1)
        return " ".join(segment.text.strip() for segment in segments)

    mine = sl.system("mine", transcribe=transcribe, version="base, beam 1", sample_rate=16_000)
    recordings = spoken[["audio", "text", "language"]]
    return sl.evaluate.recognition({"mine": mine, "here": lab}, recordings)


def compare_settings(lab: sl.Client) -> sl.evaluate.Report:
    """Return a report on a translator with terms to keep and without."""
    terms = ["Kumo", "API"]
    texts = [
        "Please restart the Kumo server.", "The API key of Kumo is secret.", "Kumo answers within a second.",
        "Do not show your API key to anyone.", "The API has two versions.", "Ask the Kumo team for a new API key.",
    ]  # fmt: skip
    table = pd.DataFrame({"text": texts, "source_lang": "en", "target_lang": "ja"})
    settings = {"plain": {}, "keywords": {"keywords": terms}}
    return sl.evaluate.translation(lab, table, settings=settings, glossary=terms)


def compare_nights(_lab: sl.Client) -> sl.evaluate.Report:
    """Return what changed after a service began to lose the end of each sentence."""
    texts = sl.datasets.prompts("en", quick=True)[["id", "text", "language"]]
    before, after = (
        sl.evaluate.recognition(None, texts.assign(service=shown), hypotheses="service")
        for shown in (texts["text"], texts["text"].str.rsplit(n=1).str[0])
    )
    return after.compare(before)


PICTURES: dict[str, Callable[[sl.Client], sl.evaluate.Report]] = {
    "report-recognizers": compare_recognizers,
    "report-translators": compare_settings,
    "report-changes": compare_nights,
}


ENGINES = "engines-list"
"""What ``speechlab engines list`` prints."""
FIGURES = {"figure-voices": "02-which-voice", "figure-noise": "03-recognizer"}
"""By name: the notebook whose first figure it is."""


def list_engines() -> str:
    """Return the engines as the command lists them, escaped."""
    environment = {**os.environ, "COLUMNS": "110"}
    done = subprocess.run(
        ["speechlab", "engines", "list"], check=True, capture_output=True, encoding="utf-8", env=environment
    )
    return html.escape(done.stdout)


def quantize(picture: Path) -> None:
    """Save a picture with few colors, which is as good for text."""
    Image.open(picture).convert("RGB").quantize(64, Image.Quantize.MAXCOVERAGE).save(picture, optimize=True)


def main(folder: Path, names: list[str]) -> None:
    """Take the pictures of these names, or all."""
    for name, notebook in FIGURES.items():
        (folder / f"{name}.png").write_bytes(first_figure(NOTEBOOKS, notebook))
    with (
        sl.connect() as lab,
        tempfile.TemporaryDirectory() as pages,
        sync_playwright() as playwright,
    ):
        path = next(filter(None, map(shutil.which, BROWSERS)), None)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        for name in names or (*PICTURES, ENGINES):
            picture = folder / f"{name}.png"
            if name == ENGINES:
                page.set_content(f"<pre style='font: 14px monospace; padding: 8px'>{list_engines()}</pre>")
                page.locator("pre").screenshot(path=picture)
                quantize(picture)
                continue
            report = PICTURES[name](lab)
            print(name, report.answer, sep=": ")
            page.goto(report.save(Path(pages) / f"{name}.html").as_uri())
            page.wait_for_timeout(500)
            page.screenshot(path=picture)
            quantize(picture)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
