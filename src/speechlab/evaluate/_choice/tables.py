"""Tables of the voices: how well they are understood, whose the errors are, how they sound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_missing
from speechlab.evaluate._choice.measured import RATED
from speechlab.evaluate._speech.tables import interval_column, ranked_rows, rows_column, start_column
from speechlab.evaluate._writing.columns import Shown, View, count, number, rate, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

_PACES = (("morae_per_s", "morae/s"), ("words_per_s", "words/s"), ("characters_per_s", "characters/s"))
_FLAGS = ("clipped", "truncated", "repeated")


def voices_view(summary: pd.DataFrame) -> View:
    """Return the error rates of the voices, and the certainty of their order."""
    columns = [
        *_who(summary),
        rows_column("sentences"),
        rate("error rate", "ranking_rate", strong=True),
        interval_column("sentences"),
        rate("with notation", "notation_rate", optional=True),
        text("group", "group"),
        *(
            [number("first sound (s)", start_column(summary))]
            if start_column(summary) in summary.columns
            else []
        ),
    ]
    note = (
        "The fewest errors of each language first. Japanese is counted in readings, English and Chinese without "
        "differences of notation."
    )
    return View.of("The voices", columns, ranked_rows(summary), note)


def errors_view(summary: pd.DataFrame) -> View:
    """Return the attribution of the errors."""
    columns = [
        *_who(summary),
        rate("the voice's own", "own_rate", strong=True),
        rate("its engine's", "engine_rate", optional=True),
        rate("whatever the voice", "shared_rate"),
        count("homophones", "homophones", optional=True),
        count("numbers", "number_errors", optional=True),
        count("spellings", "spelling_errors", optional=True),
        Shown("takes vary by (points)", _takes, figure=True, optional=True),
    ]
    note = (
        "The recogniser's slips by chance are among a voice's own errors. Homophones, numbers and spellings only "
        "look wrong, and are not among them."
    )
    return View.of("Whose the errors are", columns, summary, note)


def sound_view(summary: pd.DataFrame, *, timed: bool) -> View:
    """Return the speed and the sound of the voices."""
    columns = [
        *_who(summary),
        number("first sound (s)", start_column(summary), optional=True, ends=True),
        number("RTF", "rtf", optional=True, ends=True),
        number("loudness (LUFS)", "loudness_lufs", ".1f"),
        Shown("speaking rate", _pace, figure=True),
        Shown("silence before, after (s)", _silence, figure=True),
        number("longest pause (s)", "longest_pause_s"),
        number("DNSMOS (1 to 5)", "dnsmos_overall", optional=True),
        *(number(name.removeprefix(RATED), name) for name in summary.columns if str(name).startswith(RATED)),
        Shown("looks wrong", _flags, optional=True),
    ]
    speed = "Speed: medians of calls made one at a time, voices in turns, with their range. " if timed else ""
    note = (
        f"{speed}Sound: medians of the clips. DNSMOS hears noise and distortion, not how natural a voice is."
    )
    return View.of("Speed and sound", columns, summary, note)


def _who(summary: pd.DataFrame) -> list[Shown]:
    sides = [text("system", "system")] if "system" in summary.columns else []
    return [*sides, text("voice", "voice_name", strong=True), text("language", "language")]


def _pace(row: Mapping[Any, Any]) -> str | None:
    return next((f"{row[name]:.1f} {unit}" for name, unit in _PACES if not is_missing(row.get(name))), None)


def _silence(row: Mapping[Any, Any]) -> str | None:
    before, after = row.get("leading_silence_s"), row.get("trailing_silence_s")
    if is_missing(before) or is_missing(after):
        return None
    return f"{before:.2f}, {after:.2f}"


def _takes(row: Mapping[Any, Any]) -> str | None:
    return None if is_missing(row.get("take_sd")) else f"±{100 * row['take_sd']:.1f}"


def _flags(row: Mapping[Any, Any]) -> str | None:
    told = [f"{row[name]} {name}" for name in _FLAGS if not is_missing(row.get(name)) and row[name]]
    return ", ".join(told) or None
