"""Error rates by ranges of a measure, such as length, speed, loudness or noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._arguments import require_columns
from speechlab.errors import InvalidRequestError
from speechlab.metrics._rates.summary import summary
from speechlab.metrics._rates.tables import as_scored
from speechlab.metrics._statistics.bootstrap import Bootstrap

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from speechlab.metrics._arguments import Groups


def by_bins(
    scored: pd.DataFrame,
    column: str,
    bins: int | Sequence[float] = 5,
    *,
    level: float = 0.95,
    draws: int = 2_000,
    seed: int = 0,
    groups: Groups = None,
    **how: Any,
) -> pd.DataFrame:
    """Corpus error rates by ranges (bins) of one measure.

    Args:
        scored: Result of :func:`score` with the measure as a column (:func:`speech_measures` adds many); or such a
            table without scores.
        column: Any column of numbers, such as ``"duration_s"``, ``"morae_per_s"`` or ``"loudness_lufs"``.
        bins: Number of bins, each with about the same number of rows; or the edges of the bins, at least two,
            ascending. A row on an edge belongs to the bin above it, and a row on the last edge to the last bin.
        level: Confidence level of the intervals.
        draws: Bootstrap draws of each interval.
        seed: The same seed gives the same table.
        groups: Column of blocks, such as speakers, or a name for each row. Whole blocks are drawn.
        **how: Arguments of :func:`score` for a table without scores, such as ``language="en"``.

    Returns:
        One row for each bin and unit, in ascending order: ``<column>_from``, ``<column>_to`` and ``<column>_mean``
        (of the rows in the bin), then the columns of :func:`summarize`. Rows without the measure form a bin with
        missing edges. Rows outside the given edges are left out. With given edges, a bin without rows is included,
        with ``utterances`` = 0.

    Raises:
        InvalidRequestError: The column is missing or not numeric, or ``bins`` is invalid.

    Example:
        >>> import pandas as pd
        >>> from speechlab.metrics import score
        >>> frame = pd.DataFrame(
        ...     {
        ...         "text": ["a b", "a b", "a b c d"],
        ...         "hypothesis": ["a b", "a", "a b"],
        ...         "duration_s": [1, 2, 9],
        ...     }
        ... )
        >>> table = by_bins(score(frame, language="en"), "duration_s", bins=[0, 5, 10])
        >>> table[["duration_s_from", "duration_s_to", "utterances", "error_rate"]].values.tolist()
        [[0.0, 5.0, 2, 0.25], [5.0, 10.0, 1, 0.5]]
    """
    import pandas as pd

    bootstrap = Bootstrap(level, draws, seed, groups)
    require_columns(scored, column, argument="scored")
    scored, bootstrap = bootstrap.on(as_scored(scored, None, how), "scored")
    require_columns(scored, column, argument="scored")
    if not pd.api.types.is_numeric_dtype(scored[column]) or pd.api.types.is_bool_dtype(scored[column]):
        kind = scored[column].dtype
        message = (
            f"the column {column!r} has the type {kind}, not numbers; use summarize(scored, by={column!r})"
        )
        raise InvalidRequestError(message, parameter="column")
    values = scored[column].to_numpy(dtype=np.float64, na_value=np.nan)
    edges = _edges(values[np.isfinite(values)], bins)
    places = np.searchsorted(edges, values, side="right") - 1
    places[values == edges[-1]] = len(edges) - 2
    places[np.isnan(values)] = len(edges)  # after all others
    inside = ((places >= 0) & (places < len(edges) - 1)) | np.isnan(values)
    key = "speechlab bin"
    table = summary(scored.assign(**{key: places})[inside], [key], bootstrap)
    if not isinstance(bins, int):
        table = _with_empty_bins(table, key, len(edges) - 1)
    number = table.pop(key).to_numpy(dtype=np.int64)
    in_bin = number < len(edges) - 1
    means = [float(values[places == place].mean()) if (places == place).any() else np.nan for place in number]
    low, high = edges[np.where(in_bin, number, 0)], edges[np.where(in_bin, number + 1, 0)]
    for position, (name, numbers) in enumerate((("from", low), ("to", high), ("mean", np.array(means)))):
        cells = pd.Series(np.where(in_bin, numbers, np.nan), index=table.index).astype("Float64")
        table.insert(position, f"{column}_{name}", cells)
    return table


def _with_empty_bins(table: pd.DataFrame, key: str, count: int) -> pd.DataFrame:
    import pandas as pd

    absent = sorted(set(range(count)) - set(table[key]))
    if not absent or not len(table):
        return table
    rows = pd.DataFrame({key: absent, "utterances": 0, "utterances_scored": 0}).reindex(columns=table.columns)
    rows = rows.astype({name: kind for name, kind in table.dtypes.items() if name != key})
    return pd.concat([table, rows]).sort_values(key, kind="stable", ignore_index=True)


def _edges(values: NDArray[np.float64], bins: int | Sequence[float]) -> NDArray[np.float64]:
    if isinstance(bins, int):
        if bins < 1 or isinstance(bins, bool):
            message = f"bins={bins!r} is not a number of bins; give 1 or more, or a list of edges"
            raise InvalidRequestError(message, parameter="bins")
        if not len(values):
            return np.array([0.0, 1.0])
        edges = np.unique(np.quantile(values, np.linspace(0, 1, bins + 1)))
        return edges if len(edges) > 1 else np.array([edges[0], edges[0]])
    try:
        edges = np.asarray(bins, dtype=np.float64)
    except (TypeError, ValueError):
        edges = np.zeros(0)
    if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all():
        message = (
            f"bins={bins!r:.60} are not edges; give at least two numbers, each greater than the one before"
        )
        raise InvalidRequestError(message, parameter="bins")
    return edges
