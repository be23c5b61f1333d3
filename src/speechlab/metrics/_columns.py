"""Columns of figures, added to a table row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd


def with_columns(
    frame: pd.DataFrame,
    rows: Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]],
    types: Mapping[str, str],
) -> pd.DataFrame:
    """A new table with more columns: same index, same order; columns that are there already are replaced.

    Args:
        frame: The table.
        rows: For each of its rows the figures that have a value; or for each new column its cells, None for none.
        types: Names of the new columns and their pandas types.
    """
    import pandas as pd

    columns = {}
    for name, kind in types.items():
        values = rows[name] if isinstance(rows, dict) else [row.get(name) for row in rows]  # type: ignore[union-attr]  # a list of rows where it is no dict
        if kind == "string":
            # Half surrogate pairs, which Arrow cannot hold, become question marks.
            values = [value.encode("utf-8", "replace").decode() if value else value for value in values]
        columns[name] = (
            pd.Categorical(values)
            if kind == "category"
            else pd.array([pd.NA if value is None else value for value in values], dtype=kind)  # type: ignore[call-overload]  # the type is known at run time only
        )
    # Arrays without an index go by position: the index may hold a label twice.
    added = pd.DataFrame(columns, index=frame.index)
    return pd.concat([frame.drop(columns=[name for name in types if name in frame.columns]), added], axis=1)
