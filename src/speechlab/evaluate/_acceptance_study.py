"""The study of a checked batch: exceptions first, and a bound on what slipped through, from a heard sample."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_missing, require_columns
from speechlab._brief import shorten_tracebacks
from speechlab._pandas import pd
from speechlab.audio import measure_length_s
from speechlab.datasets import to_table
from speechlab.errors import InvalidRequestError, SpeechLabError
from speechlab.evaluate._acceptance.acceptance_report import (
    DECISION,
    LOST,
    RIGHT,
    SAMPLED,
    WRONG,
    build_acceptance_report,
)
from speechlab.evaluate._report import Report
from speechlab.evaluate._writing.record import build_record
from speechlab.remote import is_remote

if TYPE_CHECKING:
    from speechlab.widgets import AudioTable

# Columns of a checked batch that the report reads by their own names.
_CHECKED = ("audio", "duration_s", "status", "error", "key", "transcript", "take", "takes", "check", "why")
# Those of numbers, which are texts in a CSV file.
_NUMBERS = ("duration_s", "take", "takes")


@shorten_tracebacks
def acceptance(
    made: pd.DataFrame,
    heard: AudioTable | pd.DataFrame | str | os.PathLike[str] | None = None,
    *,
    text: str = "text",
    language: str = "language",
    prefix: str = "",
    title: str = "Which lines are ready",
) -> Report:
    """Say which lines of a checked batch are ready, which need an ear, and how many of the ready ones may be wrong.

    What slipped through is known only by hearing: ``report.sample(60)`` is a table of the exceptions and of ready
    lines drawn by chance, with a key each for right and wrong. Given back as ``heard``, it makes the bound: the most
    wrong lines among the ready ones that such a sample leaves possible (exact, hypergeometric, one-sided, 95%).
    Without a sample that was heard whole there is no bound. A line whose sound cannot be read has failed.

    Args:
        made: What ``sl.batch.synthesize(…, check=…)`` returned.
        heard: A sample with its decisions: the table of ``report.sample``, its ``frame``, or a file of that.
        text: Column of the texts.
        language: Column of the languages, where there is one.
        prefix: The prefix of the batch's columns.
        title: Title of the report.

    Returns:
        A report: ``table`` has the lines, exceptions first, with ``state`` (*ready*, *needs an ear*, *wrong*,
        *failed*, *not asked*), ``decision`` and ``sampled``; ``summary`` counts them by voice and language;
        ``tables["bound"]`` has the sample and what follows from it.

    Raises:
        InvalidRequestError: The table is of no checked batch, a column of numbers has others, or a note of what was
            heard is neither right nor wrong.

    Example:
        >>> facts = dict.fromkeys(["duration_s", "error", "transcript", "take", "why"]) | {"takes": 1}
        >>> lines = [
        ...     {"text": f"{n}", "key": f"{n}", "check": "ready", "status": "ok", **facts} for n in range(9)
        ... ]
        >>> made = pd.DataFrame(lines).assign(audio=sl.AudioClip(np.zeros(80), 8_000))
        >>> acceptance(made).conclusion.text
        'All 9 lines are ready.'
    """
    frame = to_table(made).rename(columns={prefix + name: name for name in _CHECKED})
    hint = "Give what sl.batch.synthesize(…, check=recognizer) returned, with columns='all'"
    frame = require_columns(frame, text, *_CHECKED, argument="made", hint=hint)
    decisions = {} if heard is None else _read_decisions(heard)
    decided: Any = pd.array([decisions.get(key) for key in frame["key"]], dtype="string")
    rows = _mark_lost_sounds(_parse_numbers(frame)).assign(**{DECISION: decided})
    rows[SAMPLED] = frame["key"].isin([*decisions])
    columns = {"text": text} | ({"language": language} if language in rows.columns else {})
    record = build_record("acceptance", None, text=text, language=language)
    return Report.of(build_acceptance_report(title, rows, columns, record))


def _parse_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with numbers where a file has them as texts."""
    for name in _NUMBERS:
        cells = frame[name].astype(object).where(frame[name].notna(), None)
        numbers = pd.to_numeric(cells, errors="coerce")
        wrong = (numbers.isna() & cells.notna()).to_numpy().nonzero()[0]
        if len(wrong):
            at = int(wrong[0])
            message = f"row {at + 1:,}: column {name!r} holds {cells.iloc[at]!r:.40}, which is no number"
            raise InvalidRequestError(message, parameter="made")
        frame = frame.assign(**{name: numbers.astype("Float64" if name == "duration_s" else "Int64")})
    return frame


def _mark_lost_sounds(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows, of which one that was checked, and whose sound cannot be read now, has failed."""
    cells = zip(frame["audio"].tolist(), frame["check"].tolist(), strict=True)
    reasons = [None if is_missing(check) else _find_lost_reason(sound) for sound, check in cells]
    if not any(reasons):
        return frame
    columns = {name: frame[name].tolist() for name in ("audio", "check", "status", "error", "why")}
    for at, reason in enumerate(reasons):
        if reason is not None:
            for name, value in zip(columns, (None, None, "error", reason, reason), strict=True):
                columns[name][at] = value
    return frame.assign(**{name: pd.Series(cells, frame.index, "object") for name, cells in columns.items()})


def _find_lost_reason(sound: Any) -> str | None:
    """Return why the sound of a line cannot be read, or None if it can; an address is not asked."""
    if is_missing(sound):
        return f"{LOST}there is none"
    try:
        if not (isinstance(sound, str) and is_remote(sound)):
            measure_length_s(sound)
    except (SpeechLabError, OSError, TypeError, ValueError) as error:
        return f"{LOST}{error}"
    return None


def _read_decisions(heard: Any) -> Mapping[str, str | None]:
    """Return what was decided of each line that was to be heard; None where nothing was."""
    frame = require_columns(to_table(getattr(heard, "frame", heard)), "key", "note", argument="heard")
    frame = frame[frame["key"].notna()]  # without lines that were never spoken
    decisions: dict[str, str | None] = {}
    notes = frame["note"].astype(object).fillna("").astype(str).str.strip().str.lower()
    for key, note in zip(frame["key"], notes, strict=True):
        decisions[key] = next((word for word in (RIGHT, WRONG) if note.startswith(word)), None)
        if note and decisions[key] is None:
            message = f"the note {note!r:.40} of a line is no decision; begin it with {RIGHT!r} or {WRONG!r}"
            raise InvalidRequestError(message, parameter="heard")
    return decisions
