"""Transcripts in NIST's format ``trn``: one utterance on each line, followed by its name in parentheses."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from speechlab._arguments import has_column, is_missing, require_columns
from speechlab._files import user_path, whole_file
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    import pandas as pd

_LINE = re.compile(r"(.*)\(([^()\s]+)\)\s*")
_NAME = re.compile(r"[^()\s]+")


def read_trn(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read transcripts from a ``trn`` file.

    Args:
        path: The file, in UTF-8. Empty lines and comments (``;;``) are skipped.

    Returns:
        A table with ``utterance`` (the name in parentheses), ``speaker`` (its part before the first ``-`` or ``_``,
        as with sclite's ``-i spu_id``) and ``text``.

    Raises:
        InvalidRequestError: The file is not in UTF-8, a line has no name in parentheses at its end, or a name occurs
            twice.

    Example:
        >>> write_trn(pd.DataFrame({"text": ["good morning"]}, index=["s1-001"]), "ref.trn")
        >>> read_trn("ref.trn")
          utterance speaker          text
        0    s1-001      s1  good morning
    """
    import pandas as pd

    file = user_path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        message = f"{file.name} is not in UTF-8; convert it, as in iconv -f EUC-JP -t UTF-8"
        raise InvalidRequestError(message, parameter="path") from None
    rows: dict[str, tuple[str, str, str]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith(";;"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            message = (
                f"line {number} of {file.name} has no name at its end: {line[:60]!r}; write the name of the "
                "utterance in parentheses, as in 'good morning (s1-001)'"
            )
            raise InvalidRequestError(message, parameter="path")
        if match[2] in rows:
            message = (
                f"line {number} of {file.name} has the name {match[2]!r} once more; give each utterance its "
                "own"
            )
            raise InvalidRequestError(message, parameter="path")
        speaker = re.split("[-_]", match[2], maxsplit=1)[0]
        rows[match[2]] = match[2], speaker, match[1].strip()
    return pd.DataFrame(rows.values(), columns=["utterance", "speaker", "text"]).astype("string")


def write_trn(
    frame: pd.DataFrame, path: str | os.PathLike[str], *, text: str = "text", utterance: str | None = None
) -> None:
    """Write transcripts as a ``trn`` file, for sclite and similar programs.

    Args:
        frame: One row for each utterance. A missing text is written as an empty one.
        path: The file, written in UTF-8; an existing file is replaced.
        text: Column of the texts; line breaks in them become spaces.
        utterance: Column of the utterances' names, such as ``"speaker1-0001"``; None for the column ``utterance``, or
            for the index if there is no such column.

    Raises:
        InvalidRequestError: A column is missing, or a name is empty, has white space or parentheses, or occurs twice.

    Example:
        >>> write_trn(pd.DataFrame({"text": ["good morning"]}, index=["s1-001"]), "ref.trn")
        >>> Path("ref.trn").read_text("utf-8").strip()
        'good morning (s1-001)'
    """
    require_columns(frame, text, *(() if utterance is None else (utterance,)))
    if utterance is None and has_column(frame, "utterance", "utterance"):
        utterance = "utterance"
    names = frame.index.tolist() if utterance is None else frame[utterance].tolist()
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            message = (
                f"{name!r:.60} cannot name an utterance in a trn file; use no white space and no parentheses, as in "
                "'speaker1-0001', in a column (utterance=) or in the index"
            )
            raise InvalidRequestError(message, parameter="utterance")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidRequestError(
            f"the name {twice!r} occurs twice; give each utterance its own", parameter="utterance"
        )
    # A line that begins with two semicolons would be a comment, so it gets a space before them.
    lines = [
        f"{_line('' if is_missing(cell) else str(cell))} ({name})\n"
        for cell, name in zip(frame[text].tolist(), names, strict=True)
    ]
    with whole_file(user_path(path)) as draft:
        draft.write_text("".join(lines), encoding="utf-8")


def _line(text: str) -> str:
    line = " ".join(text.split())
    return f" {line}" if line.startswith(";;") else line
