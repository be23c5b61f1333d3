"""Figures of counts: rates with their intervals, precision, recall and F1; missing where their divisor is 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from speechlab.metrics._statistics.bootstrap import Bootstrap

COUNTS = ("hits", "substitutions", "deletions", "insertions")
RATE = dict.fromkeys(("error_rate", "error_rate_low", "error_rate_high"), "Float64")
"""Columns of a rate, and their types."""
FOUND = dict.fromkeys(("precision", "recall", "f1"), "Float64")


def rate_of_counts(counts: NDArray[np.int64], bootstrap: Bootstrap) -> dict[str, Any]:
    """The sums and the rate of the hits, substitutions, deletions and insertions (columns) of utterances (rows)."""
    errors, lengths = counts[:, 1:].sum(axis=1), counts[:, :3].sum(axis=1)
    sums = dict(zip(COUNTS, map(int, counts.sum(axis=0)), strict=True))
    return sums | rate_of(errors, lengths, bootstrap)


def rate_of(errors: NDArray[np.int64], lengths: NDArray[np.int64], bootstrap: Bootstrap) -> dict[str, Any]:
    """The sums of the errors and reference lengths of utterances, and their rate."""
    count, length = int(errors.sum()), int(lengths.sum())
    low, high = bootstrap.ratio(errors, lengths) if length else (None, None)
    rate = dict(zip(RATE, (count / length if length else None, low, high), strict=True))
    return {"errors": count, "reference_length": length} | rate


def found_figures(hits: int, in_reference: int, in_hypothesis: int) -> dict[str, float | None]:
    """Precision, recall and F1 of what occurs in references and in hypotheses."""
    occurrences = in_reference + in_hypothesis
    return {
        "precision": hits / in_hypothesis if in_hypothesis else None,
        "recall": hits / in_reference if in_reference else None,
        "f1": 2 * hits / occurrences if occurrences else None,
    }
