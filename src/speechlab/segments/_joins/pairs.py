"""All overlapping pairs of two sets of stretches.

Sorted by start, the stretches that can overlap a given one lie between two places: the first whose end, or an end
before it, lies after the given start (ends are made rising by their running maximum), and the first that starts at or
after the given end. Two passes of ``searchsorted`` find both places for all rows at once. What lies between overlaps,
unless a long stretch before it had pushed the running maximum up; such candidates are told by one comparison.

Where long stretches are many, that would be too many candidates. Then each pair is found from the side of the one
that starts first, which never yields a wrong candidate but takes four searches and a sort more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

_CANDIDATES = 8


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


def _rises(values: Numbers) -> bool:
    return not (values[1:] < values[:-1]).any()


def _pairs(a_start: Numbers, a_end: Numbers, b_start: Numbers, b_end: Numbers) -> tuple[Numbers, Numbers]:
    order = None if _rises(b_start) else np.argsort(b_start, kind="stable")
    if order is not None:
        b_start, b_end = b_start[order], b_end[order]
    first, last = _places(a_start, a_end, b_start, b_end)
    counts = np.maximum(last - first, 0)
    total = int(counts.sum())
    if total > _CANDIDATES * (len(a_start) + len(b_start)):
        left, right = _pairs_by_first(a_start, a_end, b_start, b_end)
    else:
        left, right = _expand(first, counts, total)
        real = b_end[right] > a_start[left]
        if not real.all():
            left, right = left[real], right[real]
    return left, (right if order is None else order[right])


def _places(a_start: Numbers, a_end: Numbers, b_start: Numbers, b_end: Numbers) -> tuple[Numbers, Numbers]:
    """First and last place of candidates for each stretch of a; b is sorted."""
    rising = np.maximum.accumulate(b_end)
    if _rises(a_start):
        return np.searchsorted(rising, a_start, "right"), np.searchsorted(b_start, a_end, "left")
    # Searching in order is several times faster than at random, and pays for the sort.
    order = np.argsort(a_start)
    first, last = np.empty_like(order), np.empty_like(order)
    first[order] = np.searchsorted(rising, a_start[order], "right")
    last[order] = np.searchsorted(b_start, a_end[order], "left")
    return first, last


def _expand(first: Numbers, counts: Numbers, total: int) -> tuple[Numbers, Numbers]:
    """Each row as often as it counts, beside the places from its first on."""
    left = np.repeat(np.arange(len(counts)), counts)
    return left, np.arange(total) + np.repeat(first - (np.cumsum(counts) - counts), counts)


def _pairs_by_first(
    a_start: Numbers, a_end: Numbers, b_start: Numbers, b_end: Numbers
) -> tuple[Numbers, Numbers]:
    order = np.argsort(a_start, kind="stable")
    sorted_start = a_start[order]
    # b starts within a, both starts together included ...
    first = np.searchsorted(b_start, a_start, "left")
    counts = np.searchsorted(b_start, a_end, "left") - first
    one, other = _expand(first, counts, int(counts.sum()))
    # ... or a starts within b, after its start.
    first = np.searchsorted(sorted_start, b_start, "right")
    counts = np.maximum(np.searchsorted(sorted_start, b_end, "left") - first, 0)
    more, places = _expand(first, counts, int(counts.sum()))
    left, right = np.concatenate([one, order[places]]), np.concatenate([other, more])
    final = np.lexsort((right, left))
    return left[final], right[final]
