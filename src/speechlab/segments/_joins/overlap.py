"""The overlap join of two tables, from all overlapping pairs of two sets of stretches.

In order of start, the candidates that can overlap a given stretch lie between two places. The first place is the
first stretch at which the running maximum of the ends exceeds the given start. The second place is the first stretch
that starts at or after the given end. Two passes of ``searchsorted`` find both places for all rows at once. A
candidate between them overlaps, unless the running maximum came from a longer stretch before it; one comparison
excludes these.

Many long stretches would give too many candidates. Each pair is then found from its stretch that starts first. This
yields no wrong candidates, but takes three more searches and one more sort.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from speechlab._arguments import to_column_names
from speechlab._pandas import pd
from speechlab.errors import SegmentError
from speechlab.segments._frame.ticks import (
    LATEST_S,
    Line,
    Stretches,
    assign_group_codes,
    refuse_rows,
    to_seconds,
    to_ticks,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

# Maximum of the candidates for each row, on average.
_CANDIDATES = 4

# Maximum number of pairs; a joined table has 24 bytes for each, and takes twice that while it is made.
_MOST_PAIRS = 100_000_000

# Bits of an integer that are available for a key.
_BITS = 62


def find_overlapping_pairs(
    a_start: Numbers, a_end: Numbers, b_start: Numbers, b_end: Numbers
) -> tuple[Numbers, Numbers]:
    """Find all pairs of stretches that share time. Stretches without length share none."""
    a_rows, b_rows = _find_nonempty_positions(a_start, a_end), _find_nonempty_positions(b_start, b_end)
    if a_rows is not None:
        a_start, a_end = a_start[a_rows], a_end[a_rows]
    if b_rows is not None:
        b_start, b_end = b_start[b_rows], b_end[b_rows]
    left, right = _find_overlapping_nonempty_pairs(a_start, a_end, b_start, b_end)
    return (left if a_rows is None else a_rows[left]), (right if b_rows is None else b_rows[right])


def find_intersections(one: Stretches, other: Stretches, count: int) -> tuple[Numbers, Numbers, Stretches]:
    """Positions of pairs that share time, by the first, then by start of the second; and what each pair shares."""
    line = Line([one, other], count)
    left, right = find_overlapping_pairs(
        line.place_starts(one), line.place_ends(one), line.place_starts(other), line.place_ends(other)
    )
    starts = np.maximum(one.starts[left], other.starts[right])
    return left, right, Stretches(one.codes[left], starts, np.minimum(one.ends[left], other.ends[right]))


def _find_nonempty_positions(start: Numbers, end: Numbers) -> Numbers | None:
    """Positions of the stretches that have a length; None if all have."""
    real = end > start
    return None if real.all() else np.flatnonzero(real)


def _find_overlapping_nonempty_pairs(
    a_start: Numbers, a_end: Numbers, b_start: Numbers, b_end: Numbers
) -> tuple[Numbers, Numbers]:
    # Searching sorted keys is several times faster than searching unsorted ones, which outweighs the sorts.
    a_order, b_order = _compute_sort_order(a_start), _compute_sort_order(b_start)
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
        left, right = _add_earlier_pairs(first, counts, _find_earlier_pairs(starts, a_order, b_start, b_end))
    else:
        left, right = _expand_ranges(first, counts)
        real = b_end[right] > a_start[left]
        if not real.all():
            left, right = left[real], right[real]
    return left, (right if b_order is None else b_order[right])


def _find_earlier_pairs(
    starts: Numbers, a_order: Numbers | None, b_start: Numbers, b_end: Numbers
) -> tuple[Numbers, Numbers]:
    """All pairs in which b's stretch starts first, by a's position, then b's place; both starts are sorted."""
    first = np.searchsorted(starts, b_start, "right")
    right, left = _expand_ranges(first, np.maximum(np.searchsorted(starts, b_end, "left") - first, 0))
    return _sort_pairs(left if a_order is None else a_order[left], right)


