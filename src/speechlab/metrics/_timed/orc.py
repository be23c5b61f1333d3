"""The assignment of segments of a reference to streams of a hypothesis that has the fewest errors (ORC)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from speechlab.errors import InvalidRequestError
from speechlab.metrics._timed.distance import (
    ERROR,
    MAX_CELLS,
    after_token,
    closed,
    near_places,
    with_insertions,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from speechlab.metrics._timed.distance import TimedTokens, Tokens


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
