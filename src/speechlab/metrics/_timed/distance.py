"""Edit distance of two timed sequences of tokens, in which only tokens at the same time are aligned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Tokens = NDArray[np.int64]

ERROR = 1 << 40
"""Weight of an error."""
_SUBSTITUTION = 1 << 25
"""Weight that a substitution adds, which only decides between alignments with equally many errors. The distance in
time of aligned tokens, in milliseconds, decides between those with equally many substitutions."""
_FARTHEST_MS = 10_000

_NEVER = 1 << 62
MAX_CELLS = 50_000_000
"""Largest table of costs to keep: 400 MB."""


class TimedTokens(NamedTuple):
    """A sequence of tokens with times in seconds."""

    codes: NDArray[np.int64]  # equal tokens have equal numbers
    starts: NDArray[np.float64]  # of the time in which a token may be aligned
    ends: NDArray[np.float64]
    middles: NDArray[np.float64]  # of the token's own time
    rows: NDArray[np.int64]  # position of the token's segment in its table

    def part(self, which: slice) -> TimedTokens:
        """Return some of the tokens."""
        times = self.starts[which], self.ends[which], self.middles[which]
        return TimedTokens(self.codes[which], *times, self.rows[which])


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
    """Count the fewest errors; of alignments with equally few errors, the one with the most hits counts."""
    reference_length, hypothesis_length = len(reference.codes), len(hypothesis.codes)
    low, row = 0, np.zeros(1, dtype=np.int64)
    for low, row in _rows(reference, hypothesis, by_time=False):  # noqa: B007 - only the last is used
        pass
    # Tokens after the last place that is near in time are insertions.
    total = int(row[-1]) + (hypothesis_length - low - len(row) + 1) * ERROR
    errors, remainder = divmod(total, ERROR)
    substitutions = remainder // _SUBSTITUTION
    deletions = (errors - substitutions + reference_length - hypothesis_length) // 2
    return TimedCounts(substitutions, deletions, deletions - reference_length + hypothesis_length)


def timed_edits(reference: TimedTokens, hypothesis: TimedTokens) -> tuple[Tokens, Tokens]:
    """Positions of the tokens' counterparts, or -1, in that of the best alignments with the nearest in time."""
    rows = [(0, np.zeros(1, dtype=np.int64))]
    cells = 0
    for low, row in _rows(reference, hypothesis, by_time=True):
        rows.append((low, row))
        cells += len(row)
        if cells > MAX_CELLS:
            message = "too many tokens are near in time to keep their alignment; choose a smaller collar"
            raise InvalidRequestError(message, parameter="collar")
    ours = np.full(len(reference.codes), -1)
    theirs = np.full(len(hypothesis.codes), -1)
    at, place = len(ours), len(theirs)

    def cost(at: int, place: int) -> int:
        low, row = rows[at]
        inside = min(place, low + len(row) - 1)
        return int(row[inside - low]) + (place - inside) * ERROR

    while at:
        cell_cost = cost(at, place)
        if cost(at - 1, place) + ERROR == cell_cost:
            at -= 1
        elif place > rows[at][0] and cost(at, place - 1) + ERROR == cell_cost:
            place -= 1
        else:
            at, place = at - 1, place - 1
            ours[at], theirs[place] = place, at
    return ours, theirs


def _rows(reference: TimedTokens, hypothesis: TimedTokens, *, by_time: bool) -> Iterator[tuple[int, Tokens]]:
    """The rows of the table of costs: the first place that is near in time, and the costs of the near places."""
    lows, highs = near_places(reference.starts, reference.ends, hypothesis)
    row, low, high = np.zeros(1, dtype=np.int64), 0, 0
    for number, (new_low, new_high) in enumerate(zip(lows.tolist(), highs.tolist(), strict=True)):
        row = with_insertions(row, new_high - high)[new_low - low :]
        low, high = new_low, new_high
        row = after_token(row, reference, number, hypothesis, slice(low, high), by_time=by_time)
        yield low, row


