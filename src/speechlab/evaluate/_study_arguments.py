"""Checks of the arguments of studies, before anything is sent."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from speechlab._arguments import (
    build_argument_error,
    describe_missing_columns,
    find_likely_column,
    is_missing,
    is_number,
    is_whole_number,
    require_columns,
)
from speechlab.audio import measure_length_s
from speechlab.client import Client
from speechlab.contract import Language
from speechlab.datasets import find_usual_columns
from speechlab.errors import InvalidRequestError, SpeechLabError
from speechlab.remote import PREFETCHED_ROWS, hide_secrets, prefetch
from speechlab.text import guess_language, language_code

if TYPE_CHECKING:
    import pandas as pd

_SEPARATOR = re.compile(r"\s*[+/,]\s*")
_LANGUAGES = frozenset({"language", "source_lang", "target_lang"})


def check_table_and_columns(frame: object, *columns: object) -> None:
    """Check that a value is a table with rows and with these columns. Names of columns must be texts, as in batches.

    The user's own columns are copied to the report, so each needs a unique name, and no cell may contain half of a
    surrogate pair, with which no report can be saved.
    """
    frame = require_columns(frame, *columns)
    for name in columns:
        if not isinstance(name, str):
            raise InvalidRequestError(
                f"a column's name is {name!r}; it must be a string", parameter=str(name)
            )
    present = frame.columns
    if any(is_missing(name) for name in present):
        raise InvalidRequestError("the table has a column without a name; name or drop it", parameter="frame")
    if twice := list(dict.fromkeys(map(str, present[present.duplicated()]))):
        message = f"the table has several columns named {', '.join(map(repr, twice))}; rename or drop them"
        raise InvalidRequestError(message, parameter=twice[0])
    if not len(frame):
        raise InvalidRequestError("the table has no rows; give one row or more", parameter="frame")
    for name in present:
        cells = frame[name]
        row = next((row for row, cell in enumerate(cells, 1) if _is_unencodable(cell)), None)
        if row is not None:
            message = (
                f"row {row:,}: column {name!r} contains half of a surrogate pair, as in damaged files and cut "
                "texts; remove or correct it"
            )
            raise InvalidRequestError(message, parameter=str(name))


def resolve_columns(frame: pd.DataFrame, **columns: str | None) -> tuple[pd.DataFrame, list[str]]:
    """Return the table of a study and the names of its columns, which are found as users may name them.

    A code in place of a column of languages stands for all rows, and becomes a column. A column that is not named in
    the call may have the name that it has in other tools, as for :func:`speechlab.datasets.read`.
    """
    check_table_and_columns(frame)
    if columns.get("reference") == "auto":
        columns["reference"] = "reference" if "reference" in frame.columns else None
    requested = {argument: name for argument, name in columns.items() if name is not None}
    names = {argument: name for argument, name in requested.items() if name in list(frame.columns)}
    guesses = find_usual_columns(frame, taken=list(names.values()))
    for argument, name in requested.items():
        codes = find_language_codes(name) if argument in _LANGUAGES else ()
        if codes and (set(codes) <= set(Language) or argument not in names):  # codes that are no column
            frame = frame.assign(**{argument: name})
            names[argument] = argument
        elif argument not in names and name == argument and argument in guesses:
            names[argument] = guesses[argument]
    if absent := [argument for argument in requested if argument not in names]:
        raise InvalidRequestError(
            _describe_missing_columns(frame, requested, absent, names), parameter=absent[0]
        )
    check_table_and_columns(frame, *names.values())
    if (audio := names.get("audio")) is not None:
        cells = frame[audio].tolist()
        bare: list[Any] = [hide_secrets(cell) for cell in cells]
        if any(new is not old and new != old for new, old in zip(bare, cells, strict=True)):
            frame = frame.assign(**{audio: bare})
    return frame, [names[argument] for argument in requested]


def _describe_missing_columns(
    frame: pd.DataFrame, requested: Mapping[str, object], absent: Sequence[str], names: Mapping[str, object]
) -> str:
    """Return the message for missing columns, with an example of their names."""
    free = [name for name in frame.columns if name not in names.values()]
    likely = {argument: find_likely_column(free, argument, frame) for argument in absent}
    example = ", ".join(f"{argument}={name!r}" for argument, name in likely.items() if name)
    problem = describe_missing_columns(frame, *(requested[argument] for argument in absent), table="frame")
    advice = f"Name them in the call, as in {example or f'{absent[0]}=...'}, or rename them"
    seem = guess_language(frame[names["text"]].dropna().astype(str)) if "text" in names else None
    codes = [
        f"{argument}='{(argument != 'target_lang' and seem) or 'en'}'"
        for argument in absent
        if argument in _LANGUAGES
    ]
    return f"{problem}. {advice}{f'; {codes[0]} is for all rows' if codes else ''}"


def _is_unencodable(cell: object) -> bool:
    """Return whether a cell is a text that UTF-8 cannot encode."""
    if not isinstance(cell, str) or cell.isascii():
        return False
    try:
        cell.encode()
    except UnicodeEncodeError:
        return True
    return False


def check_reserved_columns(frame: pd.DataFrame, names: frozenset[str]) -> None:
    """Refuse a table with columns that the study can make."""
    results = [str(name) for name in frame.columns if name in names or str(name).startswith("speechlab: ")]
    if results:
        culprits = f"the column {results[0]!r}, which is a result" if len(results) == 1 else ""
        culprits = culprits or f"the columns {', '.join(map(repr, results))}, which are results"
        message = (
            f"the table has {culprits} of the study; drop or rename {'it' if len(results) == 1 else 'them'}"
        )
        raise InvalidRequestError(message, parameter=results[0])


def check_client(argument: str, value: object, more: str = "") -> None:
    """Check that a value is a client."""
    if not isinstance(value, Client):
        raise build_argument_error(
            argument, value, f"a Client, as sl.connect() gives it, or sl.system of a function{more}"
        )


def check_count(argument: str, value: object, what: str) -> int:
    """Check a requested number of 0 or more, and return it."""
    if not is_whole_number(value) or value < 0:
        raise build_argument_error(argument, value, f"a whole number of {what}")
    return int(value)


def check_whole_number(argument: str, value: object, least: int = 0, most: int | None = None) -> int:
    """Check a whole number with its bounds, and return it."""
    if not is_whole_number(value) or value < least or (most is not None and value > most):
        bounds = f"{least} on" if most is None else f"{least} to {most:,}"
        raise build_argument_error(argument, value, f"a whole number from {bounds}")
    return int(value)


def check_margin_and_baseline(
    margin: object, baseline: object, names: Sequence[str], default: float = 1.0
) -> dict[str, Any]:
    """Check the margin within which systems are level and the system in use; return those that are no default."""
    if not is_number(margin) or not 0 < float(margin) <= 100:
        raise build_argument_error("margin", margin, "a difference in points (of 100) above 0, such as 1")
    if baseline is not None and baseline not in names:
        offered = ", ".join(map(repr, names))
        raise build_argument_error("baseline", baseline, f"the name of a system: {offered}")
    claims: dict[str, Any] = {} if float(margin) == default else {"margin": float(margin)}
    return claims if baseline is None else {**claims, "baseline": str(baseline)}


def parse_language_code(language: object) -> str | None:
    """Return the plain code of a language, such as ``en`` for ``en-US``, or None if the value is not a language."""
    try:
        return language_code(language) if isinstance(language, str) else None
    except InvalidRequestError:
        return None


def find_language_codes(value: object) -> tuple[str, ...]:
    """Return the language codes of a row: one, several for a mixed row, or none if one of them is not a language."""
    if not isinstance(value, str):
        return ()
    try:
        return tuple(dict.fromkeys(language_code(code) for code in _SEPARATOR.split(value.strip())))
    except InvalidRequestError:
        return ()


def describe_missing_language(cell: object) -> str:
    """Return the message for a row without a language code, with its value instead."""
    subject = f"{cell!r:.60} is" if isinstance(cell, str) and cell.strip() else "the row has"
    return f"{subject} no code of a language; give one, such as 'ja' or 'en'"


def measure_durations(recordings: Sequence[object]) -> list[float]:
    """Return the durations of recordings in seconds. An unreadable one becomes an error row later, not here."""
    durations: list[float] = []
    for start in range(0, len(recordings), PREFETCHED_ROWS):
        part = recordings[start : start + PREFETCHED_ROWS]
        prefetch(part)
        durations += map(_measure_duration, part)
    return durations


def _measure_duration(recording: object) -> float:
    try:
        return measure_length_s(recording)
    except (SpeechLabError, OSError, TypeError, ValueError):
        return float("nan")
