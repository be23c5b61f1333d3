"""Corpus rates of groups of scored rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._arguments import column_names, require_columns
from speechlab.metrics._rates.score import COUNTS, KINDS, RATES
from speechlab.metrics._statistics.bootstrap import Bootstrap

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd


def summarize(
    scored: pd.DataFrame,
    by: str | Sequence[str] = (),
    level: float = 0.95,
    n: int = 2_000,
    seed: int = 0,
    groups: str | None = None,
) -> pd.DataFrame:
    """Corpus rates of groups of scored rows.

    Args:
        scored: What :func:`score` returned.
        by: Columns to group by, such as ``["voice"]``; none for all rows together. Units are never mixed: there is
            one row for each group and unit.
        level: Confidence level of the intervals.
        n: Bootstrap draws of each interval.
        seed: The same seed gives the same table.
        groups: Column of blocks, such as ``"speaker"``, that are drawn as wholes; None to draw utterances.

    Returns:
        A table, sorted by group, with the columns of ``by`` and ``unit``, ``n`` (rows), ``n_scored`` (rows with
        scores), ``empty_references``, ``error_rate``, ``error_rate_low``, ``error_rate_high``, ``mean_error_rate``
        (mean of the rows' rates), ``errors``, ``hits``, ``substitutions``, ``deletions``, ``insertions``,
        ``reference_length``, ``wer``, ``cer``, ``reading_cer``, ``pinyin_error_rate``, ``toneless_error_rate``,
        ``tolerant_cer`` and the counts of Japanese and Chinese differences. Rates are fractions (they can exceed 1),
        lengths tokens. Rates of groups without any score are missing, and so are intervals of groups with fewer than
        two scored rows or blocks. A rate beside ``error_rate`` goes by the rows that have it: a group of several
        languages has the ``reading_cer`` of its Japanese rows alone.

    Raises:
        InvalidRequestError: A column is missing, or a scored row has no block, or an argument makes no sense.
    """
    return summary(scored, by, Bootstrap(level, n, seed, groups))


def summary(scored: pd.DataFrame, by: str | Sequence[str], draws: Bootstrap) -> pd.DataFrame:
    """The table of :func:`summarize`."""
    import pandas as pd

    keys = column_names(by, "by")
    hint = "Pass what speechlab.metrics.score returned"
    require_columns(scored, *keys, *draws.columns, *_NEEDED, argument="scored", hint=hint)
    rows = []
    names = [*keys, *([] if "unit" in keys else ["unit"])]
    for values, part in scored.groupby(names, observed=True, sort=True, dropna=False):
        figures = _figures(part, draws)
        rows.append(dict(zip(names, values, strict=True)) | figures)
    columns = [*names, *_SUMMARY]
    table = pd.DataFrame(rows, columns=columns)
    return table.astype(_SUMMARY | {"unit": "string"})


_NEEDED = (
    *("unit", "errors", "reference_length", "tolerant_errors", *COUNTS),
    *(f"{kind}_{part}" for kind in RATES.values() for part in ("errors", "length")),
    *(f"{kind}_differences" for kind in KINDS),
)
_SUMMARY: dict[str, str] = {
    "n": "Int64",
    "n_scored": "Int64",
    "empty_references": "Int64",
    "error_rate": "Float64",
    "error_rate_low": "Float64",
    "error_rate_high": "Float64",
    "mean_error_rate": "Float64",
    "errors": "Int64",
    **dict.fromkeys(COUNTS, "Int64"),
    "reference_length": "Int64",
    **dict.fromkeys(RATES, "Float64"),
    "tolerant_cer": "Float64",
    **{f"{kind}_differences": "Int64" for kind in KINDS},
}


def _figures(part: pd.DataFrame, draws: Bootstrap) -> dict[str, Any]:
    done = part[part["errors"].notna()]
    errors = done["errors"].to_numpy(dtype=np.int64)
    lengths = done["reference_length"].to_numpy(dtype=np.int64)
    figures: dict[str, Any] = {
        "n": len(part),
        "n_scored": len(done),
        "empty_references": int((lengths == 0).sum()),
    }
    if not len(done):
        return figures
    low, high = draws.within(done).ratio(errors, lengths)
    figures |= {
        "error_rate": errors.sum() / max(lengths.sum(), 1),
        "error_rate_low": low,
        "error_rate_high": high,
        "mean_error_rate": float((errors / np.maximum(lengths, 1)).mean()),
        "errors": errors.sum(),
        "reference_length": lengths.sum(),
    }
    figures |= {name: done[name].sum() for name in COUNTS}
    for column, kind in RATES.items():
        known = done[done[f"{kind}_errors"].notna()]
        if len(known):
            figures[column] = known[f"{kind}_errors"].sum() / max(int(known[f"{kind}_length"].sum()), 1)
    known = done[done["tolerant_errors"].notna()]
    if len(known):
        figures["tolerant_cer"] = known["tolerant_errors"].sum() / max(int(known["char_length"].sum()), 1)
    for kind in KINDS:
        differences = done[f"{kind}_differences"].dropna()
        if len(differences):
            figures[f"{kind}_differences"] = differences.sum()
    return figures
