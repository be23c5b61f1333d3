"""Joins against brute force."""

import numpy as np
import pandas as pd
import pytest

from speechlab import segments
from speechlab.errors import SegmentError
from support.segment_tables import make_table, to_us

WAY = "speechlab.segments._joins.overlap._CANDIDATES"


def rows_of(table):
    """File, start and end in microseconds of each row; None where one of them is missing."""
    names = ["file", "start", "end"] if "file" in table else ["start", "end"]
    return [
        None if any(pd.isna(value) for value in row) else (*row[:-2], to_us(row[-2]), to_us(row[-1]))
        for row in zip(*(table[name].tolist() for name in names), strict=True)
    ]


def brute_force(a, b):
    """Pairs with what they share, by left row and then by start of the right one."""
    found = []
    others = list(enumerate(rows_of(b)))
    for i, one in enumerate(rows_of(a)):
        for j, other in others:
            if one is None or other is None or one[:-2] != other[:-2]:
                continue
            shared = min(one[-1], other[-1]) - max(one[-2], other[-2])
            if shared > 0:
                found.append((i, other[-2], j, shared))
    return [(i, j, shared) for i, _, j, shared in sorted(found)]


def joined(a, b, **options):
    result = segments.overlap_join(a, b, **options)
    shared = [to_us(value) for value in result["overlap_s"]]
    return list(zip(result["left"].tolist(), result["right"].tolist(), shared, strict=True))


def make_tables(seed):
    """Return two tables; but for the first seed, some rows lack a time or their file."""
    random = np.random.default_rng(seed)
    tables = make_table([seed, 0]), make_table([seed, 1])
    for table in tables if seed else ():
        for name in table:
            table.loc[random.random(len(table)) < 0.05, name] = None if name == "file" else np.nan
    return tables


@pytest.mark.parametrize("seed", range(3))
def test_overlap_join_finds_all_pairs_in_order(seed, monkeypatch):
    a, b = make_tables(seed)
    pairs = brute_force(a, b)
    assert joined(a, b) == pairs
    monkeypatch.setattr(WAY, 0)  # as where many segments are long
    assert joined(a, b) == pairs
    assert joined(a[:0], b) == joined(a, b[:0]) == joined(a[:0], b[:0]) == []


def test_files_at_very_different_times():
    numbers = np.arange(10_000)
    late = pd.DataFrame(
        {"file": numbers.astype("str"), "start": numbers * 4.0e5 + 1, "end": numbers * 4.0e5 + 2}
    )
    assert joined(late, late) == [(number, number, 1_000_000) for number in range(10_000)]


def test_by_columns():
    a = segments.frame([{"start": 0, "end": 2, "speaker": "x"}, {"start": 0, "end": 2, "speaker": "y"}])
    b = segments.frame([{"start": 1, "end": 3, "speaker": "y"}])
    assert joined(a, b) == [(0, 0, 10**6), (1, 0, 10**6)]
    assert joined(a, b, by=["file", "speaker"]) == joined(a, b, by="speaker") == [(1, 0, 10**6)]
    other = b.assign(file="elsewhere")
    assert (joined(a, other), len(joined(a, other, by=[]))) == ([], 2)
    three = a.assign(channel=["1", None])
    assert joined(three, three, by=["file", "speaker", "channel"]) == [(0, 0, 2 * 10**6)]


def test_what_cannot_be_joined_is_refused():
    good = segments.frame([(0.0, 1.0)])
    with pytest.raises(SegmentError, match="row 1 of table b ends at 1 s, before its start at 2 s"):
        segments.overlap_join(good, pd.DataFrame({"file": ["", ""], "start": [0.0, 2], "end": [1.0, 1]}))
    with pytest.raises(SegmentError, match="only one of the tables has the column 'file'"):
        segments.overlap_join(good, good[["start", "end"]])


# -- align


def find_partner(one, others, how):
    """The partner by the definition in the docstring: shares most, or else is nearest."""
    best = None
    start, end = one
    for j, start_b, end_b in others:
        shared = min(end, end_b) - max(start, start_b)
        if shared > 0:
            rank = (0, -shared, start_b, j)
        elif how == "nearest":
            instant = (start == end and start_b <= start < end_b) or (
                start_b == end_b and start <= start_b < end
            )
            instant = instant or (start == end == start_b == end_b)
            rank = (1 if instant else 2, max(0, -shared), start_b, j)
        else:
            continue
        if best is None or rank < best[0]:
            best = (rank, j, max(0, shared), max(0, -shared))
    return best


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("how", ["largest", "nearest"])
def test_align_gives_each_row_its_partner(seed, how):
    a, b = make_tables(seed)
    b = b.assign(row=np.arange(len(b)))
    result = segments.align(a, b, how)
    assert result.index.equals(a.index)
    others = {}
    for j, row in enumerate(rows_of(b)):
        if row is not None:
            others.setdefault(row[0], []).append((j, *row[1:]))
    for number, (one, row) in enumerate(zip(rows_of(a), result.itertuples(), strict=True)):
        wanted = one and find_partner(one[1:], others.get(one[0], []), how)
        if wanted is None:
            assert pd.isna(row.row_b), number
            assert row.overlap_s == 0, number
            assert how == "largest" or pd.isna(row.distance_s), number
        else:
            assert (row.row_b, to_us(row.overlap_s)) == (wanted[1], wanted[2]), number
            assert how == "largest" or to_us(row.distance_s) == wanted[3], number


def test_align_gives_all_partners():
    a, b = make_tables(1)
    a, b = a.set_axis(range(100, 100 + len(a))), b.assign(row=np.arange(len(b)))
    result = segments.align(a, b)
    found = [
        (label - 100, int(row), to_us(shared))
        for label, row, shared in zip(result.index, result["row_b"], result["overlap_s"], strict=True)
        if pd.notna(row)
    ]
    assert found == brute_force(a, b)
    assert list(dict.fromkeys(result.index)) == list(a.index)
    assert list(result) == ["file", "start", "end", "start_b", "end_b", "row_b", "overlap_s"]


def test_a_join_that_would_not_fit_into_memory_is_refused():
    """20,000 segments that all overlap have 400 million pairs, in 10 GB."""
    many = segments.frame(pd.DataFrame({"start": 0.0, "end": 3600.0, "text": [""] * 20_000}))
    for join in (segments.overlap_join, segments.align, segments.score):
        with pytest.raises(SegmentError, match=r"400,000,000 pairs .* more than the 100,000,000"):
            join(many, many)
