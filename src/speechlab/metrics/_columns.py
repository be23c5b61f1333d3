"""Columns of figures of tables that are made or get them; shares, which are missing for a divisor of 0."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from speechlab._arguments import is_missing
from speechlab._pandas import pd


def add_columns(
    frame: pd.DataFrame,
    rows: Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]],
    types: Mapping[str, str],
) -> pd.DataFrame:
    """Return a new table with more columns, with the same index and order; columns of the same name are replaced."""
    columns = {}
    for name, kind in types.items():
        values = rows[name] if isinstance(rows, dict) else [row.get(name) for row in rows]  # type: ignore[union-attr]  # not a dict: a list of rows
        if kind == "string":
            # Lone surrogates, which Arrow cannot encode, become question marks.
            values = [value.encode("utf-8", "replace").decode() if value else value for value in values]
        columns[name] = _to_typed_array(values, kind)
    # Arrays without an index are added by position, because a label may occur twice in the index.
    added = pd.DataFrame(columns, index=frame.index)
    return pd.concat([frame.drop(columns=[name for name in types if name in frame.columns]), added], axis=1)


def build_table(rows: Iterable[Any], types: Mapping[str, str]) -> pd.DataFrame:
    """Return a table of rows (dicts, or tuples in the order of the columns) with these columns only."""
    cells = [tuple(map(row.get, types)) if isinstance(row, dict) else row for row in rows]
    columns = zip(*cells, strict=True) if cells else [()] * len(types)
    return pd.DataFrame(
        {
            name: _to_typed_array(values, kind)
            for (name, kind), values in zip(types.items(), columns, strict=True)
        }
    )


def _to_typed_array(values: Iterable[Any], kind: str) -> Any:
    """Values as an array of their type, which takes a tenth of the time of a conversion in a table."""
    if kind == "float64":
        return np.array([math.nan if is_missing(value) else value for value in values], dtype=np.float64)
    if kind in {"category", "object"}:
        return (
            pd.Series(list(values), dtype=object).array if kind == "object" else pd.Categorical(list(values))
        )
    return pd.array([pd.NA if value is None else value for value in values], dtype=kind)  # type: ignore[call-overload]  # the type is known at run time only


COUNTS = ("hits", "substitutions", "deletions", "insertions")
# Columns of a rate, and their types.
RATE = dict.fromkeys(("error_rate", "error_rate_low", "error_rate_high"), "Float64")
PRECISION_RECALL = dict.fromkeys(("precision", "recall", "f1"), "Float64")


def compute_precision_recall_f1(hits: int, in_reference: int, in_hypothesis: int) -> dict[str, float | None]:
    """Precision, recall and F1 of what occurs in references and in hypotheses."""
    occurrences = in_reference + in_hypothesis
    return {
        "precision": hits / in_hypothesis if in_hypothesis else None,
        "recall": hits / in_reference if in_reference else None,
        "f1": 2 * hits / occurrences if occurrences else None,
    }