def _add_earlier_pairs(
    first: Numbers, counts: Numbers, earlier: tuple[Numbers, Numbers]
) -> tuple[Numbers, Numbers]:
    """Pairs of each row with its earlier places, then with its ``counts`` places from ``first`` on."""
    rows, places = earlier
    before = np.bincount(rows, minlength=len(counts))
    left, right = _expand_ranges(first - before, counts + before)
    right[np.arange(len(rows)) + (np.cumsum(counts) - counts)[rows]] = places
    return left, right


def _expand_ranges(first: Numbers, counts: Numbers) -> tuple[Numbers, Numbers]:
    """Pairs of each row with its ``counts`` places from ``first`` on."""
    if (count := int(counts.sum())) > _MOST_PAIRS:
        message = (
            f"{count:,} pairs of segments share time, more than the {_MOST_PAIRS:,} that a join keeps in memory; "
            "join some recordings or a part of the rows at a time, or merge the segments of one table first"
        )
        raise SegmentError(message)
    rows = np.repeat(np.arange(len(counts)), counts)
    return rows, np.arange(len(rows)) + np.repeat(first - (np.cumsum(counts) - counts), counts)


def _compute_sort_order(values: Numbers) -> Numbers | None:
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


def _sort_pairs(left: Numbers, right: Numbers) -> tuple[Numbers, Numbers]:
    """Pairs by left, then right."""
    if not len(left):
        return left, right
    bits = int(right.max()).bit_length()
    keys = np.sort((left << bits) | right)
    return keys >> bits, keys & ((1 << bits) - 1)


def overlap_join(a: pd.DataFrame, b: pd.DataFrame, by: str | Sequence[str] | None = None) -> pd.DataFrame:
    """Find all pairs of rows that share time in the same recording.

    >>> from speechlab import segments
    >>> said = segments.frame([(0.0, 2.0), (2.0, 3.0)], file="a.wav")
    >>> recognized = segments.frame([(1.5, 2.5), (3.0, 4.0)], file="a.wav")
    >>> segments.overlap_join(said, recognized)
       left  right  overlap_s
    0     0      0        0.5
    1     1      0        0.5

    Times are compared to the microsecond, and may be negative. Segments are half open, so touching segments and
    instants share no time. Rows without a time or a file have no pair. Both tables may be in any order.

    Args:
        a: A table with the columns ``start`` and ``end``.
        b: The other table, with the same columns.
        by: Columns that must be equal; by default ``file`` if the tables have it.

    Returns:
        One row for each pair, sorted by ``left``, then by the start of the right row. Columns: ``left`` and
        ``right``, the positions (from 0) of the rows in the tables, and ``overlap_s``.

    Raises:
        SegmentError: A column is missing or does not have numbers, an end is before its start, or more than 100
            million pairs share time.
    """
    sides = build_join_sides(a, b, by)
    left, right = sides.find_overlapping_rows()
    return pd.DataFrame(
        {"left": left, "right": right, "overlap_s": to_seconds(sides.measure_overlaps(left, right))},
        copy=False,
    )


