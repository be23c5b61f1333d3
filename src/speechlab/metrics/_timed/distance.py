"""Edit distance of two timed sequences of tokens, in which only tokens at the same time are aligned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Tokens = NDArray[np.int64]

# Weight of an error.
_ERROR = 1 << 40
# Weight that a substitution adds, which only decides between alignments with equally many errors. The
# distance in time of aligned tokens, in milliseconds, decides between those with equally many substitutions.
_SUBSTITUTION = 1 << 25
_FARTHEST_MS = 10_000

_NEVER = 1 << 62
# Largest table of costs to keep: 400 MB.
MAX_CELLS = 50_000_000


class TimedTokens(NamedTuple):
    """A sequence of tokens with times in seconds."""

    codes: NDArray[np.int64]  # equal tokens have equal numbers
    starts: NDArray[np.float64]  # of the time in which a token may be aligned
    ends: NDArray[np.float64]
    middles: NDArray[np.float64]  # of the token's own time
    rows: NDArray[np.int64]  # position of the token's segment in its table


class TimedCounts(NamedTuple):
    """Errors of one sequence against another."""

    substitutions: int
    deletions: int
    insertions: int

    @property
    def errors(self) -> int:
        """All errors together."""
        return sum(self)


def count_timed_errors(reference: TimedTokens, hypothesis: TimedTokens) -> TimedCounts:
    """Count the fewest errors; of alignments with equally few errors, the one with the most hits counts."""
    reference_length, hypothesis_length = len(reference.codes), len(hypothesis.codes)
    low, row = 0, np.zeros(1, dtype=np.int64)
    for low, row in _compute_cost_rows(reference, hypothesis, by_time=False):  # noqa: B007 - only the last is used
        pass
    # Tokens after the last place that is near in time are insertions.
    total = int(row[-1]) + (hypothesis_length - low - len(row) + 1) * _ERROR
    errors, remainder = divmod(total, _ERROR)
    substitutions = remainder // _SUBSTITUTION
    deletions = (errors - substitutions + reference_length - hypothesis_length) // 2
    return TimedCounts(substitutions, deletions, deletions - reference_length + hypothesis_length)


def align_timed_tokens(reference: TimedTokens, hypothesis: TimedTokens) -> tuple[Tokens, Tokens]:
    """Positions of the tokens' counterparts, or -1, in that of the best alignments with the nearest in time."""
    rows = [(0, np.zeros(1, dtype=np.int64))]
    cells = 0
    for low, row in _compute_cost_rows(reference, hypothesis, by_time=True):
        rows.append((low, row))
        cells += len(row)
        if cells > MAX_CELLS:
            message = "too many tokens are near in time to keep their alignment; choose a smaller collar"
            raise InvalidRequestError(message, parameter="collar")
    ours = np.full(len(reference.codes), -1)
    theirs = np.full(len(hypothesis.codes), -1)
    at, place = len(ours), len(theirs)

    def get_cost(at: int, place: int) -> int:
        low, row = rows[at]
        inside = min(place, low + len(row) - 1)
        return int(row[inside - low]) + (place - inside) * _ERROR

    while at:
        cell_cost = get_cost(at, place)
        if get_cost(at - 1, place) + _ERROR == cell_cost:
            at -= 1
        elif place > rows[at][0] and get_cost(at, place - 1) + _ERROR == cell_cost:
            place -= 1
        else:
            at, place = at - 1, place - 1
            ours[at], theirs[place] = place, at
    return ours, theirs


def _compute_cost_rows(
    reference: TimedTokens, hypothesis: TimedTokens, *, by_time: bool
) -> Iterator[tuple[int, Tokens]]:
    """The rows of the table of costs: the first place that is near in time, and the costs of the near places."""
    lows, highs = _find_near_places(reference.starts, reference.ends, hypothesis)
    row, low, high = np.zeros(1, dtype=np.int64), 0, 0
    for number, (new_low, new_high) in enumerate(zip(lows.tolist(), highs.tolist(), strict=True)):
        row = _append_insertion_costs(row, new_high - high)[new_low - low :]
        low, high = new_low, new_high
        row = _advance_costs_by_token(row, reference, number, hypothesis, slice(low, high), by_time=by_time)
        yield low, row


def _find_near_places(
    starts: NDArray[np.float64], ends: NDArray[np.float64], hypothesis: TimedTokens
) -> tuple[Tokens, Tokens]:
    """The places before the first and after the last token that is near in time, for each of some stretches in order.

    What is before a first place is near to no later stretch, and what is after a last place to no earlier one.
    """
    # Ends and starts may fall along the stream; their running maximum and minimum do not.
    first = np.searchsorted(np.maximum.accumulate(hypothesis.ends), starts, "right")
    last = np.searchsorted(np.minimum.accumulate(hypothesis.starts[::-1])[::-1], ends, "left")
    lows = np.minimum.accumulate(first[::-1])[::-1]
    return lows, np.maximum.accumulate(np.maximum(last, lows))


def _append_insertion_costs(costs: Tokens, count: int) -> Tokens:
    """Costs with so many more places along the last axis, each one insertion more than the one before."""
    if count <= 0:
        return costs
    more = costs[..., -1:] + np.arange(1, count + 1, dtype=np.int64) * _ERROR
    return np.concatenate([costs, more], axis=-1)


def _lower_costs_by_insertions(costs: Tokens) -> Tokens:
    """Costs with all insertions along the last axis: the cost of a place minus its insertions can only fall."""
    steps = np.arange(costs.shape[-1], dtype=np.int64) * _ERROR
    return np.minimum.accumulate(costs - steps, axis=-1) + steps


def _advance_costs_by_token(
    costs: Tokens,
    reference: TimedTokens,
    number: int,
    hypothesis: TimedTokens,
    near: slice,
    *,
    by_time: bool = False,
) -> Tokens:
    """Costs of the places of a hypothesis after one more token of the reference, along the last axis."""
    cost = np.where(hypothesis.codes[near] == reference.codes[number], 0, _ERROR + _SUBSTITUTION)
    if by_time:
        apart = np.abs(hypothesis.middles[near] - reference.middles[number]) * 1000
        cost += np.minimum(np.rint(apart), _FARTHEST_MS).astype(np.int64)
    start, end = reference.starts[number], reference.ends[number]
    cost[(hypothesis.starts[near] >= end) | (hypothesis.ends[near] <= start)] = _NEVER
    best = costs + _ERROR
    np.minimum(best[..., 1:], costs[..., :-1] + cost, out=best[..., 1:])
    return _lower_costs_by_insertions(best)
