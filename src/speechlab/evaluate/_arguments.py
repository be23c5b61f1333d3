"""Checks of what studies are given, made before anything is sent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from speechlab._arguments import require_columns
from speechlab.contract import Voice
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from speechlab.client import VoiceCatalogue


def need_columns(frame: object, *columns: object) -> None:
    """Refuse what is no table, or lacks a column; names of columns are texts, as batches want them.

    Raises:
        InvalidRequestError: What is wrong.
    """
    require_columns(frame, *columns)
    for name in columns:
        if not isinstance(name, str):
            raise InvalidRequestError(
                f"a column's name is {name!r}; it must be a string", parameter=str(name)
            )


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
