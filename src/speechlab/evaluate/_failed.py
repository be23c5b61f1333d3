"""Rows that failed, in words: the warning of a study, whose batches leave it to the study, and the page."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

_TOLD = 3
"""Reasons that are told."""
_LONGEST = 200


def tell_failed(errors: pd.Series[str], rows: int, see: str) -> None:
    """Warn of rows that failed, with the commonest reasons; say nothing if none did.

    Called by the study itself, which is decorated with ``briefly``.

    Args:
        errors: What is wrong, for each row that failed.
        rows: How many rows there are in all.
        see: Where the user finds them.
    """
    words = failures(errors, rows)
    if words:
        warnings.warn(f"{words} {see}", stacklevel=4)


def failures(errors: pd.Series[str], rows: int) -> str:
    """Return how many rows failed, with the commonest reasons, as a sentence; empty if none did.

    Args:
        errors: What is wrong, for each row that failed.
        rows: How many rows there are in all.
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
