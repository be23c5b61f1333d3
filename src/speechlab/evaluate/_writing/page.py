"""The page of a report: findings, figures, rows with sound and sorting, methods and record."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any

import orjson

from speechlab.display import Html, details, element, escape, join

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from speechlab.evaluate._finding import Conclusion
    from speechlab.evaluate._writing.methods import Methods


_TURNING = re.compile(r"[\u202a-\u202e\u2066-\u2069]")


def report_page(
    title: str,
    answer: Conclusion,
    sections: Iterable[Html],
    findings: Iterable[str],
    figures: Mapping[str, tuple[bytes, bytes]],
    rows: Any,
    methods: Methods,
    facts: Mapping[str, str],
    record: Mapping[str, Any],
    max_bytes: int,
) -> str:
    """Return the page.

    Args:
        title: Title, which stands small above the answer.
        answer: The answer, which is the first heading.
        sections: Parts with tables and findings.
        findings: Findings that stand with the methods.
        figures: Figures as SVG by title, each also for a phone.
        rows: The widget with the rows.
        methods: The methods.
        facts: Facts for the interpretation of the numbers.
        record: The record of the run.
        max_bytes: Maximum size of the page in bytes; the sound gets the remaining space.
    """
    told = "A click on the name of a column sorts."
    if rows.sound:
        told += " Sounds are previews (Opus)."
    drawn = [_figure(name, *vectors) for name, vectors in figures.items()]
    made = str(record.get("made", ""))[:10]
    sure = [element("p", answer.certainty, class_="sure", dir="auto")] if answer.certainty else []
    above = join(
        "",
        [
            element(
                "p", join(Html(" · "), [element("strong", title), *([made] if made else [])]), class_="kicker"
            ),
            element("h1", answer.text, dir="auto"),
            *sure,
            *drawn[:1],
            *sections,
            *drawn[1:],
            _heading("Rows"),
            element("p", told),
        ],
    )
    found = [element("p", words, dir="auto") for words in findings]
    sources = (
        element("ol", *(element("li", source) for source in methods.sources)) if methods.sources else None
    )
    kept = orjson.dumps(dict(record), option=orjson.OPT_INDENT_2, default=str).decode() if record else ""
    below = join(
        "",
        [
            _heading("Method"),
            details("How this was found", *found, element("p", methods.text), sources),
            details("Record of the run", element("pre", kept)) if kept else None,
            element("footer", join(Html(" · "), [f"{name}: {value}" for name, value in facts.items()])),
        ],
    )
    page: str = rows.page(_unturned(title), Html(_unturned(above)), Html(_unturned(below)), max_bytes)
    return page


def _unturned(text: str) -> str:
    """Return a text without characters that change the writing direction of all following text."""
    return _TURNING.sub("\N{REPLACEMENT CHARACTER}", text)


def _heading(name: str) -> Html:
    return element("h2", name, id=name.lower())


def _figure(name: str, vectors: bytes, phone: bytes) -> Html:
    """Return a figure as an image, with an alternative text."""
    wide, narrow = (
        f"data:image/svg+xml;base64,{base64.b64encode(one).decode('ascii')}" for one in (vectors, phone)
    )
    shown = f"Figure: {name}. Its numbers stand in the tables above."
    # An image runs no scripts and loads nothing, whatever its content.
    image = Html(
        f'<picture><source media="(max-width: 640px)" srcset="{narrow}">'
        f'<img src="{wide}" alt="{escape(shown)}"></picture>'
    )
    return element("figure", image, element("figcaption", name), aria_label=name)
