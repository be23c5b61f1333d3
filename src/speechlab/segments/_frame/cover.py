"""Sets of time: covered stretches, and how often several sets cover them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from speechlab.segments._frame.ticks import Line, Stretches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Runs:
    """Rows that belong together because little or no silence parts them.

    Attributes:
        order: Positions of the rows, by file, start and end.
        heads: Where in that order each run begins.
        spans: What each run covers, by file and start.
    """

    order: NDArray[np.int64]
    heads: NDArray[np.int64]
    spans: Stretches


def runs_of(spans: Stretches, count: int, gap: int = 0) -> Runs:
    """Find runs of rows between which the silence is at most a gap.

    Args:
        spans: In any order; they may overlap.
        count: How many files there are.
        gap: Microseconds; 0 joins what touches or overlaps.
    """
    line = Line([spans], count, room=max(gap, 0) + 1)
    starts = line.starts(spans)
    order = np.lexsort((spans.ends, starts))
    sorted_spans = spans[order]
    if not len(spans):
        return Runs(order, order, spans)
    begin, end = starts[order], line.ends(sorted_spans)
    latest = np.maximum.accumulate(end)
    fresh = np.empty(len(order), dtype=bool)
    fresh[0] = True
    fresh[1:] = begin[1:] - latest[:-1] > gap
    heads = np.flatnonzero(fresh)
    ends = np.maximum.reduceat(sorted_spans.ends, heads)
    return Runs(order, heads, Stretches(sorted_spans.codes[heads], sorted_spans.starts[heads], ends))


def union(spans: Stretches, count: int) -> Stretches:
    """Return the covered time as stretches that neither overlap nor touch, by file and start."""
    return runs_of(spans[spans.ends > spans.starts], count).spans


@dataclass(frozen=True, slots=True)
class Layers:
    """The pieces between all edges of several sets of stretches, and how often each set covers each piece.

    Attributes:
        spans: The pieces, by file and start.
        depths: One row for each set, one column for each piece.
    """

    spans: Stretches
    depths: NDArray[np.int64]


def layers_of(sets: Sequence[Stretches], count: int) -> Layers:
    """Lay several sets of stretches on each other. Stretches without length count nowhere."""
    sets = [spans[spans.ends > spans.starts] for spans in sets]
    line = Line(sets, count)
    places = np.concatenate([side for spans in sets for side in (line.starts(spans), line.ends(spans))])
    codes = np.concatenate([np.concatenate([spans.codes, spans.codes]) for spans in sets])
    times = np.concatenate([np.concatenate([spans.starts, spans.ends]) for spans in sets])
    order = np.argsort(places, kind="stable")
    steps = np.zeros((len(sets), len(places)), dtype=np.int64)
    position = 0
    for number, spans in enumerate(sets):
        steps[number, position : position + len(spans)] = 1
        steps[number, position + len(spans) : position + 2 * len(spans)] = -1
        position += 2 * len(spans)
    depths = np.cumsum(steps[:, order], axis=1)[:, :-1]
    codes, times = codes[order], times[order]
    pieces = Stretches(codes[:-1], times[:-1], times[1:])
    # Between the last edge of a file and the first of the next lies no piece, though the line goes on there.
    real = (codes[:-1] == codes[1:]) & (pieces.ends > pieces.starts)
    return Layers(pieces[real], depths[:, real])


def length_by_file(spans: Stretches, count: int) -> NDArray[np.float64]:
    """Return the seconds that stretches have in each file, counted as often as they are there."""
    # Sums of whole microseconds stay exact in a float up to 285 years.
    return np.bincount(spans.codes, weights=spans.lengths, minlength=count) / 1e6
