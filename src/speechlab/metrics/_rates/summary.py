"""Summaries: one row of figures for each group of a scored table, also by bins of a measure such as the duration."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._arguments import is_dask_frame, require_columns, to_column_names
from speechlab._pandas import pd
from speechlab._require import require
from speechlab.errors import InvalidRequestError
from speechlab.metrics._columns import COUNTS, RATE, add_columns
from speechlab.metrics._rates.error_rate import match_error_rate, word_information_preserved
from speechlab.metrics._rates.score import KINDS, RATES, TOLERANT
from speechlab.metrics._rates.tables import join_table_signatures, to_scored_table
from speechlab.metrics._statistics.bootstrap import Bootstrap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from speechlab.metrics._inputs import Groups
    from speechlab.metrics._rates.tables import Scorable


def summarize(
    scored: Scorable,
    hypotheses: Iterable[str | None] | None = None,
    *,
    by: str | Sequence[str] = (),
    level: float = 0.95,
    draws: int = 2_000,
    seed: int = 0,
    groups: Groups = None,
    **how: Any,
) -> pd.DataFrame:
    """Corpus rates of groups of scored rows.

    Args:
        scored: Result of :func:`score` or :func:`error_rate`; or a table or references without scores. A table of
            Dask is counted by partition, and the counts are merged: rates and intervals are those of the whole.
        hypotheses: Hypotheses, if the first argument has references.
        by: Columns to group by, such as ``["voice"]``; none for all rows together. Units are never mixed: there is
            one row for each group and unit.
        level: Confidence level of the intervals.
        draws: Bootstrap draws of each interval.
        seed: The same seed gives the same table.
        groups: Column of blocks, such as ``"speaker"``, or a name for each row. Whole blocks are drawn; None draws
            utterances.
        **how: Arguments of :func:`score` for texts without scores, such as ``language="en"``.

    Returns:
        A table, sorted by group, with the columns of ``by`` and ``unit``, ``utterances`` (rows),
        ``utterances_scored`` (rows with scores), ``empty_references``, ``error_rate``, ``error_rate_low``,
        ``error_rate_high``, ``mean_error_rate`` (mean of the rows' rates), ``sentence_error_rate`` (share of the
        scored rows with an error), ``match_error_rate``, ``word_information_lost``, ``errors``, ``hits``,
        ``substitutions``, ``deletions``, ``insertions`` and ``reference_length``. If the scores have them, ``wer``,
        ``cer``, ``reading_cer``, ``pinyin_error_rate``, ``toneless_error_rate``, ``tolerant_wer``, ``tolerant_cer``
        and the counts of differences by class follow. The last column is ``signature``.

        Rates are fractions, which can exceed 1. Lengths are in tokens. Rates of a group without scores are missing;
        so are intervals of a group with fewer than two scored rows or blocks. The rates from ``wer`` to
        ``tolerant_cer`` cover only the rows that have them: in a group of several languages, ``reading_cer`` is the
        rate of its Japanese rows.

    Raises:
        InvalidRequestError: A column is missing, a scored row has no block, an argument is not allowed, or rows of
            one group and language were scored in different ways.

    Example:
        >>> table = summarize(["good morning", "hello"], ["good mourning", "hello"], language="en")
        >>> table[["utterances", "error_rate", "sentence_error_rate"]].values.tolist()
        [[2, 0.3333333333333333, 0.5]]
    """
    return build_summary(to_scored_table(scored, hypotheses, how), by, Bootstrap(level, draws, seed, groups))


def build_summary(scored: pd.DataFrame, by: str | Sequence[str], bootstrap: Bootstrap) -> pd.DataFrame:
    """Return the table of :func:`summarize`, of a scored table."""
    keys = to_column_names(by, "by")
    rows = []
    names = [*keys, *([] if "unit" in keys else ["unit"])]
    slim, bootstrap = _reduce_to_summary_inputs(scored, keys, names, bootstrap)
    for values, group_rows in slim.groupby(names, observed=True, sort=True, dropna=False):
        group = dict(zip(names, values, strict=True))
        rows.append(group | _compute_figures(group_rows, bootstrap, f"rows with {group}"))
    present = [
        name for name in _SUMMARY if name not in _LANGUAGE_RATES or _LANGUAGE_RATES[name] in scored.columns
    ]
    types = {name: _SUMMARY[name] for name in present if name not in names}
    return add_columns(pd.DataFrame(rows, columns=names).astype({"unit": "string"}), rows, types)


def _reduce_to_summary_inputs(
    scored: Any, keys: Sequence[str], names: Sequence[str], bootstrap: Bootstrap
) -> tuple[pd.DataFrame, Bootstrap]:
    """Return the columns of a table that its summary needs; of a table of Dask its tallies, merged."""
    if not is_dask_frame(scored):
        return _select_columns_and_blocks(scored, keys, names, bootstrap)
    dask = require("dask")

    def tally_part(part: pd.DataFrame) -> pd.DataFrame:
        slim, by_block = _select_columns_and_blocks(part, keys, names, bootstrap)
        return _merge_alike_rows(slim, names, by_block)

    if not isinstance(bootstrap.groups, str | None):
        message = "groups of a table of Dask are in a column of it; give the name of the column"
        raise InvalidRequestError(message, parameter="groups")
    _, by_block = _select_columns_and_blocks(scored._meta, keys, names, bootstrap)  # noqa: SLF001 - as Dask documents
    tallies = dask.compute(*(dask.delayed(tally_part)(partition) for partition in scored.to_delayed()))
    return _merge_alike_rows(pd.concat(tallies, ignore_index=True), names, by_block), by_block


def _select_columns_and_blocks(
    scored: pd.DataFrame, keys: Sequence[str], names: Sequence[str], bootstrap: Bootstrap
) -> tuple[pd.DataFrame, Bootstrap]:
    hint = "Pass what speechlab.metrics.score returned"
    scored, bootstrap = bootstrap.add_blocks(scored, "scored")
    scored = require_columns(scored, *keys, *_REQUIRED_COLUMNS, argument="scored", hint=hint)
    for key in keys:
        odd = next((cell for cell in scored[key].tolist() if not isinstance(cell, Hashable)), None)
        if odd is not None:
            message = (
                f"by={key!r}: the column holds {odd!r:.60} ({type(odd).__name__}), which cannot name a group; "
                "use texts or numbers"
            )
            raise InvalidRequestError(message, parameter="by")
    # Alone, because a wide table takes longer to be split than to be summed.
    used = {*names, *_SUMMARY_INPUTS, bootstrap.groups if isinstance(bootstrap.groups, str) else None}
    return scored.loc[:, [name in used for name in scored.columns.tolist()]], bootstrap


def _merge_alike_rows(slim: pd.DataFrame, names: Sequence[str], bootstrap: Bootstrap) -> pd.DataFrame:
    """Alike rows as one, with their number and the sums of their other counts."""
    blocks = [] if bootstrap.groups is None else [bootstrap.groups]
    shared = dict.fromkeys([*names, "signature", *blocks, "errors", "reference_length"])
    summed = [name for name in slim.columns if name not in shared and name not in (_ROWS, _KNOWN)]
    slim = slim.astype({name: object for name in shared if isinstance(slim[name].dtype, pd.CategoricalDtype)})
    if _ROWS not in slim.columns:
        presence = [row.tobytes() for row in slim[summed].notna().to_numpy()]
        slim = slim.assign(**{_KNOWN: presence}).assign(**{_ROWS: 1})
    groups = slim.groupby([*shared, _KNOWN], dropna=False, observed=True, sort=False)
    return groups[[*summed, _ROWS]].sum(min_count=1).reset_index()


_REQUIRED_COLUMNS = ("unit", "signature", "errors", "reference_length", *COUNTS)
# Figures of some languages only, and the column of the scores that each needs.
_LANGUAGE_RATES = {
    **{column: f"{kind}_errors" for column, kind in RATES.items()},
    **dict.fromkeys(TOLERANT, "tolerant_errors"),
    **{f"{kind}_differences": f"{kind}_differences" for kind in KINDS},
}
_LENGTHS = {**{column: f"{kind}_length" for column, kind in RATES.items()}, **TOLERANT}
_ROWS, _KNOWN = "_rows", "_known"
_SUMMARY_INPUTS = frozenset({*_REQUIRED_COLUMNS, *_LANGUAGE_RATES.values(), *_LENGTHS.values(), *TOLERANT})
_SUMMARY: dict[str, str] = {
    **dict.fromkeys(("utterances", "utterances_scored", "empty_references"), "Int64"),
    **RATE,
    **dict.fromkeys(("mean_error_rate", "sentence_error_rate"), "Float64"),
    **dict.fromkeys(("match_error_rate", "word_information_lost"), "Float64"),
    **dict.fromkeys(("errors", *COUNTS, "reference_length"), "Int64"),
    **dict.fromkeys((*RATES, *TOLERANT), "Float64"),
    **{f"{kind}_differences": "Int64" for kind in KINDS},
    "signature": "string",
}


def _compute_figures(part: pd.DataFrame, bootstrap: Bootstrap, what: str) -> dict[str, Any]:
    scored_rows = part[part["errors"].notna()]
    tallied = _ROWS in part.columns
    each = scored_rows.loc[scored_rows.index.repeat(scored_rows[_ROWS])] if tallied else scored_rows
    errors = each["errors"].to_numpy(dtype=np.int64)
    lengths = each["reference_length"].to_numpy(dtype=np.int64)
    figures: dict[str, Any] = {
        "utterances": int(part[_ROWS].sum()) if tallied else len(part),
        "utterances_scored": len(each),
        "empty_references": int((lengths == 0).sum()),
    }
    if not len(scored_rows):
        return figures
    low, high = bootstrap.restrict_to(each).compute_ratio_interval(errors, lengths)
    counts = {name: int(scored_rows[name].sum()) for name in COUNTS}
    figures |= {
        "error_rate": errors.sum() / max(lengths.sum(), 1),
        "error_rate_low": low,
        "error_rate_high": high,
        "mean_error_rate": float((errors / np.maximum(lengths, 1)).mean()),
        "sentence_error_rate": float((errors > 0).mean()),
        "match_error_rate": match_error_rate(*counts.values()),
        "word_information_lost": 1 - word_information_preserved(*counts.values()),
        "errors": errors.sum(),
        "reference_length": lengths.sum(),
        "signature": join_table_signatures(scored_rows, what),
    }
    return figures | counts | _compute_language_figures(scored_rows)


def _compute_language_figures(done: pd.DataFrame) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name, column in _LANGUAGE_RATES.items():
        # The errors of both tolerant rates are in one column.
        of_rate = name if name in TOLERANT else column
        if column not in done.columns or of_rate not in done.columns:
            continue
        has_rate = done[of_rate].notna().to_numpy()
        if has_rate.any():
            total = done[column][has_rate].sum()
            length = _LENGTHS.get(name)
            figures[name] = total if length is None else total / max(int(done[length][has_rate].sum()), 1)
    return figures


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
    bootstrap = Bootstrap(level, draws, seed, groups)
    scored = require_columns(scored, column, argument="scored")
    scored, bootstrap = bootstrap.add_blocks(to_scored_table(scored, None, how), "scored")
    if not pd.api.types.is_numeric_dtype(scored[column]) or pd.api.types.is_bool_dtype(scored[column]):
        kind = scored[column].dtype
        message = (
            f"the column {column!r} has the type {kind}, not numbers; use summarize(scored, by={column!r})"
        )
        raise InvalidRequestError(message, parameter="column")
    values = scored[column].to_numpy(dtype=np.float64, na_value=np.nan)
    edges = _compute_bin_edges(values[np.isfinite(values)], bins)
    places = np.searchsorted(edges, values, side="right") - 1
    places[values == edges[-1]] = len(edges) - 2
    places[np.isnan(values)] = len(edges)  # missing values form the last bin
    inside = ((places >= 0) & (places < len(edges) - 1)) | np.isnan(values)
    key = "speechlab bin"
    table = build_summary(scored.assign(**{key: places})[inside], [key], bootstrap)
    if not isinstance(bins, int):
        table = _add_empty_bins(table, key, len(edges) - 1)
    number = table.pop(key).to_numpy(dtype=np.int64)
    in_bin = number < len(edges) - 1
    means = [float(values[places == place].mean()) if (places == place).any() else np.nan for place in number]
    low, high = edges[np.where(in_bin, number, 0)], edges[np.where(in_bin, number + 1, 0)]
    for position, (name, numbers) in enumerate((("from", low), ("to", high), ("mean", np.array(means)))):
        cells = pd.Series(np.where(in_bin, numbers, np.nan), index=table.index).astype("Float64")
        table.insert(position, f"{column}_{name}", cells)
    return table


def _add_empty_bins(table: pd.DataFrame, key: str, count: int) -> pd.DataFrame:
    absent = sorted(set(range(count)) - set(table[key]))
    if not absent or not len(table):
        return table
    rows = pd.DataFrame({key: absent, "utterances": 0, "utterances_scored": 0}).reindex(columns=table.columns)
    rows = rows.astype({name: kind for name, kind in table.dtypes.items() if name != key})
    return pd.concat([table, rows]).sort_values(key, kind="stable", ignore_index=True)


def _compute_bin_edges(values: NDArray[np.float64], bins: int | Sequence[float]) -> NDArray[np.float64]:
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
