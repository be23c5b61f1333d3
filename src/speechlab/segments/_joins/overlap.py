"""The overlap join of two tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from speechlab.errors import SegmentError
from speechlab.segments._frame.ticks import LATEST_S, Line, Stretches, common_codes, seconds_of, ticks_of
from speechlab.segments._joins.pairs import pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray


def overlap_join(a: pd.DataFrame, b: pd.DataFrame, by: str | Sequence[str] | None = None) -> pd.DataFrame:
    """Find all pairs of rows that share time in the same recording.

    >>> from speechlab import segments
    >>> said = segments.frame([(0.0, 2.0), (2.0, 3.0)], file="a.wav")
    >>> heard = segments.frame([(1.5, 2.5), (3.0, 4.0)], file="a.wav")
    >>> segments.overlap_join(said, heard)
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
    import pandas as pd

    sides = lay_out(a, b, by)
    left, right = sides.pairs()
    return pd.DataFrame(
        {"left": left, "right": right, "overlap_s": seconds_of(sides.overlaps(left, right))}, copy=False
    )


class LaidTable(NamedTuple):
    """One table: the times of all rows in microseconds, and the rows that can have a pair."""

    starts: NDArray[np.int64]  # 0 if missing
    ends: NDArray[np.int64]
    rows: NDArray[np.int64]  # positions of the rows with times and a group
    spans: Stretches  # of these rows

    def positions(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions in the table of some of ``rows``."""
        return places if len(self.rows) == len(self.starts) else self.rows[places]


class LaidTables(NamedTuple):
    """Two tables, laid out on one line."""

    a: LaidTable
    b: LaidTable
    keys: tuple[
        NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]
    ]  # starts and ends of a, then of b
    groups: int

    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the positions of all pairs that share time, sorted by position in ``a``, then by start in ``b``."""
        left, right = pairs(*self.keys)
        return self.a.positions(left), self.b.positions(right)

    def overlaps(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
        """Shared time of pairs of rows in microseconds."""
        ends = np.minimum(self.a.ends[left], self.b.ends[right])
        return ends - np.maximum(self.a.starts[left], self.b.starts[right])


def lay_out(
    a: pd.DataFrame, b: pd.DataFrame, by: str | Sequence[str] | None, *, instant: int = 0
) -> LaidTables:
    """Lay two tables out on one line."""
    check_table(a, "a")
    check_table(b, "b")
    columns = _common(a, b, by)
    codes, count = common_codes([a, b], columns)
    left_side = _side(a, "a", codes[0])
    right_side = _side(b, "b", codes[1])
    wide = [
        Stretches(
            side.spans.codes, side.spans.starts, np.maximum(side.spans.ends, side.spans.starts + instant)
        )
        for side in (left_side, right_side)
    ]
    line = Line(wide, count)
    first, second = wide
    keys = (line.starts(first), line.ends(first), line.starts(second), line.ends(second))
    return LaidTables(left_side, right_side, keys, count)


def check_table(table: object, which: str) -> None:
    """Refuse a value that is not a table, or a table with two columns of one name."""
    import pandas as pd

    if not isinstance(table, pd.DataFrame):
        kind = type(table).__name__
        raise SegmentError(f"{which} is a {kind}; expected a table with the columns 'start' and 'end'")
    twice = table.columns[table.columns.duplicated()]
    if len(twice):
        raise SegmentError(
            f"table {which} has the column {twice[0]!r} twice; rename one", column=str(twice[0])
        )


def _common(a: pd.DataFrame, b: pd.DataFrame, by: str | Sequence[str] | None) -> list[str]:
    if by is None:
        have = ["file" in table.columns for table in (a, b)]
        if have[0] != have[1]:
            message = "only one of the tables has the column 'file'; add it to the other, or give by=[]"
            raise SegmentError(message, column="file")
        return ["file"] if all(have) else []
    columns = [by] if isinstance(by, str) else list(by)
    for name in columns:
        for which, table in (("a", a), ("b", b)):
            if name not in table.columns:
                raise SegmentError(f"table {which} has no column {name!r}, which by= names", column=name)
    return columns


def _side(table: pd.DataFrame, which: str, codes: NDArray[np.int64]) -> LaidTable:
    start, end = (_times(table, name, which) for name in ("start", "end"))
    valid = np.isfinite(start) & np.isfinite(end) & (codes >= 0)
    complete = bool(valid.all())
    if not complete:
        start, end = np.where(valid, start, 0.0), np.where(valid, end, 0.0)
    starts, ends = ticks_of(start), ticks_of(end)
    before = ends < starts
    if before.any():
        row = int(np.argmax(before))
        message = (
            f"row {row} of table {which} ends at {end[row]:.10g} s, before its start at {start[row]:.10g} s"
        )
        raise SegmentError(message, column="end", rows=(row,))
    spans = Stretches(codes, starts, ends)
    rows = np.arange(len(codes)) if complete else np.flatnonzero(valid)
    return LaidTable(starts, ends, rows, spans if complete else spans[rows])


def _times(table: pd.DataFrame, name: str, which: str) -> NDArray[np.float64]:
    import pandas as pd

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
    if (np.abs(values) > LATEST_S).any():
        row = int(np.argmax(np.abs(values) > LATEST_S))
        message = (
            f"{name} of row {row} of table {which} is {values[row]:g}; expected seconds up to {LATEST_S:.0f}"
        )
        raise SegmentError(message, column=name, rows=(row,))
    return values
