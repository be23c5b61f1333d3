"""Functions of the user that score texts or sounds. Their answers are kept in the store, and taken from it again."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from speechlab._arguments import build_argument_error, is_number
from speechlab._pandas import pd
from speechlab.errors import InvalidRequestError
from speechlab.store import Store

# A function from lists of texts to one number for each.
Scorer: TypeAlias = Callable[..., Iterable[float]]
# Beginning of the columns of scorers of the user.
SCORE_PREFIX = "score_"


def check_user_functions(
    functions: Any, argument: str, prefix: str, taken: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the functions of the user by the names of their columns."""
    if functions is None:
        return {}
    if not isinstance(functions, Mapping) or not all(
        isinstance(name, str) and callable(function) for name, function in functions.items()
    ):
        raise build_argument_error(argument, functions, "a dict from names to functions")
    by_column = {prefix + name: function for name, function in functions.items()}
    if present := set(by_column) & {"score_error", *map(str, taken)}:  # the first is why a row has no score
        message = (
            f"the table has a column {min(present)!r} already; rename it, or give the function another name"
        )
        raise InvalidRequestError(message, parameter=argument)
    return by_column


@contextmanager
def ensure_open_store(store: Store | str | None) -> Iterator[Store]:
    """The store itself, or one that is opened for a while."""
    if isinstance(store, Store):
        yield store
        return
    if not (store is None or isinstance(store, str | os.PathLike)):
        raise build_argument_error("store", store, "a store, the path of its folder, or None for your own")
    with Store.default() if store is None else Store(store) as own_store:
        yield own_store


def load_or_compute_answers(
    store: Store, abouts: Sequence[Mapping[str, Any]], ask: Callable[[list[int]], Iterable[Any]]
) -> list[float | None]:
    """Return the answers about each of many things, asked for only where the store does not have them."""
    keys = [hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest() for about in abouts]
    results = {key: store.get(key) for key in dict.fromkeys(keys)}
    answers = {key: float(result.response["value"]) for key, result in results.items() if result is not None}
    unknown = list({key: place for place, key in enumerate(keys) if key not in answers}.values())
    if unknown:
        for place, value in zip(unknown, ask(unknown), strict=True):
            if is_number(value) and math.isfinite(value):
                key, response = keys[place], {"value": float(value)}
                answers[key] = response["value"]
                store.put(key, operation="measure", request=dict(abouts[place]), response=response)
    return [answers.get(key) for key in keys]


def add_scores(
    table: pd.DataFrame, scorers: Mapping[str, Scorer], columns: Sequence[str], store: Store | str | None
) -> tuple[pd.DataFrame, list[str]]:
    """Return the table with a column for each scorer, and notes on those that failed."""
    texts = [table[column].tolist() for column in columns]
    rows = [
        place
        for place, cells in enumerate(zip(*texts, strict=True))
        if all(isinstance(cell, str) for cell in cells)
    ]
    columns_of_scores, notes = {}, []
    for name, scorer in scorers.items():
        sides = [[side[place] for place in rows] for side in texts]
        abouts = [{"scorer": name, "texts": cells} for cells in zip(*sides, strict=True)]
        values: list[float | None] = [None] * len(table)
        try:
            with ensure_open_store(store) as open_store:
                answers = load_or_compute_answers(open_store, abouts, _bind_scorer(scorer, sides))
        except Exception as error:  # noqa: BLE001 - a function of the user must not cost the report
            notes.append(f"{name.removeprefix(SCORE_PREFIX)} scored nothing: {type(error).__name__}: {error}")
        else:
            for place, value in zip(rows, answers, strict=True):
                values[place] = value
            if without_number := answers.count(None):
                notes.append(
                    f"{name.removeprefix(SCORE_PREFIX)} gave no finite number for {without_number:,} of "
                    f"{len(rows):,} rows."
                )
        columns_of_scores[name] = pd.array(values, dtype="Float64")
    return table.assign(**columns_of_scores), notes


def _bind_scorer(scorer: Scorer, sides: Sequence[Sequence[str]]) -> Callable[[list[int]], Iterable[Any]]:
    return lambda places: list(scorer(*([side[place] for place in places] for side in sides)))
