"""The gallery of the site: pictures of the widgets from their guide, and of the studies from the notebooks."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

IMAGES = Path(__file__).parents[2] / "docs" / "images"
WIDGETS = {
    "A table with sound": ("table", "a-table-with-sound"),
    "The errors of two systems": ("errors", "the-errors-of-one-system-or-of-two"),
    "The voices of a service": ("voices", "the-voices-of-a-service"),
    "A player": ("player", "a-player"),
    "An editor of segments": ("editor", "an-editor-of-segments"),
    "A recorder": ("recorder", "a-recorder"),
    "A listening test": ("listening", "a-listening-test"),
    "Ratings side by side (MUSHRA)": ("listening-mushra", "a-listening-test"),
    "The preview of a batch": ("preview", "the-preview-of-a-batch"),
}
"""By title: the name of its pictures, and its heading in the guide of the widgets."""
STUDIES = {
    "Which voice should I use?": "02-which-voice",
    "How good is this recogniser, and in noise?": "03-recogniser",
    "Segments of a recording": "04-segments",
    "How soon is something heard?": "06-realtime",
    "Which system do listeners prefer?": "07-listening",
    "My model, the service, and last week": "11-any-system",
}
"""By question: the notebook that answers it; its first figure is shown."""
_INTRODUCTION = """# Gallery

Each picture leads to the page that explains it. Studies are shown by the first figure of a notebook and by the answer
that the study gave; a report has both, and a table in which each row can be heard.
"""


def gallery(notebooks: Path, pictures: Path) -> str:
    """Return the page, and write the figures of the notebooks beside the pictures of the widgets."""
    lines = [_INTRODUCTION, "## Widgets\n", "`````{container} gallery"]
    for title, (name, heading) in WIDGETS.items():
        themes = [theme for theme in ("light", "dark") if (IMAGES / f"{name}-{theme}.png").exists()]
        shown = {f"{name}-{theme}.png": f"only-{theme}" if len(themes) > 1 else "" for theme in themes}
        lines += _card(title, f"docs/widgets.md#{heading}", shown, "")
    lines += ["`````\n", "## Studies\n", "`````{container} gallery"]
    for question, name in STUDIES.items():
        outputs = _outputs(json.loads((notebooks / f"{name}.ipynb").read_text("utf-8")))
        figure = next(data["image/png"] for data in outputs if "image/png" in data)
        answers = [data["answer"] for data in outputs if "answer" in data]
        (pictures / f"{name}.png").write_bytes(base64.b64decode(figure))
        lines += _card(question, f"notebooks/{name}.ipynb", {f"{name}.png": "figure"}, "".join(answers[:1]))
    return "\n".join([*lines, "`````"]) + "\n"


def _outputs(notebook: dict[str, Any]) -> list[dict[str, str]]:
    """The results of the cells by type; what ``print(report.answer, …)`` wrote first is the answer."""
    outputs = []
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            data = {kind: "".join(text) for kind, text in output.get("data", {}).items()}
            if ".answer" in "".join(cell["source"]) and output.get("name") == "stdout":
                data["answer"] = "".join(output["text"]).partition("\n")[0]
            outputs.append(data)
    return outputs


def _card(title: str, page: str, shown: dict[str, str], text: str) -> list[str]:
    target = page.replace(".md", ".html").replace(".ipynb", ".html")
    lines = ["````{container} card"]
    for picture, kind in shown.items():
        lines += [f"```{{image}} docs/images/{picture}", f":target: {target}", f":alt: {title}"]
        lines += [*([f":class: {kind}"] if kind else []), "```"]
    return [*lines, f"\n[{title}]({page})\n", *([f"{text}\n"] if text else []), "````"]
