"""The gallery of the site: pictures of the widgets from their guide, and of the studies from the notebooks."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

IMAGES = Path(__file__).parents[2] / "docs" / "images"
WIDGETS = {
    "Table of recordings": ("table", "docs/widgets.md#table-of-recordings"),
    "Errors of two systems": ("errors", "docs/widgets.md#errors-of-one-or-two-systems"),
    "Wrong references": ("references", "docs/evaluate.md#wrong-references"),
    "Voices explorer": ("voices", "docs/widgets.md#voices-explorer"),
    "Player": ("player", "docs/widgets.md#player"),
    "Segment editor": ("editor", "docs/widgets.md#segment-editor"),
    "Listening test": ("listening", "docs/widgets.md#listening-test"),
    "Ratings side by side (MUSHRA)": ("listening-mushra", "docs/widgets.md#listening-test"),
    "Recorder": ("recorder", "docs/widgets.md#recorder"),
    "Stream player": ("stream", "docs/widgets.md#stream-player"),
    "Batch preview": ("preview", "docs/widgets.md#batch-preview"),
}
"""By title: the name of its pictures, one for each theme, and the page that explains it."""
WHOLE = {"stream", "preview"}
"""Pictures that are too low to be cut."""
REPORT = "01-quickstart"
STUDIES = {
    "Which voice should I use?": "02-which-voice",
    "How good is this recognizer, and in noise?": "03-recognizer",
    "Does the glossary help?": "05-translate",
    "How long until the first sound?": "06-realtime",
    "Which system do listeners prefer?": "07-listening",
    "Ours or theirs?": "10-own-service",
    "My model, the service, and last week": "11-any-system",
    "Are the references right?": "12-references",
    "Which recognizer, at what price?": "13-price",
    "When does somebody speak?": "04-segments",
}
"""By question: the notebook that answers it; its first figure is shown, or else its first table with sound."""
_INTRODUCTION = """---
hide-toc: true
---

# Gallery

Each picture leads to the page that explains it. The tables with sound can be heard here.
"""
_REPORT = f"""## A report

What [a study](notebooks/{REPORT}.ipynb) shows in a notebook: the answer and how sure it is, its table, and the worst
rows with their sound.
"""
_SOUND = "data:audio"
_SENTENCE = re.compile(r".{30,}?[.?!](?=\s+[A-Z]|$)", re.DOTALL)


def gallery(notebooks: Path, pictures: Path) -> str:
    """Return the page, and write the figures of the notebooks beside the pictures of the widgets."""
    lines = [_INTRODUCTION, "## Widgets\n", "`````{container} gallery"]
    for title, (name, page) in WIDGETS.items():
        whole = " whole" if name in WHOLE else ""
        themes = [
            _image(f"{name}-{theme}.png", page, title, f"only-{theme}{whole}") for theme in ("light", "dark")
        ]
        lines += _card(title, page, "\n".join(themes))
    report = max(_outputs(_read(notebooks, REPORT), "text/html"), key=len)
    lines += ["`````\n", _REPORT, _raw(report, "still"), "\n## Studies\n", "`````{container} gallery"]
    for question, name in STUDIES.items():
        notebook, page = _read(notebooks, name), f"notebooks/{name}.ipynb"
        figures = _outputs(notebook, "image/png")
        for figure in figures[:1]:
            (pictures / f"{name}.png").write_bytes(base64.b64decode(figure))
        tables = [text for text in _outputs(notebook, "text/html") if _SOUND in text]
        shown = _image(f"{name}.png", page, question, "figure") if figures else _raw(tables[0], "still cut")
        lines += _card(question, page, shown, _answer(notebook))
    return "\n".join([*lines, "`````"]) + "\n"


def first_figure(notebooks: Path, name: str) -> bytes:
    """Return the first figure of a notebook, a PNG."""
    return base64.b64decode(_outputs(_read(notebooks, name), "image/png")[0])


def _read(notebooks: Path, name: str) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads((notebooks / f"{name}.ipynb").read_text("utf-8"))["cells"]
    return cells


def _outputs(cells: list[dict[str, Any]], kind: str) -> list[str]:
    """The results of this type, in their order."""
    data = [output.get("data", {}) for cell in cells for output in cell.get("outputs", ())]
    return ["".join(one[kind]) for one in data if kind in one]


def _answer(cells: list[dict[str, Any]]) -> str:
    """The first sentence of the notebook's answer that says more than yes."""
    text = "".join(cells[-1]["source"]).partition("**Answer:** ")[2]
    sentence = _SENTENCE.match(text.replace("\n", " "))
    assert sentence, "a notebook ends with its answer"
    return sentence[0]


def _image(picture: str, page: str, title: str, kind: str) -> str:
    target = page.replace(".md", ".html").replace(".ipynb", ".html")
    lines = (
        f"```{{image}} docs/images/{picture}",
        f":target: {target}",
        f":alt: {title}",
        f":class: {kind}",
        "```",
    )
    return "\n".join(lines)


def _raw(html: str, kind: str) -> str:
    """Markup of a notebook as it stands there."""
    return f'```{{raw}} html\n<div class="{kind}">{html}</div>\n```'


def _card(title: str, page: str, shown: str, text: str = "") -> list[str]:
    return ["````{container} card", shown, f"\n[{title}]({page})\n", *([f"{text}\n"] if text else []), "````"]
