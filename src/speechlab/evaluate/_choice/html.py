"""HTML of the report of voices: the advice, and tables of the voices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from speechlab._arguments import is_number
from speechlab.display import Html, element, join, notebook_output, percent
from speechlab.evaluate._speech.html import filled_table, interval_cell, unbroken
from speechlab.evaluate._speech.speed import first_time
from speechlab.evaluate._speech.summary import ENOUGH

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd


def advice_parts(choice: pd.DataFrame, patterns: Sequence[str], notes: Sequence[str]) -> Html:
    """Return the advice, the patterns among the errors, and the notes."""
    parts = [
        element("p", element("strong", row["order"]), " ", row["advice"], dir="auto")
        for row in choice.to_dict("records")
    ]
    if patterns:
        parts += [element("p", element("strong", "What stands out")), _items(patterns)]
    if notes:
        parts += [element("p", element("strong", "Left out")), _items(notes)]
    return notebook_output(*parts)


def _items(lines: Sequence[str]) -> Html:
    return element("ul", *(element("li", line, dir="auto") for line in lines))


def voices_table(summary: pd.DataFrame) -> Html:
    """Return the error rates of the voices, and the certainty of their order."""
    rows = []
    for row in summary.to_dict("records"):
        rate, share = element("strong", percent(row["ranking_rate"])), _share(row["first_share"])
        forgiven = percent(row.get("tolerant_cer"))
        interval = interval_cell(row, "sentences")
        rows.append([_name(row), row["language"], rate, interval, forgiven, _text(row["group"]), share])
    caption = (
        "How well voices are understood, the best of each language first. Japanese is counted in readings, as it "
        f"sounds. An interval is given from {ENOUGH} sentences on. Voices that share a letter cannot be told apart; "
        "“first in” is the share of resampled sets of these sentences."
    )
    heads = ("voice", "language", "error rate", "95 % interval", "spellings forgiven", "group", "first in")
    return filled_table(heads, rows, caption, optional={"spellings forgiven"}, right={2, 4, 6})


def errors_table(summary: pd.DataFrame) -> Html:
    """Return the attribution of the errors."""
    rows = [
        [
            _name(row),
            row["language"],
            element("strong", percent(row["own_rate"])),
            percent(row["engine_rate"]),
            percent(row["shared_rate"]),
            *(_number(row[name], 0) for name in ("homophones", "number_errors", "spelling_errors")),
            _points(row["take_sd"]),
        ]
        for row in summary.to_dict("records")
    ]
    caption = (
        "Whose the errors are: the voice's own (slips of the recogniser by chance are among them), its engine's, and "
        "those that are made whatever the voice. Homophones (places), numbers and spellings (errors) only look "
        "wrong, and are in none of the three."
    )
    heads = (
        *("voice", "language", "its own", "its engine's", "whatever the voice", "homophones", "numbers"),
        *("spellings", "takes vary by (points)"),
    )
    optional = {"its engine's", "homophones", "numbers", "spellings", "takes vary by (points)"}
    return filled_table(heads, rows, caption, optional=optional, right=set(range(2, 9)))


def sound_table(summary: pd.DataFrame, *, timed: bool) -> Html:
    """Return the speed and the sound of the voices."""
    rows = [
        [
            _name(row),
            row["language"],
            _ranged(row, first_time(summary.columns) if timed else "rtf"),
            _ranged(row, "rtf"),
            _number(row.get("loudness_lufs"), 1),
            _pace(row),
            _pair(row, "leading_silence_s", "trailing_silence_s"),
            _number(row.get("longest_pause_s"), 2),
            _number(row.get("dnsmos_overall"), 2),
            _flags(row),
        ]
        for row in summary.to_dict("records")
    ]
    speed = (
        "Speed: medians of calls made one at a time, voices in turns, after one call of each that is not counted; "
        "within the lowest and the highest call, differences mean nothing. RTF: seconds until the last sound for one "
        "second of sound. "
        if timed
        else ""
    )
    caption = (
        f"{speed}Sound: medians of the clips. DNSMOS hears noise and distortion, not how natural a voice is."
    )
    heads = (
        *("voice", "language", "first sound (s)", "RTF", "loudness (LUFS)", "speaking rate"),
        *("silence before, after (s)", "longest pause (s)", "DNSMOS (1 to 5)", "looks wrong"),
    )
    optional = {"first sound (s)", "RTF", "DNSMOS (1 to 5)", "looks wrong"}
    return filled_table(heads, rows, caption, optional=optional, right=set(range(2, 9)))


def _name(row: dict[Any, Any]) -> Html:
    system = [element("small", unbroken(_text(row["system"])))] if "system" in row else []
    return join(Html("<br>"), [*system, element("strong", unbroken(_text(row["voice_name"])))])


def _pace(row: dict[Any, Any]) -> str:
    for name, unit in (
        ("morae_per_s", "morae/s"),
        ("words_per_s", "words/s"),
        ("characters_per_s", "characters/s"),
    ):
        if _known(row.get(name)):
            return unbroken(f"{row[name]:.1f} {unit}")
    return "–"


def _flags(row: dict[Any, Any]) -> str:
    told = [
        f"{row[name]} {name}"
        for name in ("clipped", "truncated", "repeated")
        if _known(row[name]) and row[name]
    ]
    return ", ".join(told) or "–"


def _pair(row: dict[Any, Any], one: str, other: str) -> str:
    return unbroken(f"{_number(row.get(one), 2)}, {_number(row.get(other), 2)}")


def _ranged(row: dict[Any, Any], name: str) -> Html | str:
    """A median, with the lowest and the highest value below it."""
    if not _known(row.get(name)):
        return "–"
    span = unbroken(f"{_number(row.get(f'{name}_low'), 2)} to {_number(row.get(f'{name}_high'), 2)}")
    return join(Html("<br>"), [element("strong", _number(row[name], 2)), element("small", span)])


def _number(value: object, places: int) -> str:
    return f"{value:.{places}f}" if _known(value) else "–"


def _points(value: object) -> str:
    return f"±{100 * value:.1f}" if _known(value) else "–"


def _share(value: object) -> str:
    return f"{value:.0%}" if _known(value) else "–"


def _known(value: object) -> TypeGuard[float]:
    return is_number(value) and value == value


def _text(value: object) -> str:
    return value if isinstance(value, str) else "–"
