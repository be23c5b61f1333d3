"""Joins against brute force."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from speechlab import segments
from speechlab.errors import SegmentError
from speechlab.segments._joins import overlap
from support import segment_tables

table, tables, us = segment_tables.table, segment_tables.tables, segment_tables.us


def rows_of(table):
    """File, start and end in microseconds of each row; None where one of them is missing."""
    names = ["file", "start", "end"] if "file" in table else ["start", "end"]
    return [
        None if any(pd.isna(value) for value in row) else (*row[:-2], us(row[-2]), us(row[-1]))
        for row in zip(*(table[name].tolist() for name in names), strict=True)
    ]


def brute_force(a, b):
    found = []
    others = rows_of(b)
    for i, one in enumerate(rows_of(a)):
        for j, other in enumerate(others):
            if one is None or other is None or one[:-2] != other[:-2]:
                continue
            shared = min(one[-1], other[-1]) - max(one[-2], other[-2])
            if shared > 0:
                found.append((i, j, shared))
    return found


def joined(a, b, **options):
    result = segments.overlap_join(a, b, **options)
    shared = [us(value) for value in result["overlap_s"]]
    return list(zip(result["left"].tolist(), result["right"].tolist(), shared, strict=True))


@pytest.mark.slow
@settings(max_examples=75, deadline=None)
@given(tables(), tables())
def test_pairs_are_those_of_brute_force(a, b):
    assert sorted(joined(a, b)) == brute_force(a, b)


@pytest.mark.slow
@settings(max_examples=65, deadline=None)
@given(tables(), tables())
def test_both_ways_of_finding_pairs_agree(a, b):
    usual = joined(a, b)
    before = overlap._CANDIDATES
    overlap._CANDIDATES = 0
    try:
        assert joined(a, b) == usual
    finally:
        overlap._CANDIDATES = before


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(tables(), tables(), st.data())
def test_rows_without_a_time_or_file_share_nothing(a, b, data):
    for one in (a, b):
        for name in ("start", "end", "file"):
            holes = data.draw(st.lists(st.booleans(), min_size=len(one), max_size=len(one)))
            one.loc[np.array(holes, dtype=bool), name] = None if name == "file" else np.nan
    assert sorted(joined(a, b)) == brute_force(a, b)


def test_pairs_come_by_left_row_and_then_by_start():
    a = segments.frame([(5.0, 9.0), (0.0, 9.0)])
    b = segments.frame([(6.0, 7.0), (1.0, 2.0), (5.5, 8.0)])
    assert [pair[:2] for pair in joined(a, b)] == [(0, 2), (0, 0), (1, 1), (1, 2), (1, 0)]


@pytest.mark.slow
def test_many_long_segments():
    generator = np.random.default_rng(3)
    starts = generator.uniform(0, 100, 400)
    long = pd.DataFrame({"start": starts, "end": starts + generator.uniform(0, 100, 400)})
    short = pd.DataFrame({"start": starts, "end": starts + 0.01})
    for a, b in ((long, short), (short, long), (long, long)):
        assert sorted(joined(a, b)) == brute_force(a.assign(file=""), b.assign(file=""))


def test_files_at_very_different_times():
    rows = [
        {"file": f"{number}", "start": number * 4.0e5 + 1, "end": number * 4.0e5 + 2}
        for number in range(10_000)
    ]
    late = pd.DataFrame(rows)
    assert joined(late, late) == [(number, number, 1_000_000) for number in range(10_000)]


def test_by_columns():
    a = segments.frame([{"start": 0, "end": 2, "speaker": "x"}, {"start": 0, "end": 2, "speaker": "y"}])
    b = segments.frame([{"start": 1, "end": 3, "speaker": "y"}])
    assert joined(a, b) == [(0, 0, 10**6), (1, 0, 10**6)]
    assert joined(a, b, by=["file", "speaker"]) == joined(a, b, by="speaker") == [(1, 0, 10**6)]
    other = b.assign(file="elsewhere")
    assert joined(a, other) == []
    assert len(joined(a, other, by=[])) == 2
    three = a.assign(channel=["1", None])
    assert joined(three, three, by=["file", "speaker", "channel"]) == [(0, 0, 2 * 10**6)]


def test_what_cannot_be_joined_is_refused():
    good = segments.frame([(0.0, 1.0)])
    with pytest.raises(SegmentError, match="row 1 of table b ends at 1 s, before its start at 2 s"):
        segments.overlap_join(good, pd.DataFrame({"file": ["", ""], "start": [0.0, 2], "end": [1.0, 1]}))
    with pytest.raises(SegmentError, match="table a has no column 'start'"):
        segments.overlap_join(good.drop(columns="start"), good)
    with pytest.raises(SegmentError, match="only one of the tables has the column 'file'"):
        segments.overlap_join(good, good[["start", "end"]])
    with pytest.raises(SegmentError, match=r"'start' of table b holds .*, not seconds"):
        segments.overlap_join(good, good.assign(start="0"))
    with pytest.raises(SegmentError, match="has no column 'speaker'"):
        segments.overlap_join(good, good, by="speaker")
    with pytest.raises(SegmentError, match="seconds up to"):
        segments.overlap_join(good, good.assign(end=1e12))


def test_negative_times_can_be_joined():
    a = pd.DataFrame({"start": [-3.0], "end": [-1.0]})
    assert joined(a, pd.DataFrame({"start": [-2.0], "end": [5.0]})) == [(0, 0, 10**6)]


# -- align


def brute_partner(one, b, how):
    """The partner by the definition in the docstring: shares most, or else is nearest."""
    best = None
    file, start, end = one
    for j, (file_b, start_b, end_b) in enumerate(b):
        if file != file_b:
            continue
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


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(tables(), tables(), st.sampled_from(["largest", "nearest"]))
@example(
    table([("a.wav", 1.0, 1.0)]),
    table([("a.wav", 1.0, 1.0)]),
    "nearest",
)
def test_one_partner_for_each_row(a, b, how):
    b = b.assign(row=np.arange(len(b)))
    result = segments.align(a, b, how)
    assert len(result) == len(a)
    others = rows_of(b)
    for one, row in zip(rows_of(a), result.itertuples(), strict=True):
        wanted = brute_partner(one, others, how)
        if wanted is None:
            assert pd.isna(row.row_b)
            assert row.overlap_s == 0
            assert how == "largest" or pd.isna(row.distance_s)
        else:
            assert (row.row_b, us(row.overlap_s)) == (wanted[1], wanted[2])
            assert how == "largest" or us(row.distance_s) == wanted[3]


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(tables(), tables())
def test_all_partners(a, b):
    a, b = a.set_axis(range(100, 100 + len(a))), b.assign(row=np.arange(len(b)))
    result = segments.align(a, b)
    found = [
        (label - 100, int(row), us(shared))
        for label, row, shared in zip(result.index, result["row_b"], result["overlap_s"], strict=True)
        if pd.notna(row)
    ]
    assert sorted(found) == brute_force(a, b)
    assert list(dict.fromkeys(result.index)) == list(a.index)
    assert list(result) == ["file", "start", "end", "start_b", "end_b", "row_b", "overlap_s"]


def test_align_refuses_what_it_cannot_do():
    good = segments.frame([(0.0, 1.0)])
    with pytest.raises(SegmentError, match="choose one of: all, largest, nearest"):
        segments.align(good, good, "best")
    with pytest.raises(SegmentError, match="two columns get one name"):
        segments.align(good, good, suffix="")


@pytest.mark.parametrize("join", [segments.overlap_join, segments.align])
@pytest.mark.parametrize(
    "table",
    [
        None,
        3,
        "a.rttm",
        [(0.0, 1.0)],
        pd.DataFrame([[0.0, 1.0, 2.0]], columns=["start", "end", "end"]),
        pd.DataFrame({"start": [0j], "end": [1.0]}),
        pd.DataFrame({"start": [True], "end": [1.0]}),
        pd.DataFrame({"start": [1.0], "end": [0.5]}),
    ],
)
def test_what_is_no_table_of_times_is_refused(join, table):
    good = pd.DataFrame({"start": [0.0], "end": [1.0]})
    for pair in ((table, good), (good, table)):
        with pytest.raises(SegmentError):
            join(*pair)


def test_times_before_zero_may_be_joined():
    """A join asks for times alone; a segment frame begins with its recording."""
    table = pd.DataFrame({"start": [-2.0], "end": [-1.0]})
    assert segments.overlap_join(table, table)["overlap_s"].tolist() == [1.0]
    with pytest.raises(SegmentError, match="negative"):
        segments.in_order(table)


def test_a_join_that_would_not_fit_into_memory_is_refused():
    """20,000 segments that all overlap have 400 million pairs, in 10 GB."""
    many = segments.frame(pd.DataFrame({"start": 0.0, "end": 3600.0, "text": [""] * 20_000}))
    for join in (segments.overlap_join, segments.align, segments.score):
        with pytest.raises(SegmentError, match=r"400,000,000 pairs .* more than the 100,000,000"):
            join(many, many)
