"""Values that may be mistyped names of columns, such as ``context="hints"`` for the column ``hint``."""

from __future__ import annotations

import re
import warnings
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from speechlab.batch._outcome import calls_from_outside
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

_FREE = frozenset(
    {"keywords", "hotwords", "context", "model", "session_id", "source_lang", "target_lang", "language"}
)
"""Parameters whose texts speechlab cannot check."""
_SPOKEN = frozenset({"keywords", "hotwords", "context"})
"""Parameters of these whose values are words that seldom look like names of columns."""
_LONGEST = 40
_SHORTEST = 3
_ALIKE = 0.8
_LIKE_A_COLUMN = re.compile(r"[a-z][a-z0-9_]{2,39}")


def ask_if_mistyped(parameter: str, value: str, have: Sequence[Any]) -> None:
    """Refuse a value that is nearly the name of a column, and warn about a value that looks like a name."""
    if parameter not in _FREE:
        return
    near = _near(value, [name for name in have if isinstance(name, str)])
    if near is not None:
        message = (
            f"{parameter} {value!r} is no column of the table, but {near!r} is. Say which is meant: "
            f"{parameter}=sl.batch.Column({near!r}) for the column, or {parameter}=sl.batch.Value({value!r}) for "
            "this text in every row"
        )
        raise InvalidRequestError(message, parameter=parameter)
    if value == parameter:
        message = (
            f"{parameter} {value!r} is no column of the table, which has {', '.join(map(repr, have)) or 'none'}; "
            f"give sl.batch.Column(…) for one of them, or sl.batch.Value({value!r}) for this text in every row"
        )
        raise InvalidRequestError(message, parameter=parameter)
    if parameter in _SPOKEN and _LIKE_A_COLUMN.fullmatch(value):
        message = (
            f"{parameter} is the text {value!r} for every row, since no column has that name; "
            f"{parameter}=sl.batch.Value({value!r}) says the same without this warning"
        )
        warnings.warn(message, stacklevel=calls_from_outside())


def _near(value: str, columns: list[str]) -> str | None:
    """The column with a name similar to a value.

    Names are similar if they differ in case, punctuation, order of words or a letter or two, or if the value is one
    of the words of the name.
    """
    plain = _plain(value)
    if not _SHORTEST <= len(plain) <= _LONGEST:
        return None
    for name in columns:
        if sorted(plain) == sorted(_plain(name)) or plain in map(_plain, re.split(r"[\W_]+", name)):
            return name
    found = get_close_matches(plain, [_plain(name) for name in columns], n=1, cutoff=_ALIKE)
    return next((name for name in columns if found and _plain(name) == found[0]), None)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()
