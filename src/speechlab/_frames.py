"""Tables in memory of other libraries, as tables of pandas: the one place that converts them."""

from __future__ import annotations

import sys
from typing import Any

from speechlab._pandas import pd


def to_pandas_frame(value: object) -> pd.DataFrame | None:
    """Return a table in memory, of pandas, polars or Arrow, as a pandas DataFrame; None for anything else."""
    if isinstance(value, pd.DataFrame):
        return value
    table: Any = value
    arrow = sys.modules.get("pyarrow")  # a table of a library exists only if the library is loaded
    if arrow is not None and isinstance(value, arrow.Table | arrow.RecordBatch):
        frame: pd.DataFrame = table.to_pandas()
        return frame
    if is_polars_frame(value):
        table = table.collect() if hasattr(table, "collect") else table
        return pd.DataFrame(
            {name: _polars_column_to_pandas(table[name]) for name in table.columns}, index=range(table.height)
        )
    return None


def to_pandas_series(value: object) -> pd.Series[Any] | None:
    """Return a column in memory, of pandas or polars, as a Series of pandas; None for anything else."""
    if isinstance(value, pd.Series):
        return value
    polars, column = sys.modules.get("polars"), value
    if polars is None or not isinstance(column, polars.Series):
        return None
    cells: Any = column
    return pd.Series(_polars_column_to_pandas(cells), name=cells.name or None)


def is_polars_frame(value: object) -> bool:
    """Return whether a value is a DataFrame or LazyFrame of polars."""
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(value, polars.DataFrame | polars.LazyFrame)


def _polars_column_to_pandas(column: Any) -> Any:
    import pyarrow as pa

    try:
        return column.to_arrow().to_pandas()
    except (pa.ArrowException, TypeError, ValueError):  # integers of 128 bits, and objects
        return pd.Series(column.to_list(), dtype=object)
