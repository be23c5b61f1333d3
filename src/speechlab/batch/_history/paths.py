"""Paths of audio files in a store, which may have been moved since a run recorded them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from speechlab.store import Store

_IN_A_STORE = re.compile(r"(?:.*[/\\])?([0-9a-f]{2})[/\\](\1[0-9a-f]{62})(\.\w+)")
"""The path of a file in a store: its name is its digest, and its folder the first two digits of it."""


def in_store(cell: object, store: Store) -> Path | None:
    """Return the current path of a file in a store from any earlier path; None if the store has no such file."""
    found = _IN_A_STORE.fullmatch(cell) if isinstance(cell, str) else None
    if found is None:
        return None
    path = store.blobs.path(found[2], found[3])
    return path if path.is_file() else None


def moved(frame: pd.DataFrame, store: Store) -> pd.DataFrame:
    """Return a table with the current paths of files in a store; other paths are unchanged."""
    import pandas as pd

    result = frame.copy(deep=False)
    for at in range(frame.shape[1]):
        column = frame.iloc[:, at]
        several = isinstance(column.dtype, pd.CategoricalDtype)
        if not several and not (pd.api.types.is_string_dtype(column) or pd.api.types.is_object_dtype(column)):
            continue
        cells = column.cat.categories.tolist() if several else column.tolist()
        now: list[Any] = [in_store(cell, store) for cell in cells]
        if not any(now):
            continue
        values = [cell if path is None else str(path) for cell, path in zip(cells, now, strict=True)]
        if several and len(set(values)) == len(values):
            result.isetitem(at, column.cat.rename_categories(values).array)
        elif several:  # the same file by its old and its new path
            names = dict(zip(cells, values, strict=True))
            result.isetitem(at, column.astype(object).map(names).astype("category").array)
        else:
            result.isetitem(at, pd.Series(values, dtype=column.dtype).array)
    return result
