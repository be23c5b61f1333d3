"""The edit distance of two sequences of tokens that may only meet where their times do."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ERROR = 1 << 32
"""Weight of an error, so great that substitutions, counted in ones, only decide between equal numbers of errors."""

_NEVER = 1 << 62


class TimedTokens(NamedTuple):
    """A sequence of tokens.

    Attributes:
        codes: A number for each token; equal tokens have equal numbers.
        starts: Seconds from which a token may meet another.
        ends: Seconds up to which it may.
    """

    codes: NDArray[np.int64]
    starts: NDArray[np.float64]
    ends: NDArray[np.float64]


class TimedCounts(NamedTuple):
    """Errors of one sequence against another."""

    substitutions: int
    deletions: int
    insertions: int

    @property
    def errors(self) -> int:
        """All errors together."""
        return sum(self)


def timed_counts(reference: TimedTokens, hypothesis: TimedTokens) -> TimedCounts:
    """Count the fewest errors; of ways with equally many, the one with the most hits counts.

    A token of the hypothesis can be a hit or a substitution only of a token whose time overlaps its own; touching
    is no overlap. Everything else is deleted and inserted.
    """
    said, heard = len(reference.codes), len(hypothesis.codes)
    steps = np.arange(heard + 1, dtype=np.int64) * _ERROR
    row = steps.copy()
    for code, start, end in zip(*(values.tolist() for values in reference), strict=True):
        cost = np.where(hypothesis.codes == code, 0, _ERROR + 1)
        cost[(hypothesis.starts >= end) | (hypothesis.ends <= start)] = _NEVER
        best = row + _ERROR
        np.minimum(best[1:], row[:-1] + cost, out=best[1:])
        # Insertions, from left to right, all at once: what each place costs beyond its steps can only fall.
        row = np.minimum.accumulate(best - steps) + steps
    total = int(row[-1])
    errors, substitutions = divmod(total, _ERROR)
    deletions = (errors - substitutions + said - heard) // 2
    return TimedCounts(substitutions, deletions, deletions - said + heard)
