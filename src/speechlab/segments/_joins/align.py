"""Two tables side by side: each segment with its partners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from speechlab._arguments import check_text, to_column_names
from speechlab._pandas import pd
from speechlab.errors import SegmentError
from speechlab.segments._frame.ticks import to_seconds
from speechlab.segments._joins.overlap import JoinSides, build_join_sides, find_overlapping_pairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

How: TypeAlias = Literal["all", "largest", "nearest"]


def align(
    a: pd.DataFrame,
    b: pd.DataFrame,
    how: How = "all",
    by: str | Sequence[str] | None = None,
    suffix: str = "_b",
) -> pd.DataFrame:
    """Join the segments of two tables by time.

    >>> from speechlab import segments
    >>> said = segments.frame([(0.0, 2.0, "one"), (5.0, 6.0, "two")], file="a.wav")
    >>> recognized = segments.frame([(0.1, 1.0, "won"), (1.2, 2.2, "done")], file="a.wav")
    >>> segments.align(said, recognized, "largest")[["start", "text", "start_b", "text_b", "overlap_s"]]
       start text  start_b text_b  overlap_s
    0    0.0  one      0.1    won        0.9
    1    5.0  two      NaN    NaN        0.0

    Args:
        a: The table whose rows are all kept, in their order and with their index.
        b: The table with the partners.
        how: ``"all"``: one row for each partner that shares time, or one row without a partner. ``"largest"``: the
            partner that shares most time, the earliest among equals. ``"nearest"``: the same, but without shared time
            the partner in the recording with the least silence between, the earlier among equals. The nearest partner
            of an instant is the segment that contains it.
        by: Columns that must be equal; by default ``file`` if the tables have it.
        suffix: Suffix of the names of the second table's columns. The columns of ``by`` occur once.

    Returns:
        The columns of both tables; ``overlap_s`` (seconds, 0 without shared time); with ``"nearest"`` also
        ``distance_s``, the silence between the two segments, NaN if the recording has no partner.

    Raises:
        SegmentError: As :func:`overlap_join`; or the suffix leaves two columns with one name.
    """
    if str(how) not in get_args(How):
        raise SegmentError(f"how={how!r} is not known; choose one of: {', '.join(get_args(How))}")
    check_text(suffix, "suffix")
    sides = build_join_sides(a, b, by)
    left, right = sides.find_overlapping_rows()
    if how == "all":
        lonely = np.flatnonzero(np.bincount(left, minlength=len(a)) == 0)
        left = np.concatenate([left, lonely])
        right = np.concatenate([right, np.full(len(lonely), -1, dtype=np.int64)])
        order = np.argsort(left, kind="stable")
        return _join_partners(a, b, by, suffix, left[order], right[order], sides)
    left, right = _choose_largest_pairs(left, right, sides.measure_overlaps(left, right))
    partner = np.full(len(a), -1, dtype=np.int64)
    partner[left] = right
    if how == "nearest":
        _add_nearest_partners(partner, sides, build_join_sides(a, b, by, instants=True))
    return _join_partners(a, b, by, suffix, np.arange(len(a)), partner, sides, distance=how == "nearest")


def _choose_largest_pairs(
    left: NDArray[np.int64], right: NDArray[np.int64], shared: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first largest pair of each left row; pairs of a row are adjacent and sorted by start."""
    if not len(left):
        return left, right
    order = np.lexsort((-shared, left))
    heads = np.flatnonzero(np.diff(left[order], prepend=-1))
    chosen = order[heads]
    return left[chosen], right[chosen]


def _add_nearest_partners(partner: NDArray[np.int64], sides: JoinSides, widened: JoinSides) -> None:
    """Give rows without a partner the nearest row of their group."""
    a_start, a_end, b_start, b_end = sides.keys
    a_rows, b_rows = sides.a.rows, sides.b.rows
    if not len(b_rows) or not len(a_rows):
        return
    chosen = _find_nearest_disjoint_segments(
        a_start, a_end, b_start, b_end, sides.a.spans.codes, sides.b.spans.codes
    )
    within, holds = find_overlapping_pairs(*widened.keys)
    first = np.flatnonzero(np.diff(within, prepend=-1))
    chosen[within[first]] = holds[first]
    lonely = (partner[a_rows] < 0) & (chosen >= 0)
    partner[a_rows[lonely]] = b_rows[chosen[lonely]]


def _find_nearest_disjoint_segments(
    a_start: NDArray[np.int64],
    a_end: NDArray[np.int64],
    b_start: NDArray[np.int64],
    b_end: NDArray[np.int64],
    a_codes: NDArray[np.int64],
    b_codes: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the nearest segment wholly before or after each stretch in its group; -1 without one."""
    by_end, by_start = np.lexsort((b_start, b_end)), np.argsort(b_start, kind="stable")
    ends, starts = b_end[by_end], b_start[by_start]
    before = np.searchsorted(ends, a_start, "right") - 1
    # of several that end together, the one that starts first
    earlier = by_end[np.searchsorted(ends, ends[np.maximum(before, 0)], "left")]
    after = np.searchsorted(starts, a_end, "left")
    later = by_start[np.minimum(after, len(starts) - 1)]
    far = np.iinfo(np.int64).max
    gap_before = np.where((before >= 0) & (b_codes[earlier] == a_codes), a_start - b_end[earlier], far)
    gap_after = np.where((after < len(starts)) & (b_codes[later] == a_codes), b_start[later] - a_end, far)
    chosen = np.where(gap_before <= gap_after, earlier, later)
    chosen[np.minimum(gap_before, gap_after) == far] = -1
    return chosen


def _join_partners(
    a: pd.DataFrame,
    b: pd.DataFrame,
    by: str | Sequence[str] | None,
    suffix: str,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    sides: JoinSides,
    *,
    distance: bool = False,
) -> pd.DataFrame:
    shared = ["file"] if by is None else to_column_names(by, "by")
    added = b.drop(columns=[name for name in shared if name in b.columns])
    partners = added.reset_index(drop=True).reindex(right).add_suffix(suffix)
    result = a.iloc[left]
    partners.index = result.index
    result = pd.concat([result, partners], axis=1)
    if result.columns.has_duplicates or {"overlap_s", "distance_s"} & set(result.columns):
        raise SegmentError(f"with the suffix {suffix!r} two columns get one name; choose another suffix")
    matched = (right >= 0) & np.isin(left, sides.a.rows)
    between = np.zeros(len(left), dtype=np.int64)
    if matched.any():
        between[matched] = sides.measure_overlaps(left[matched], right[matched])
    result["overlap_s"] = to_seconds(np.maximum(between, 0))
    if distance:
        result["distance_s"] = np.where(matched, to_seconds(np.maximum(-between, 0)), np.nan)
    return result
