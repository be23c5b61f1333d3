"""Tables of a report of speech: the rates of voices or systems, and their speed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_missing
from speechlab.display import percent
from speechlab.evaluate._made import SIDES
from speechlab.evaluate._speech.speed import under_load
from speechlab.evaluate._speech.summary import FLAGS, NO_SPEAKER, ranking_units
from speechlab.evaluate._writing.columns import Shown, View, count, number, rate, text
from speechlab.evaluate._writing.differences import ENOUGH

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    import pandas as pd

_STARTS = ("first_audible_s", "first_sound_s", "first_byte_s", "total_s")
"""Times that people wait for, the first that a table has; the second is of reports of 0.1."""
UNITS = {"word": "words", "char": "characters", "reading": "readings", "mixed": "words and characters"}


_LOUDNESS = " Noise in dB: how far speech stands above it; the smaller, the louder the noise."


def rates_view(summary: pd.DataFrame) -> View:
    """Return the error rates by voice, and by system and condition if there are several."""
    sides = [name for name in SIDES if name in summary.columns]
    flags = [name for name in FLAGS if name in summary.columns]
    no_speakers = bool(sides) and bool((summary["voice"] == NO_SPEAKER).all())
    columns = [
        *(text(name, name, strong=True) for name in sides),
        *([] if no_speakers else [text("voice", "voice_name", strong=not sides)]),
        text("language", "language"),
        rows_column("clips"),
        rate("error rate", "ranking_rate", strong=True),
        interval_column("clips"),
        Shown("on the same clips", _common, figure=True, optional=True),
        Shown("counted in", lambda row: _unit(row["ranking_unit"])),
        rate("with notation", "notation_rate", optional=True),
        *(count(name.replace("_", " "), name, optional=True) for name in flags),
        *([] if "condition" in sides else _pace(summary)),  # calls are timed under one condition alone
    ]
    has_rates = summary["ranking_rate"].notna().any()
    unflagged = [name.replace("_", " ") for name in flags if has_rates and not summary[name].any()]
    note = (
        "The fewest errors of each language first. Japanese is counted in readings, English and Chinese without "
        f"differences of notation.{_LOUDNESS if 'condition' in sides else ''}"
        + (f" No {' or '.join(unflagged)} found." if unflagged else "")
    )
    return View.of("Error rates", columns, ranked_rows(summary), note)


def _pace(summary: pd.DataFrame) -> list[Shown]:
    return [
        number(_waited(summary), start_column(summary), optional=True),
        number("final text (s)", "finalization_s", optional=True),
        rate("unstable words", "unstable_partial_word_ratio", optional=True),
        number("RTF", "rtf", optional=True),
    ]


def speed_view(summary: pd.DataFrame) -> View:
    """Return the speed of the voices, or of the recognisers."""
    is_recognition = start_column(summary) == "total_s"
    sides = [name for name in SIDES if name in summary.columns]
    wait = (
        number("text (s)", "total_s", with_range=True)
        if is_recognition
        else number("first sound (s)", start_column(summary), with_range=True, optional=True)
    )
    columns = [
        *(text(name, name, strong=True) for name in sides),
        *(
            []
            if sides and (summary["voice"] == NO_SPEAKER).all()
            else [text("voice", "voice_name", strong=not sides)]
        ),
        text("language", "language"),
        count("calls", "timed_calls"),
        wait,
        number("RTF", "rtf", strong=True, with_range=True),
    ]
    note = "Medians of calls made one at a time, in turns, with their range."
    return View.of("Speed", columns, summary[summary[start_column(summary)].notna()], note)


def load_views(speed: pd.DataFrame) -> list[View]:
    """The speed by the number of calls under way; nothing if that was one number."""
    if not len(speed) or "concurrency" not in speed.columns or speed["concurrency"].nunique() < 2:
        return []
    columns = [
        text("system", "system", strong=True, optional=True),
        text("voice", "voice_name", strong=True, optional=True),
        text("language", "language", optional=True),
        text("from", "source_lang", optional=True),
        text("to", "target_lang", optional=True),
        count("at once", "concurrency"),
        count("calls", "timed_calls"),
        number("first sound (s)", "first_audible_s", optional=True, with_range=True),
        number("first word (s)", "first_word_s", optional=True, with_range=True),
        number("end (s)", "total_s", optional=True, with_range=True),
        number("end, 95 of 100 calls (s)", "total_s_p95", optional=True, with_range=True),
        number("RTF", "rtf", optional=True),
        count("calls that stall", "stalled_calls", optional=True),
    ]
    note = (
        "Medians with their range, by the number of calls that begin together. A call stalls if its player has to "
        "wait for sound."
    )
    return [View.of("Speed under load", columns, under_load(speed), note)]


def ranked_rows(summary: pd.DataFrame) -> list[dict[Hashable, Any]]:
    """Return the rows of a summary, with the unit that ranks them, and the rate with notation where it differs."""
    differs = summary["error_rate"] != summary["ranking_rate"]
    return summary.assign(
        ranking_unit=ranking_units(summary), notation_rate=summary["error_rate"].where(differs)
    ).to_dict("records")


def start_column(table: pd.DataFrame) -> str:
    """The column with the time that people wait for: until speech begins, or until the text is there."""
    return next((name for name in _STARTS if name in table.columns), _STARTS[0])


def _waited(table: pd.DataFrame) -> str:
    return "text (s)" if start_column(table) == "total_s" else "first sound (s)"


def rows_column(what: str) -> Shown:
    """Return the column of how many rows have a score, of how many there are."""

    def cell(row: Mapping[Any, Any]) -> str:
        scored, total = row["utterances_scored"], row["utterances"]
        return f"{total:,}" if scored == total else f"{scored:,} of {total:,}"

    return Shown(what, cell, figure=True)


def interval_column(what: str) -> Shown:
    """Return the column of the 95 % interval, or of how many more rows it takes."""

    def cell(row: Mapping[Any, Any]) -> str | None:
        if not is_missing(row["interval_needs"]) and row["interval_needs"] > 0:
            unit = row.get("interval_unit")
            return f"from {ENOUGH} {what if is_missing(unit) else f'{unit}s'} on"
        low, high = row["ranking_rate_low"], row["ranking_rate_high"]
        return None if is_missing(low) else f"{percent(low)} to {percent(high)}"

    return Shown("95 % interval", cell, figure=True)


def _common(row: Mapping[Any, Any]) -> str | None:
    shared = row.get("common_utterances")
    return None if is_missing(shared) else f"{percent(row['common_rate'])} on {shared}"


def _unit(unit: object) -> str | None:
    return UNITS.get(unit, unit) if isinstance(unit, str) else None
