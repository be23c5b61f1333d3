"""Descriptions of failed rows, for the warning of a study (its batches give none) and for the page."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

_TOLD = 3
"""Maximum number of reasons in a description."""
_LONGEST = 200


def tell_failed(table: pd.DataFrame, see: str = "report.failed() has them", prefix: str = "") -> None:
    """Warn of failed rows, with the commonest reasons; no warning if none failed.

    Called by the study itself, which is decorated with ``briefly``.

    Args:
        table: The rows, with ``status`` and ``error``.
        see: Sentence about the place of the failed rows.
        prefix: Beginning of the names of these columns.
    """
    errors = table.loc[table[f"{prefix}status"] == "error", f"{prefix}error"]
    if words := failures(errors, len(table)):
        warnings.warn(f"{words} {see}", stacklevel=4)


def failures(errors: pd.Series[str], rows: int) -> str:
    """Return a sentence with the number of failed rows and the commonest reasons; empty if none failed.

    Args:
        errors: Error of each failed row.
        rows: Number of all rows.
    """
    if not len(errors):
        return ""
    counts = errors.astype("str").value_counts()
    told = [f"{count:,} like {_short(str(error))!r}" for error, count in counts.head(_TOLD).items()]
    more = int(counts.iloc[_TOLD:].sum())
    reasons = "; ".join([*told, *([f"{more:,} for other reasons"] if more else [])])
    return f"{len(errors):,} of {rows:,} rows failed: {reasons}."


def _short(error: str) -> str:
    return error if len(error) <= _LONGEST else error[: _LONGEST - 1] + "…"
