"""Edit distance of two timed sequences of tokens, in which only tokens at the same time are aligned."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Tokens = NDArray[np.int64]

_ERROR = 1 << 40
"""Weight of an error."""
_SUBSTITUTION = 1 << 25
"""Weight that a substitution adds, which only decides between alignments with equally many errors. The distance in
time of aligned tokens, in milliseconds, decides between those with equally many substitutions."""
_FARTHEST_MS = 10_000

_NEVER = 1 << 62
_MAX_CELLS = 50_000_000
"""Largest table of costs to keep: 400 MB."""


class TimedTokens(NamedTuple):
    """A sequence of tokens with times.

    Attributes:
        codes: A number for each token; equal tokens have equal numbers.
        starts: Start of the time in which a token may be aligned, in seconds.
        ends: End of this time, in seconds.
        middles: Middle of the token's time, in seconds.
        rows: Position of the token's segment in its table.
    """

    codes: NDArray[np.int64]
    starts: NDArray[np.float64]
    ends: NDArray[np.float64]
    middles: NDArray[np.float64]
    rows: NDArray[np.int64]


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
    """Count the fewest errors; of alignments with equally few errors, the one with the most hits counts.

    Two tokens can be a hit or a substitution only if their times overlap; touching is not an overlap. All other
    tokens are deletions and insertions. The time is proportional to the number of pairs that are near in time.
    """
    said, heard = len(reference.codes), len(hypothesis.codes)
    low, row = 0, np.zeros(1, dtype=np.int64)
    for low, row in _rows(reference, hypothesis, by_time=False):  # noqa: B007 - only the last is used
        pass
    # Tokens after the last place that is near in time are insertions.
    total = int(row[-1]) + (heard - low - len(row) + 1) * _ERROR
    errors, rest = divmod(total, _ERROR)
    substitutions = rest // _SUBSTITUTION
    deletions = (errors - substitutions + said - heard) // 2
    return TimedCounts(substitutions, deletions, deletions - said + heard)


def timed_edits(reference: TimedTokens, hypothesis: TimedTokens) -> tuple[Tokens, Tokens]:
    """Return the counterpart of each token, in that of the best alignments whose tokens are nearest in time.

    Returns:
        For each reference token, the position of its hypothesis token, or -1 for a deletion; and for each hypothesis
        token, the position of its reference token, or -1 for an insertion.

    Raises:
        InvalidRequestError: Too many pairs are near in time.
    """
    rows = [(0, np.zeros(1, dtype=np.int64))]
    cells = 0
    for low, row in _rows(reference, hypothesis, by_time=True):
        rows.append((low, row))
        cells += len(row)
        if cells > _MAX_CELLS:
            message = "too many tokens are near in time to keep their alignment; choose a smaller collar"
            raise InvalidRequestError(message, parameter="collar")
    ours = np.full(len(reference.codes), -1)
    theirs = np.full(len(hypothesis.codes), -1)
    at, place = len(ours), len(theirs)

    def cost(at: int, place: int) -> int:
        low, row = rows[at]
        inside = min(place, low + len(row) - 1)
        return int(row[inside - low]) + (place - inside) * _ERROR

    while at:
        here = cost(at, place)
        if cost(at - 1, place) + _ERROR == here:
            at -= 1
        elif place > rows[at][0] and cost(at, place - 1) + _ERROR == here:
            place -= 1
        else:
            at, place = at - 1, place - 1
            ours[at], theirs[place] = place, at
    return ours, theirs


def _rows(reference: TimedTokens, hypothesis: TimedTokens, *, by_time: bool) -> Iterator[tuple[int, Tokens]]:
    """Rows of the table of costs, one for each reference token, limited to the places that are near in time.

    Yields:
        The first place of the row, and the lowest cost of each place from there on. Places before the first are not
        needed again. Each place after the last costs one more insertion.
    """
    heard = len(hypothesis.codes)
    # Ends and starts may fall along the stream; their running maximum and minimum do not.
    first = np.searchsorted(np.maximum.accumulate(hypothesis.ends), reference.starts, "right")
    last = np.searchsorted(np.minimum.accumulate(hypothesis.starts[::-1])[::-1], reference.ends, "left")
    lows = np.minimum.accumulate(first[::-1])[::-1]
    highs = np.maximum.accumulate(np.maximum(last, lows))
    steps = np.arange(heard + 1, dtype=np.int64) * _ERROR
    row, low, high = steps[:1], 0, 0
    ours, theirs = (np.rint(side.middles * 1000).astype(np.int64) for side in (reference, hypothesis))
    columns = (reference.codes, reference.starts, reference.ends, ours, lows, highs)
    tokens = (values.tolist() for values in columns)
    for code, start, end, middle, new_low, new_high in zip(*tokens, strict=True):
        if new_high > high:
            row = np.concatenate([row, row[-1] + steps[1 : new_high - high + 1]])
        row = row[new_low - low :]
        low, high = new_low, new_high
        near = slice(low, high)
        cost = np.where(hypothesis.codes[near] == code, 0, _ERROR + _SUBSTITUTION)
        if by_time:
            cost += np.minimum(np.abs(theirs[near] - middle), _FARTHEST_MS)
        cost[(hypothesis.starts[near] >= end) | (hypothesis.ends[near] <= start)] = _NEVER
        best = row + _ERROR
        np.minimum(best[1:], row[:-1] + cost, out=best[1:])
        # All insertions at once, from left to right: the cost of a place minus its insertions can only fall.
        row = np.minimum.accumulate(best - steps[: len(best)]) + steps[: len(best)]
        yield low, row