class JoinSide(NamedTuple):
    """One table: the times of all rows in microseconds, and the rows that can have a pair."""

    starts: NDArray[np.int64]  # 0 if missing
    ends: NDArray[np.int64]
    rows: NDArray[np.int64]  # positions of the rows with times and a group
    spans: Stretches  # of these rows

    def to_table_positions(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions in the table of some of ``rows``."""
        return places if len(self.rows) == len(self.starts) else self.rows[places]


class JoinSides(NamedTuple):
    """Two tables, laid out on one line."""

    a: JoinSide
    b: JoinSide
    keys: tuple[
        NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]
    ]  # starts and ends of a, then of b

    def find_overlapping_rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the positions of all pairs that share time, sorted by position in ``a``, then by start in ``b``."""
        left, right = find_overlapping_pairs(*self.keys)
        return self.a.to_table_positions(left), self.b.to_table_positions(right)

    def measure_overlaps(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
        """Shared time of pairs of rows in microseconds."""
        ends = np.minimum(self.a.ends[left], self.b.ends[right])
        return ends - np.maximum(self.a.starts[left], self.b.starts[right])


def build_join_sides(
    a: pd.DataFrame, b: pd.DataFrame, by: str | Sequence[str] | None, *, instants: bool = False
) -> JoinSides:
    """Lay two tables out on one line; instants share time if that is set."""
    check_table(a, "a")
    check_table(b, "b")
    columns = _resolve_key_columns(a, b, by)
    codes, count = assign_group_codes([a, b], columns)
    left_side = _build_join_side(a, "a", codes[0])
    right_side = _build_join_side(b, "b", codes[1])
    first, second = (
        side.spans.widen_instants() if instants else side.spans for side in (left_side, right_side)
    )
    line = Line([first, second], count)
    keys = (
        line.place_starts(first),
        line.place_ends(first),
        line.place_starts(second),
        line.place_ends(second),
    )
    return JoinSides(left_side, right_side, keys)


def check_table(table: object, which: str) -> None:
    """Refuse a value that is not a table, or a table with two columns of one name."""
    if not isinstance(table, pd.DataFrame):
        kind = type(table).__name__
        raise SegmentError(f"{which} is a {kind}; expected a table with the columns 'start' and 'end'")
    twice = table.columns[table.columns.duplicated()]
    if len(twice):
        raise SegmentError(
            f"table {which} has the column {twice[0]!r} twice; rename one", column=str(twice[0])
        )


def _resolve_key_columns(a: pd.DataFrame, b: pd.DataFrame, by: str | Sequence[str] | None) -> list[str]:
    if by is None:
        have = ["file" in table.columns for table in (a, b)]
        if have[0] != have[1]:
            message = "only one of the tables has the column 'file'; add it to the other, or give by=[]"
            raise SegmentError(message, column="file")
        return ["file"] if all(have) else []
    columns = to_column_names(by, "by")
    for name in columns:
        for which, table in (("a", a), ("b", b)):
            if name not in table.columns:
                raise SegmentError(f"table {which} has no column {name!r}, which by= names", column=name)
    return columns


def _build_join_side(table: pd.DataFrame, which: str, codes: NDArray[np.int64]) -> JoinSide:
    start, end = (_extract_times(table, name, which) for name in ("start", "end"))
    valid = np.isfinite(start) & np.isfinite(end) & (codes >= 0)
    complete = bool(valid.all())
    if not complete:
        start, end = np.where(valid, start, 0.0), np.where(valid, end, 0.0)
    starts, ends = to_ticks(start), to_ticks(end)
    refuse_rows(
        ends < starts,
        "end",
        lambda row: (
            f"row {row} of table {which} ends at {end[row]:.10g} s, before its start at {start[row]:.10g} s"
        ),
    )
    spans = Stretches(codes, starts, ends)
    rows = np.arange(len(codes)) if complete else np.flatnonzero(valid)
    return JoinSide(starts, ends, rows, spans if complete else spans[rows])


def _extract_times(table: pd.DataFrame, name: str, which: str) -> NDArray[np.float64]:
    if name not in table.columns:
        raise SegmentError(f"table {which} has no column {name!r}", column=name)
    column = table[name]
    kind = pd.api.types
    if not kind.is_numeric_dtype(column) or kind.is_bool_dtype(column) or kind.is_complex_dtype(column):
        if len(column):
            message = f"column {name!r} of table {which} holds {column.dtype}, not seconds"
            raise SegmentError(message, column=name)
        return np.empty(0)
    values: NDArray[np.float64] = column.to_numpy(dtype="float64", na_value=np.nan)
    refuse_rows(
        np.abs(values) > LATEST_S,
        name,
        lambda row: (
            f"{name} of row {row} of table {which} is {values[row]:g}; expected seconds up to {LATEST_S:.0f}"
        ),
    )
    return values
