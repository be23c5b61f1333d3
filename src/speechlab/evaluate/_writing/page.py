"""The page of a report: findings, figures, rows with sound and sorting, methods and record."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any

import orjson
import pandas as pd

from speechlab.display import Html, details, element, escape, join
from speechlab.evaluate._writing.columns import listed, named, plural
from speechlab.evaluate._writing.contents import MANY_ROWS, PICKED_ROWS
from speechlab.evaluate._writing.held import held_report, sealed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from speechlab.evaluate._writing.contents import Contents

_FEW = 3
"""Languages that the line above the answer names."""
_TURNING = re.compile(r"[\u202a-\u202e\u2066-\u2069]")


def report_page(
    report: Contents,
    above: Iterable[Html],
    figures: Mapping[str, tuple[bytes, bytes]],
    rows: Any,
    max_bytes: int,
) -> str:
    """Return the page."""
    head, below = page_markup(report, above, figures, sound=rows.sound)
    data = held_report(report, figures, sound=rows.sound)
    held = Html(f'<script type="application/json" id="report">{data}</script>')
    page: str = rows.page(_unturned(report.title), head, below + held, max_bytes)
    return sealed(page)


def page_markup(
    report: Contents, above: Iterable[Html], figures: Mapping[str, tuple[bytes, bytes]], *, sound: bool
) -> tuple[Html, Html]:
    """Return what stands above the rows and what stands below them."""
    answer, record, methods = report.conclusion, report.record, report.said
    note = "A click on the name of a column sorts."
    rows = len(report.frame(report.shown.frame))
    if rows > MANY_ROWS and not report.shown.options.get("names"):
        worst = f"the {PICKED_ROWS:,} with most errors and " if report.shown.scored else ""
        note = f"Of {rows:,} rows, {worst}a random sample of {PICKED_ROWS:,} are shown; figures are of all. {note}"
    if sound:
        note += " Sounds are previews (Opus)."
    figures_drawn = [_figure(name, *vectors) for name, vectors in figures.items()]
    kicker = [*_scope(report), *filter(None, [str(record.get("made", ""))[:10]])]
    certainty = [element("p", answer.certainty, class_="sure", dir="auto")] if answer.certainty else []
    head = join(
        "",
        [
            element(
                "p",
                join(Html(" · "), [element("strong", report.title), *kicker]),
                class_="kicker",
            ),
            element("h1", answer.text, dir="auto"),
            *certainty,
            *figures_drawn[:1],
            *above,
            *figures_drawn[1:],
            _heading("Rows"),
            element("p", note),
        ],
    )
    method_findings = [
        element("p", str(finding), dir="auto") for finding in report.findings if finding.shown == "method"
    ]
    sources = (
        element("ol", *(element("li", source) for source in methods.sources)) if methods.sources else None
    )
    written = orjson.dumps(dict(record), option=orjson.OPT_INDENT_2, default=str).decode() if record else ""
    below = join(
        "",
        [
            _heading("Method"),
            details("How this was found", *method_findings, element("p", methods.text), sources),
            details("Record of the run", element("pre", written)) if written else None,
            element(
                "footer", join(Html(" · "), [f"{name}: {value}" for name, value in report.facts.items()])
            ),
        ],
    )
    return Html(_unturned(head)), Html(_unturned(below))


def _scope(report: Contents) -> list[str]:
    """What was studied, in numbers: systems, speakers, listeners, texts and languages."""
    table, role = report.table, report.columns
    study = report.record.get("now", {}).get("study", report.study)  # of changes, that of both reports
    nouns = {"listener": "listener", "item": "item", "system": "system"}
    nouns["voice"] = "speaker" if study == "recognition" else "voice"
    nouns |= {"condition": "condition", role.get("text", "text"): "text"}
    counts = {noun: table[name].map(str).nunique() for name, noun in nouns.items() if name in table.columns}
    if study == "listening" and "other" in table.columns:  # pairs have two systems each
        counts["system"] = pd.concat([table["system"], table["other"].dropna()]).map(str).nunique()
    codes = [
        table[role[name]] for name in ("source_lang", "target_lang", "language") if role.get(name) in table
    ]
    names = dict.fromkeys(named(str(code)) for column in codes for code in column.dropna().map(str).unique())
    counted = [plural(count, noun) for noun, count in counts.items() if count > 1 or noun == "text"]
    return [*counted, *([listed([*names])] if 0 < len(names) <= _FEW else [])]


def _unturned(text: str) -> str:
    """Return a text without characters that change the writing direction of all following text."""
    return _TURNING.sub("\N{REPLACEMENT CHARACTER}", text)


def _heading(name: str) -> Html:
    return element("h2", name, id=name.lower())


def _figure(name: str, vectors: bytes, phone: bytes) -> Html:
    """Return a figure as an image, with an alternative text."""
    wide, narrow = (
        f"data:image/svg+xml;base64,{base64.b64encode(drawing).decode('ascii')}"
        for drawing in (vectors, phone)
    )
    alternative = f"Figure: {name}. Its numbers stand in the tables above."
    # An image runs no scripts and loads nothing, whatever its content.
    image = Html(
        f'<picture><source media="(max-width: 640px)" srcset="{narrow}">'
        f'<img src="{wide}" alt="{escape(alternative)}"></picture>'
    )
    return element("figure", image, element("figcaption", name), aria_label=name)
