"""Metrics of the user: functions that score each translation, such as COMET's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Scorer: TypeAlias = Callable[[list[str], list[str], list[str]], Iterable[float]]
"""A function from sources, translations and references to one score for each translation, such as COMET's."""


def checked_scorers(scorers: object, names: Iterable[str]) -> Mapping[str, Scorer]:
    """Return the scorers of the user."""
    if scorers is None:
        return {}
    if not isinstance(scorers, Mapping) or not all(
        isinstance(name, str) and callable(scorer) for name, scorer in scorers.items()
    ):
        message = f"scorers is {scorers!r:.60}; give a dict from names to functions"
        raise InvalidRequestError(message, parameter="scorers")
    reserved = set(names) & set(scorers)
    if reserved:
        message = f"the scorer {min(reserved)!r} has the name of another metric; give it a name of its own"
        raise InvalidRequestError(message, parameter="scorers")
    return scorers


def scored_by(
    scorer: Scorer, name: str, texts: tuple[list[str], list[str], list[str]]
) -> NDArray[np.float64]:
    """Return the score of each translation."""
    answers = scorer(*texts)
    try:
        values = np.array([float(value) for value in answers], dtype=np.float64)
    except (TypeError, ValueError):
        values = np.array([math.nan])
    if len(values) != len(texts[1]) or not np.isfinite(values).all():
        message = (
            f"the scorer {name!r} gave {answers!r:.60}; it must give one finite number for each of "
            f"{len(texts[1])} texts"
        )
        raise InvalidRequestError(message, parameter="scorers")
    return values
