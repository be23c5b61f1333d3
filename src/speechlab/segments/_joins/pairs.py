"""All overlapping pairs of two sets of stretches.

Sorted by start, the stretches that can overlap a given one lie between two places: the first whose end, or an end
before it, lies after the given start (ends are made rising by their running maximum), and the first that starts at or
after the given end. Two passes of ``searchsorted`` find both places for all rows at once. What lies between overlaps,
unless a long stretch before it had pushed the running maximum up; such candidates are told by one comparison.

Where long stretches are many, that would be too many candidates. Then each pair is found from the side of the one
that starts first, which never yields a wrong candidate but takes three searches and a sort more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

_CANDIDATES = 4
"""How many candidates there may be for each row, on average."""

_BITS = 62
"""Bits of a whole number that can carry a key."""


def pairs(a_start: Numbers, a_end: Numbers, b_start: Numbers, b_end: Numbers) -> tuple[Numbers, Numbers]:
    """Find all pairs that share time. What has no length shares none.

    Args:
        a_start: Where the stretches of one set start, in any order.
        a_end: Where they end.
        b_start: Where the stretches of the other set start.
        b_end: Where they end.

    Returns:
        Positions in the one set, rising, and in the other, within each by start and then position.
    """
    a_rows, b_rows = _with_length(a_start, a_end), _with_length(b_start, b_end)
    if a_rows is not None:
        a_start, a_end = a_start[a_rows], a_end[a_rows]
    if b_rows is not None:
        b_start, b_end = b_start[b_rows], b_end[b_rows]
    left, right = _pairs(a_start, a_end, b_start, b_end)
    return (left if a_rows is None else a_rows[left]), (right if b_rows is None else b_rows[right])


def _with_length(start: Numbers, end: Numbers) -> Numbers | None:
    """Rows that have a length; None if all have."""
    real = end > start
    return None if real.all() else np.flatnonzero(real)


def _pairs(a_start: Numbers, a_end: Numbers, b_start: Numbers, b_end: Numbers) -> tuple[Numbers, Numbers]:
    # Searching in order is several times faster than at random, and pays for the sorts.
    a_order, b_order = _order(a_start), _order(b_start)
    starts, ends = (a_start, a_end) if a_order is None else (a_start[a_order], a_end[a_order])
    if b_order is not None:
        b_start, b_end = b_start[b_order], b_end[b_order]
    first = np.searchsorted(np.maximum.accumulate(b_end), starts, "right")
    last = np.searchsorted(b_start, ends, "left")
    counts = np.maximum(last - first, 0)
    many = int(counts.sum()) > _CANDIDATES * (len(a_start) + len(b_start))
    if many:  # only those that start within the other one, both starts together included
        first = np.searchsorted(b_start, starts, "left")
        counts = last - first
    if a_order is not None:  # back to the order of the rows, so that the pairs come in it
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
    """All pairs of which b's starts first, by a's position, then b's place; starts rise, and so does b_start."""
    first = np.searchsorted(starts, b_start, "right")
    right, left = _expand(first, np.maximum(np.searchsorted(starts, b_end, "left") - first, 0))
    return _sorted(left if a_order is None else a_order[left], right)


def _and_earlier(
    first: Numbers, counts: Numbers, earlier: tuple[Numbers, Numbers]
) -> tuple[Numbers, Numbers]:
    """Each row beside its places from its first on, and beside its earlier ones before them."""
    rows, places = earlier
    before = np.bincount(rows, minlength=len(counts))
    left, right = _expand(first - before, counts + before)
    right[np.arange(len(rows)) + (np.cumsum(counts) - counts)[rows]] = places
    return left, right


def _expand(first: Numbers, counts: Numbers) -> tuple[Numbers, Numbers]:
    """Each row as often as it counts, beside the places from its first on."""
    rows = np.repeat(np.arange(len(counts)), counts)
    return rows, np.arange(len(rows)) + np.repeat(first - (np.cumsum(counts) - counts), counts)


def _order(values: Numbers) -> Numbers | None:
    """Positions by value, equal ones in their order; None if they are sorted already."""
    if not (values[1:] < values[:-1]).any():
        return None
    bits = len(values).bit_length()
    low = values.min()
    if int(values.max() - low).bit_length() + bits > _BITS:
        return np.argsort(values, kind="stable")
    # Sorting numbers that carry their position is faster than sorting positions.
    keys = np.sort(((values - low) << bits) | np.arange(len(values)))
    return keys & ((1 << bits) - 1)


def _sorted(left: Numbers, right: Numbers) -> tuple[Numbers, Numbers]:
    """Pairs by left, then right."""
    if not len(left):
        return left, right
    bits = int(right.max()).bit_length()
    keys = np.sort((left << bits) | right)
    return keys >> bits, keys & ((1 << bits) - 1)
