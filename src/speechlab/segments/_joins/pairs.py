"""All overlapping pairs of two sets of stretches.

In order of start, the candidates that can overlap a given stretch lie between two places. The first place is the
first stretch at which the running maximum of the ends exceeds the given start. The second place is the first stretch
that starts at or after the given end. Two passes of ``searchsorted`` find both places for all rows at once. A
candidate between them overlaps, unless the running maximum came from a longer stretch before it; one comparison
excludes these.

Many long stretches would give too many candidates. Each pair is then found from its stretch that starts first. This
yields no wrong candidates, but takes three more searches and one more sort.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from speechlab.errors import SegmentError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

_CANDIDATES = 4
"""Maximum of the candidates for each row, on average."""

_MOST_PAIRS = 100_000_000
"""Maximum number of pairs; a joined table has 24 bytes for each, and takes twice that while it is made."""

_BITS = 62
"""Bits of an integer that are available for a key."""


def pairs(a_start: Numbers, a_end: Numbers, b_start: Numbers, b_end: Numbers) -> tuple[Numbers, Numbers]:
    """Find all pairs of stretches that share time. Stretches without length share none."""
    a_rows, b_rows = _with_length(a_start, a_end), _with_length(b_start, b_end)
    if a_rows is not None:
        a_start, a_end = a_start[a_rows], a_end[a_rows]
    if b_rows is not None:
        b_start, b_end = b_start[b_rows], b_end[b_rows]
    left, right = _pairs(a_start, a_end, b_start, b_end)
    return (left if a_rows is None else a_rows[left]), (right if b_rows is None else b_rows[right])


def _with_length(start: Numbers, end: Numbers) -> Numbers | None:
    """Positions of the stretches that have a length; None if all have."""
    real = end > start
    return None if real.all() else np.flatnonzero(real)


def _pairs(a_start: Numbers, a_end: Numbers, b_start: Numbers, b_end: Numbers) -> tuple[Numbers, Numbers]:
    # Searching sorted keys is several times faster than searching unsorted ones, which outweighs the sorts.
    a_order, b_order = _order(a_start), _order(b_start)
    starts, ends = (a_start, a_end) if a_order is None else (a_start[a_order], a_end[a_order])
    if b_order is not None:
        b_start, b_end = b_start[b_order], b_end[b_order]
    first = np.searchsorted(np.maximum.accumulate(b_end), starts, "right")
    last = np.searchsorted(b_start, ends, "left")
    counts = np.maximum(last - first, 0)
    many = int(counts.sum()) > _CANDIDATES * (len(a_start) + len(b_start))
    if many:  # only those that start within the other stretch, equal starts included
        first = np.searchsorted(b_start, starts, "left")
        counts = last - first
    if a_order is not None:  # back to the order of the rows, which is the order of the pairs
        first[a_order], counts[a_order] = first.copy(), counts.copy()
    if many:
        left, right = _and_earlier(first, counts, _earlier(starts, a_order, b_start, b_end))
    else:
        left, right = _expand(first, counts)
        real = b_end[right] > a_start[left]
        if not real.all():
            left, right = left[real], right[real]
    return left, (right if b_order is None else b_order[right])


def _earlier(
    starts: Numbers, a_order: Numbers | None, b_start: Numbers, b_end: Numbers
) -> tuple[Numbers, Numbers]:
    """All pairs in which b's stretch starts first, by a's position, then b's place; both starts are sorted."""
    first = np.searchsorted(starts, b_start, "right")
    right, left = _expand(first, np.maximum(np.searchsorted(starts, b_end, "left") - first, 0))
    return _sorted(left if a_order is None else a_order[left], right)


def _and_earlier(
    first: Numbers, counts: Numbers, earlier: tuple[Numbers, Numbers]
) -> tuple[Numbers, Numbers]:
    """Pairs of each row with its earlier places, then with its ``counts`` places from ``first`` on."""
    rows, places = earlier
    before = np.bincount(rows, minlength=len(counts))
    left, right = _expand(first - before, counts + before)
    right[np.arange(len(rows)) + (np.cumsum(counts) - counts)[rows]] = places
    return left, right


def _expand(first: Numbers, counts: Numbers) -> tuple[Numbers, Numbers]:
    """Pairs of each row with its ``counts`` places from ``first`` on."""
    if (count := int(counts.sum())) > _MOST_PAIRS:
        message = (
            f"{count:,} pairs of segments share time, more than the {_MOST_PAIRS:,} that a join keeps in memory; "
            "join some recordings or a part of the rows at a time, or merge the segments of one table first"
        )
        raise SegmentError(message)
    rows = np.repeat(np.arange(len(counts)), counts)
    return rows, np.arange(len(rows)) + np.repeat(first - (np.cumsum(counts) - counts), counts)


def _order(values: Numbers) -> Numbers | None:
    """Positions in order of value, stable; None if the values are sorted already."""
    if not (values[1:] < values[:-1]).any():
        return None
    bits = len(values).bit_length()
    low = values.min()
    if int(values.max() - low).bit_length() + bits > _BITS:
        return np.argsort(values, kind="stable")
    # Sorting integers that contain their position is faster than an argsort.
    keys = np.sort(((values - low) << bits) | np.arange(len(values)))
    return keys & ((1 << bits) - 1)


def _sorted(left: Numbers, right: Numbers) -> tuple[Numbers, Numbers]:
    """Pairs by left, then right."""
    if not len(left):
        return left, right
    bits = int(right.max()).bit_length()
    keys = np.sort((left << bits) | right)
    return keys >> bits, keys & ((1 << bits) - 1)
