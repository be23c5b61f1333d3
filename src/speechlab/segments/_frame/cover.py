"""Covered time: unions of stretches, and the number of stretches of several sets that cover each piece."""

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
    """Runs of rows with little or no silence between them."""

    order: NDArray[np.int64]  # positions of the rows, by file, start and end
    heads: NDArray[np.int64]  # index of the first row of each run in that order
    spans: Stretches  # from the first start to the last end of each run, by file and start


def runs_of(spans: Stretches, count: int, gap: int = 0) -> Runs:
    """Find the runs of rows whose silences are at most ``gap``."""
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
    """The pieces between all edges of several sets of stretches, with the cover of each piece by each set."""

    spans: Stretches  # by file and start
    depths: NDArray[np.int64]  # number of stretches that cover a piece, shape (sets, pieces)


def layers_of(sets: Sequence[Stretches], count: int) -> Layers:
    """Cut the time at all edges of several sets of stretches. Stretches without length are ignored."""
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
    # The line continues between the last edge of a file and the first edge of the next, but there is no piece.
    real = (codes[:-1] == codes[1:]) & (pieces.ends > pieces.starts)
    return Layers(pieces[real], depths[:, real])


def length_by_file(spans: Stretches, count: int) -> NDArray[np.float64]:
    """Return the total duration of the stretches of each file in seconds; overlaps count several times."""
    # Sums of whole microseconds are exact in a float up to 285 years.
    return np.bincount(spans.codes, weights=spans.lengths, minlength=count) / 1e6
