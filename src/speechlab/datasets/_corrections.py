"""Corrections of references: a file of their own, which leaves the data as they are."""

from __future__ import annotations

import os
import re
from pathlib import PurePath
from typing import Any

from speechlab._arguments import convert_table, is_missing, is_pandas_frame, require_columns
from speechlab._files import expand_user_path
from speechlab._pandas import pd
from speechlab.audio import FileSegment
from speechlab.errors import InvalidRequestError
from speechlab.remote import is_remote
from speechlab.tables import read_delimited

# Columns of a file of corrections.
CORRECTIONS = ("row", "old", "new", "by", "when", "why")
_TIMES = re.compile(r"#t=[\d.,]+\Z")
_MAX_CORRECTIONS_SHOWN = 3  # maximum number of corrections that an error names


def row_keys(frame: pd.DataFrame, *, audio: str = "audio") -> list[str]:
    """Return a name for each row that stays the same wherever the data lie.

    Args:
        frame: One row for each recording.
        audio: Column of the recordings.

    Returns:
        The ``id`` of each row if ids are unique; else the name of its file with as many folders as distinguish it,
        with its seconds for a part of a file (``talk.wav#t=1.5,4``); for rows without either, ``row`` and its number
        from 1.

    Example:
        >>> row_keys(pd.DataFrame({"audio": ["/data/ada/1.wav", "/data/bob/1.wav", "/data/bob/2.wav"]}))
        ['ada/1.wav', 'bob/1.wav', '2.wav']
    """
    frame = require_columns(frame)
    if "id" in frame.columns and frame["id"].notna().all() and frame["id"].is_unique:
        return [str(name) for name in frame["id"]]
    cells = _list_audio_cells(frame, audio)
    places = _index_by_path_end(cells)
    unique = ((end for end in _list_path_ends(cell) if len(places[end]) == 1) for cell in cells)
    return [next(ends, f"row {number}") for number, ends in enumerate(unique, 1)]


def apply_corrections(
    frame: pd.DataFrame,
    corrections: str | os.PathLike[str] | pd.DataFrame,
    *,
    text: str = "text",
    audio: str = "audio",
) -> pd.DataFrame:
    """Return the rows with their references corrected; the file of the data is not changed.

    Args:
        frame: One row for each recording.
        corrections: A table, or the path of a CSV file, with ``row`` (see :func:`row_keys`; or the end of the path of
            its recording), ``old`` and ``new`` (texts; an equal text says that the reference was looked at and is
            right), ``by``, ``when`` and ``why``. Of several corrections of a row, each begins with the text that the
            one before ended with.
        text: Column of the references.
        audio: Column of the recordings.

    Raises:
        InvalidRequestError: The file cannot be read or lacks a column, or a correction fits no row: there is no row
            of its name, several rows have it, or the text of the row is not ``old``. Nothing is corrected then.

    Example:
        >>> data = pd.DataFrame({"id": ["a", "b"], "text": ["ten cats", "two dogs"]})
        >>> fixes = pd.DataFrame(
        ...     {
        ...         "row": ["a"],
        ...         "old": ["ten cats"],
        ...         "new": ["ten hats"],
        ...         "by": ["Ada"],
        ...         "when": [""],
        ...         "why": [""],
        ...     }
        ... )
        >>> apply_corrections(data, fixes)["text"].tolist()
        ['ten hats', 'two dogs']
    """
    frame = require_columns(frame, text, hint="Name the right one, as in text='sentence'")
    fixes = read_corrections(corrections)
    keys = row_keys(frame, audio=audio)
    by_name = _index_by_path_end(_list_audio_cells(frame, audio)) | {
        key: [place] for place, key in enumerate(keys)
    }
    texts: list[Any] = frame[text].tolist()
    refusals = []
    for name, old, new in zip(fixes["row"], fixes["old"], fixes["new"], strict=True):
        places = by_name.get(name, [])
        if len(places) != 1:
            why = f"{len(places)} rows have this name" if places else "there is no such row"
            refusals.append(f"{name!r}: {why}")
        elif texts[places[0]] != old:
            refusals.append(f"{name!r} has the text {texts[places[0]]!r:.60}, not {old!r:.60}")
        else:
            texts[places[0]] = new
    if refusals:
        reasons = "; ".join(refusals[:_MAX_CORRECTIONS_SHOWN]) + (
            "; …" if len(refusals) > _MAX_CORRECTIONS_SHOWN else ""
        )
        if set(fixes["row"]) - set(by_name):
            reasons += f". Rows have the names of row_keys, such as {keys[0]!r}" if keys else ""
        message = (
            f"{len(refusals):,} of {len(fixes):,} corrections fit no row: {reasons}. Use the data that they were "
            "made for, or remove them from the file; nothing was corrected"
        )
        raise InvalidRequestError(message, parameter="corrections")
    cells = pd.Series(texts, index=frame.index, dtype=frame[text].dtype)
    return frame.assign(**{text: cells})


def read_corrections(corrections: str | os.PathLike[str] | pd.DataFrame) -> pd.DataFrame:
    """Return corrections as a table of texts."""
    table: Any = convert_table(corrections)
    if not is_pandas_frame(table):
        path = expand_user_path(corrections)  # type: ignore[arg-type]  # no table: a path
        try:
            table = read_delimited(path).fillna("")
        except (OSError, ValueError) as error:
            message = (
                f"{path} is no file of corrections ({error}); give a CSV file with {', '.join(CORRECTIONS)}"
            )
            raise InvalidRequestError(message, parameter="corrections") from error
    hint = "A file of corrections has row, old, new, by, when and why"
    fixes = require_columns(table, "row", "old", "new", hint=hint)
    return fixes.assign(**{name: "" for name in CORRECTIONS if name not in fixes.columns})[list(CORRECTIONS)]


def _list_audio_cells(frame: pd.DataFrame, audio: str) -> list[Any]:
    return frame[audio].tolist() if audio in frame.columns else [None] * len(frame)


def _index_by_path_end(cells: list[Any]) -> dict[str, list[int]]:
    """Return the positions of recordings by each end of their path."""
    places: dict[str, list[int]] = {}
    for place, cell in enumerate(cells):
        for end in _list_path_ends(cell):
            places.setdefault(end, []).append(place)
    return places


def _list_path_ends(cell: object) -> list[str]:
    """Return the ends of the path of a recording, the shortest first: its file alone, then with more folders."""
    if is_missing(cell) or not isinstance(cell, str | PurePath | FileSegment) or not str(cell).strip():
        return []
    text = str(cell)
    if is_remote(text):  # of an archive's file, without the archive
        text = "".join([text.partition("::")[0], *_TIMES.findall(text)]) if "::" in text else text
    names = [name for name in PurePath(text).parts if name not in {"/", "\\"}]
    return ["/".join(names[-depth:]) for depth in range(1, len(names) + 1)]
