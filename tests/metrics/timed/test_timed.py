"""Error rates of timed texts: against meeteval, brute force and by hand."""

import itertools
import logging
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speechlab import segments
from speechlab.errors import InvalidRequestError
from speechlab.metrics import error_rate, timed_error_rate
from speechlab.metrics._timed.distance import TimedTokens, align_timed_tokens, count_timed_errors
from speechlab.segments import find_cheapest_assignment
from support.programs import MEETEVAL

# Uneven numbers: where a word touches the collar of another, meeteval's result depends on rounding errors.
COLLARS = (0.1234577, 0.5123457, 1.0234571, 5.0345679)
WORDS = ("a", "bb", "ccc", "dddddd")


@st.composite
def talks(draw, speakers=("ann", "bob", "cy")):
    """Segments of speakers; segments of one speaker do not overlap."""
    rows = []
    for speaker in speakers[: draw(st.integers(0, len(speakers)))]:
        at = draw(st.integers(0, 50)) / 10
        for _ in range(draw(st.integers(1, 4))):
            length = draw(st.integers(1, 60)) / 10
            text = " ".join(draw(st.lists(st.sampled_from(WORDS), max_size=5)))
            end = round(at + length, 6)
            rows.append({"file": "talk", "start": at, "end": end, "text": text, "speaker": speaker})
            at = round(end + draw(st.integers(0, 40)) / 10, 6)
    return rows


SILENCE = {"file": "talk", "start": 0.0, "end": 1.0, "text": "", "speaker": "ann"}


def made(rows):
    rows = rows or [SILENCE]
    return pd.DataFrame({name: [row[name] for row in rows] for name in SILENCE})


def seglst(rows):
    import meeteval.io

    names = {
        "session_id": "file",
        "start_time": "start",
        "end_time": "end",
        "words": "text",
        "speaker": "speaker",
    }
    return meeteval.io.SegLST(
        [{theirs: row[ours] for theirs, ours in names.items()} for row in rows or [SILENCE]]
    )


@pytest.mark.slow
@settings(max_examples=65, deadline=None)
@given(talks(("ann",)), talks(("bob",)), st.sampled_from(COLLARS))
def test_meeteval_agrees_on_one_stream(said, heard, collar):
    wer = pytest.importorskip("meeteval.wer", reason=MEETEVAL)
    logging.getLogger("preprocess").setLevel(logging.ERROR)
    heard = [row | {"speaker": "ann"} for row in heard]
    ours = timed_error_rate(made(said), made(heard), collar=collar, normalize=None)
    theirs = wer.wer.time_constrained.time_constrained_siso_word_error_rate(
        seglst(said), seglst(heard), collar=collar
    )
    assert (ours.errors, ours.reference_length) == (theirs.errors, theirs.length)
    if theirs.length:
        assert ours.rate == pytest.approx(theirs.error_rate, abs=1e-9)


@pytest.mark.slow
@settings(max_examples=65, deadline=None)
@given(talks(), talks(("x", "y", "z")), st.sampled_from([*COLLARS, math.inf]))
def test_meeteval_agrees_on_speakers(said, heard, collar):
    wer = pytest.importorskip("meeteval.wer", reason=MEETEVAL)
    logging.getLogger("preprocess").setLevel(logging.ERROR)
    ours = timed_error_rate(made(said), made(heard), collar=collar, by_speaker=True, normalize=None)
    pair = seglst(said), seglst(heard)
    if math.isinf(collar):
        theirs = wer.wer.cp.cp_word_error_rate(*pair)
    else:
        theirs = wer.wer.time_constrained.tcp_word_error_rate(*pair, collar=collar)
    assert (ours.errors, ours.reference_length) == (theirs.errors, theirs.length)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 5).flatmap(
        lambda size: st.lists(
            st.lists(st.integers(0, 20), min_size=size, max_size=size), min_size=size, max_size=size
        )
    )
)
def test_the_assignment_is_the_cheapest(costs):
    columns = find_cheapest_assignment(costs)
    assert sorted(columns) == list(range(len(costs)))
    found = sum(costs[row][column] for row, column in enumerate(columns))
    orders = itertools.permutations(range(len(costs)))
    assert found == min(sum(costs[row][column] for row, column in enumerate(order)) for order in orders)


