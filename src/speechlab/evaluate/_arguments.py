"""What a study is given, checked before anything is asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from speechlab.contract import Voice
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from speechlab.client import VoiceCatalogue


def need_columns(frame: object, *columns: object) -> None:
    """Refuse what is no table, or lacks a column.

    Raises:
        InvalidRequestError: What is wrong.
    """
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        message = f"the table is a {type(frame).__name__}; give a DataFrame"
        raise InvalidRequestError(message, parameter="frame")
    for name in columns:
        if not isinstance(name, str) or name not in frame.columns:
            shown = ", ".join(map(repr, frame.columns)) or "none"
            message = f"the table has no column {name!r}; it has {shown}"
            raise InvalidRequestError(message, parameter=str(name))


def chosen_voices(catalogue: VoiceCatalogue, voices: object) -> list[Voice]:
    """Return the voices that were asked for: one or several, by themselves, their ids or names; None for all.

    Raises:
        InvalidRequestError: Something is no voice.
    """
    if voices is None:
        return list(catalogue)
    several = isinstance(voices, Iterable) and not isinstance(voices, str | Voice)
    chosen: list[Voice] = []
    for voice in voices if several else [voices]:  # type: ignore[attr-defined]
        if not isinstance(voice, str | Voice):
            message = f"voices holds {voice!r}; give voices of the catalogue, or their ids or names"
            raise InvalidRequestError(message, parameter="voices")
        chosen.append(catalogue[voice] if isinstance(voice, str) else voice)
    return chosen