def near_places(
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


def with_insertions(costs: Tokens, count: int) -> Tokens:
    """Costs with so many more places along the last axis, each one insertion more than the one before."""
    if count <= 0:
        return costs
    more = costs[..., -1:] + np.arange(1, count + 1, dtype=np.int64) * ERROR
    return np.concatenate([costs, more], axis=-1)


def closed(costs: Tokens) -> Tokens:
    """Costs with all insertions along the last axis: the cost of a place minus its insertions can only fall."""
    steps = np.arange(costs.shape[-1], dtype=np.int64) * ERROR
    return np.minimum.accumulate(costs - steps, axis=-1) + steps


def after_token(
    costs: Tokens,
    reference: TimedTokens,
    number: int,
    hypothesis: TimedTokens,
    near: slice,
    *,
    by_time: bool = False,
) -> Tokens:
    """Costs of the places of a hypothesis after one more token of the reference, along the last axis."""
    cost = np.where(hypothesis.codes[near] == reference.codes[number], 0, ERROR + _SUBSTITUTION)
    if by_time:
        apart = np.abs(hypothesis.middles[near] - reference.middles[number]) * 1000
        cost += np.minimum(np.rint(apart), _FARTHEST_MS).astype(np.int64)
    start, end = reference.starts[number], reference.ends[number]
    cost[(hypothesis.starts[near] >= end) | (hypothesis.ends[near] <= start)] = _NEVER
    best = costs + ERROR
    np.minimum(best[..., 1:], costs[..., :-1] + cost, out=best[..., 1:])
    return closed(best)


def cheapest_streams(segments: Sequence[TimedTokens], streams: Sequence[TimedTokens]) -> list[int]:
    """Assign each segment to a stream, so that all together have the fewest errors, then the most hits.

    The costs are a table with an axis for each stream. Source: T. von Neumann et al., On word error rate definitions
    and their efficient computation for multi-speaker speech recognition systems (ICASSP 2023).
    """
    nonempty = [number for number, segment in enumerate(segments) if len(segment.codes)]
    bounds = [_bounds([segments[number] for number in nonempty], stream) for stream in streams]
    cells = sum(
        int(np.prod([highs[at] - lows[at] + 1 for lows, highs in bounds], dtype=np.float64))
        for at in range(len(nonempty))
    )
    if cells > MAX_CELLS:
        message = (
            f"{len(streams)} speakers have too many words near in time to try all assignments of segments; choose a "
            "smaller collar, or assign='speaker'"
        )
        raise InvalidRequestError(message, parameter="collar")
    costs = np.zeros((1,) * len(streams), dtype=np.int64)
    low, high = [0] * len(streams), [0] * len(streams)
    tables = [(low, costs)]
    for at, number in enumerate(nonempty):
        segment, options = segments[number], []
        for axis, (lows, highs) in enumerate(bounds):
            along = with_insertions(np.moveaxis(costs, axis, -1), int(highs[at]) - high[axis])
            costs = np.moveaxis(along[..., int(lows[at]) - low[axis] :], -1, axis)
        low, high = ([int(side[at]) for side in sides] for sides in zip(*bounds, strict=True))
        for axis, stream in enumerate(streams):
            row = np.moveaxis(costs, axis, -1)
            for token in range(len(segment.codes)):
                row = after_token(row, segment, token, stream, slice(low[axis], high[axis]))
            options.append(np.moveaxis(row, -1, axis))
        costs = np.minimum.reduce(options)
        for axis in range(len(streams)):
            costs = np.moveaxis(closed(np.moveaxis(costs, axis, -1)), -1, axis)
        tables.append((low, costs))
    return _chosen(segments, nonempty, streams, tables)


def _bounds(segments: Sequence[TimedTokens], stream: TimedTokens) -> tuple[Tokens, Tokens]:
    starts = np.array([segment.starts.min() for segment in segments])
    latest = np.array([segment.ends.max() for segment in segments])
    return near_places(starts, latest, stream)


def _chosen(
    segments: Sequence[TimedTokens],
    spoken: Sequence[int],
    streams: Sequence[TimedTokens],
    tables: Sequence[tuple[list[int], Tokens]],
) -> list[int]:
    """The streams of the segments on the cheapest way, found from its end."""
    chosen = [0] * len(segments)
    place = [len(stream.codes) for stream in streams]
    for at in range(len(spoken), 0, -1):
        low, costs = tables[at]
        # Insertions since this segment: as long as the way came from a place before.
        for axis in range(len(streams)):
            row = _along(costs, low, place, axis, low[axis])
            while place[axis] > low[axis] and row[-2] + ERROR == row[-1]:
                place[axis] -= 1
                row = row[:-1]
        cost_here = int(_along(costs, low, place, 0, place[0])[-1])
        before_low, before = tables[at - 1]
        segment = segments[spoken[at - 1]].part(slice(None, None, -1))
        for axis, stream in enumerate(streams):
            first, last = low[axis], place[axis]
            row = np.arange(last - first + 1, dtype=np.int64) * ERROR
            reversed_part = stream.part(slice(first, last)).part(slice(None, None, -1))
            for token in range(len(segment.codes)):
                row = after_token(row, segment, token, reversed_part, slice(None))
            through = _along(before, before_low, place, axis, first) + row[::-1]
            if (exits := np.flatnonzero(through == cost_here)).size:
                chosen[spoken[at - 1]] = axis
                place[axis] = first + int(exits[-1])
                break
    return chosen


def _along(costs: Tokens, low: Sequence[int], place: Sequence[int], axis: int, first: int) -> Tokens:
    """Costs of the places from ``first`` to ``place[axis]``; beyond the table, each is one insertion more."""
    inside, extra = [], 0
    for number, at in enumerate(place):
        last = low[number] + costs.shape[number] - 1
        inside.append(min(at, last) - low[number])
        extra += max(0, at - last) if number != axis else 0
    places = np.arange(first, place[axis] + 1)
    last = low[axis] + costs.shape[axis] - 1
    row: Tokens = np.moveaxis(costs, axis, -1)[tuple(inside[:axis] + inside[axis + 1 :])]
    beyond: Tokens = (np.maximum(places - last, 0) + extra) * ERROR
    return np.asarray(row[np.minimum(places, last) - low[axis]] + beyond)