def all_ways(said, heard, meets):
    """Errors and substitutions of every alignment, by brute force."""
    if not said or not heard:
        return {(len(said) + len(heard), 0)}
    ways = {(e + 1, s) for e, s in all_ways(said[1:], heard, meets) | all_ways(said, heard[1:], meets)}
    if meets(said[0], heard[0]):
        wrong = said[0][0] != heard[0][0]
        ways |= {(e + wrong, s + wrong) for e, s in all_ways(said[1:], heard[1:], meets)}
    return ways


TOKENS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6), st.integers(0, 4)), max_size=4)


@settings(max_examples=150, deadline=None)
@given(TOKENS, TOKENS)
def test_counts_are_optimal(said, heard):
    def tokens(rows):
        values = np.array(rows, dtype=np.int64).reshape(-1, 3)
        starts, ends = values[:, 1] * 1.0, (values[:, 1] + values[:, 2]) * 1.0
        return TimedTokens(values[:, 0], starts, ends, (starts + ends) / 2, np.arange(len(values)))

    def meets(one, other):
        return one[1] < other[1] + other[2] and other[1] < one[1] + one[2]

    found = count_timed_errors(tokens(said), tokens(heard))
    assert (found.errors, found.substitutions) == min(all_ways(tuple(said), tuple(heard), meets))
    assert found.deletions - found.insertions == len(said) - len(heard)
    ours, theirs = align_timed_tokens(tokens(said), tokens(heard))
    pairs = [(at, place) for at, place in enumerate(ours.tolist()) if place >= 0]
    assert [at for at in theirs.tolist() if at >= 0] == [at for at, _ in pairs]
    assert all(meets(said[at], heard[place]) for at, place in pairs)
    assert [place for _, place in pairs] == sorted({place for _, place in pairs})
    assert sum(said[at][0] != heard[place][0] for at, place in pairs) == found.substitutions
    assert ((ours < 0).sum(), (theirs < 0).sum()) == (found.deletions, found.insertions)


def test_the_collar_limits_the_distance_in_time():
    said = segments.frame([(0.0, 4.0, "a b c d"), (10.0, 14.0, "e f g h")], file="x")
    late = segments.shift(said, 4.0)
    assert timed_error_rate(said, late, collar=5.0, normalize=None).rate == 0.0
    assert timed_error_rate(said, late, collar=0.5, normalize=None).rate > 1
    whole = segments.merge(said, gap=10)
    assert timed_error_rate(said, whole, collar=5.0, normalize=None).rate == 0.0


def test_without_times_it_is_the_error_rate():
    said = segments.frame([(0.0, 1.0, "Good morning,"), (2.0, 3.0, "how are you?")], file="a")
    heard = segments.frame([(0.0, 3.0, "good mourning how you all")], file="a")
    ours = timed_error_rate(said, heard, collar=math.inf, language="en")
    plain = error_rate("Good morning, how are you?", "good mourning how you all", language="en")
    assert ours.rate == plain.rate == 0.6
    chars = [frame.assign(text=["三時に会議"] + [""] * (len(frame) - 1)) for frame in (said, heard)]
    assert timed_error_rate(*chars, unit="char", language="ja", collar=5).reference_length == 5


def test_recordings_and_streams():
    said = segments.frame(
        [
            {"file": "a", "start": 0, "end": 1, "text": "one two", "speaker": "ann"},
            {"file": "a", "start": 0, "end": 1, "text": "three", "speaker": "bob"},
            {"file": "b", "start": 0, "end": 1, "text": "four", "speaker": "ann"},
        ]
    )
    heard = segments.frame(
        [
            {"file": "a", "start": 0, "end": 1, "text": "three", "speaker": "s0"},
            {"file": "c", "start": 0, "end": 1, "text": "five", "speaker": "s0"},
        ]
    )
    result = timed_error_rate(said, heard, by_speaker=True)
    rows = result.streams[["file", "speaker", "assigned", "deletions", "insertions"]].values.tolist()
    assert rows == [
        ["a", "ann", "", 2, 0],
        ["a", "bob", "s0", 0, 0],
        ["b", "ann", "", 1, 0],
        ["c", "", "s0", 0, 1],
    ]
    assert (result.rate, result.reference_length) == (1.0, 4)
    empty = segments.frame([])
    assert math.isnan(timed_error_rate(empty, empty).rate)


def test_invalid_arguments_are_refused():
    table = segments.frame([(0.0, 1.0, "x")])
    for collar in (-1, float("nan"), True):
        with pytest.raises(InvalidRequestError) as caught:
            timed_error_rate(table, table, collar=collar)
        assert caught.value.parameter == "collar"
    with pytest.raises(InvalidRequestError, match="reference has no column 'speaker'"):
        timed_error_rate(table, table, by_speaker=True)
    with pytest.raises(InvalidRequestError, match="does not put spaces between words"):
        timed_error_rate(table, table, language="ja")


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(talks(), talks(("x", "y", "z")), st.sampled_from([*COLLARS, math.inf]), st.booleans())
def test_counts_by_segment_add_up(said, heard, collar, by_speaker):
    reference, hypothesis = made(said), made(heard)
    given = {"collar": collar, "by_speaker": by_speaker, "normalize": None}
    found = timed_error_rate(reference, hypothesis, by_segment=True, **given)
    assert found == timed_error_rate(reference, hypothesis, **given)
    assert segments.equal(found.segments[list(reference)], reference)
    for name in ("substitutions", "deletions", "reference_length"):
        assert found.segments[name].sum() == getattr(found, name)
    assert found.segments["insertions"].sum() <= found.insertions
    if not by_speaker and reference["text"].ne("").any():
        assert found.segments["insertions"].sum() == found.insertions
    lengths = [len(text.split()) for text in reference["text"]]
    assert found.segments["reference_length"].tolist() == lengths


def test_errors_count_for_their_segments():
    said = segments.frame([(10, 12, "how are you"), (0, 2, "good morning"), (20, 21, "")], file="a")
    heard = segments.frame([(0, 13, "good mourning how you"), (15.8, 16, "oh"), (21, 22, "bye")], file="a")
    found = timed_error_rate(said, heard, by_segment=True, language="en").segments
    assert found[["substitutions", "deletions", "insertions"]].values.tolist() == [
        [0, 1, 2],
        [1, 0, 0],
        [0, 0, 0],
    ]
    assert found["rate"].tolist() == [1.0, 0.5, pytest.approx(math.nan, nan_ok=True)]


def test_an_alignment_too_large_for_memory_is_refused(monkeypatch):
    monkeypatch.setattr("speechlab.metrics._timed.distance.MAX_CELLS", 100)
    said = segments.frame([(0, 10, "a b c d e f g h i j k l m n")], file="a")
    with pytest.raises(InvalidRequestError, match="smaller collar"):
        timed_error_rate(said, said, by_segment=True, normalize=None)


def test_a_timed_rate_shows_its_rate():
    said = [
        {"file": "a<b", "start": 0, "end": 2, "text": "good morning", "speaker": "ann"},
        {"file": "b", "start": 0, "end": 2, "text": "yes", "speaker": "bob"},
    ]
    heard = [{**said[0], "text": "good evening"}, {**said[1], "speaker": "x"}]
    rate = timed_error_rate(segments.frame(said), segments.frame(heard), by_speaker=True)
    assert repr(rate) == "<TimedErrorRate 0.3333 by word: 1 errors in 3, 2 streams, collar 5 s>"
    page = rate._repr_html_()
    assert [part in page for part in ("33.33%", "50.00%", "a&lt;b", "a<b", "all")] == [True] * 3 + [
        False,
        True,
    ]
    none = timed_error_rate(segments.frame([]), segments.frame([]))
    assert "–" in none._repr_html_()
    many = segments.frame([{"file": str(number), "start": 0, "end": 1, "text": "a"} for number in range(30)])
    assert "the first 20 of 30 streams" in timed_error_rate(many, many)._repr_html_()
