"""Error rates of timed texts: against meeteval, brute force and by hand."""

import itertools
import logging
import math
import random

import numpy as np
import pandas as pd
import pytest

from speechlab import segments
from speechlab.errors import InvalidRequestError
from speechlab.metrics import (
    TimedTokens,
    align_timed_tokens,
    count_timed_errors,
    error_rate,
    timed_error_rate,
)
from speechlab.segments import find_cheapest_assignment
from support.oracles import MEETEVAL, recall

# Uneven numbers: where a word touches the collar of another, meeteval's result depends on rounding errors.
COLLARS = (0.1234577, 0.5123457, 1.0234571, 5.0345679)
WORDS = ("a", "bb", "ccc", "dddddd")


def make_talks(chance, speakers, count):
    """Segments of some speakers of some recordings; segments of one speaker do not overlap."""
    rows = []
    for number in range(count):
        talk = []
        for speaker in speakers[: chance.randrange(len(speakers) + 1)]:
            at = chance.randrange(51) / 10
            for _ in range(chance.randrange(1, 5)):
                end = round(at + chance.randrange(1, 61) / 10, 6)
                text = " ".join(chance.choices(WORDS, k=chance.randrange(6)))
                talk.append((at, end, text, speaker))
                at = round(end + chance.randrange(41) / 10, 6)
        rows += [(f"talk {number}", *row) for row in talk or [(0.0, 1.0, "", "ann")]]
    return [dict(zip(("file", "start", "end", "text", "speaker"), row, strict=True)) for row in rows]


def to_seglst(rows):
    import meeteval.io

    names = {"file": "session_id", "start": "start_time", "end": "end_time", "text": "words"}
    return meeteval.io.SegLST([{names.get(ours, ours): value for ours, value in row.items()} for row in rows])


def ask_meeteval(said, heard, collar, by_speaker):
    """Errors and words of the reference for each file."""
    import meeteval

    logging.getLogger("preprocess").setLevel(logging.ERROR)
    limited = meeteval.wer.wer.time_constrained
    answers = {}
    for file in sorted({row["file"] for row in said + heard}):
        pair = [to_seglst([row for row in side if row["file"] == file]) for side in (said, heard)]
        if by_speaker and math.isinf(collar):
            theirs = meeteval.wer.wer.cp.cp_word_error_rate(*pair)
        elif by_speaker:
            theirs = limited.tcp_word_error_rate(*pair, collar=collar)
        else:
            theirs = limited.time_constrained_siso_word_error_rate(*pair, collar=min(collar, 1e6))
        answers[file] = [theirs.errors, theirs.length]
    return answers


@pytest.mark.parametrize("collar", [*COLLARS, math.inf])
@pytest.mark.parametrize("by_speaker", [False, True])
def test_meeteval_agrees(collar, by_speaker):
    chance = random.Random(collar)
    speakers = ("abc", "xyz") if by_speaker else ("a", "a")
    said, heard = (make_talks(chance, side, 30) for side in speakers)
    tables = pd.DataFrame(said), pd.DataFrame(heard)
    ours = timed_error_rate(*tables, collar=collar, by_speaker=by_speaker, normalize=None)
    columns = ["substitutions", "deletions", "insertions", "reference_length"]
    counts = ours.streams.groupby("file")[columns].sum()
    question = f"{'speakers' if by_speaker else 'words'} within {collar} s"
    theirs = recall(MEETEVAL, question, lambda: ask_meeteval(said, heard, collar, by_speaker))
    assert {file: [found[:3].sum(), found["reference_length"]] for file, found in counts.iterrows()} == theirs
    assert [ours.errors, ours.reference_length] == [
        sum(numbers) for numbers in zip(*theirs.values(), strict=True)
    ]
    assert len(counts) == 30


def test_the_assignment_is_the_cheapest():
    chance = random.Random(1)
    for size in [1, 2, 3, 4, 5] * 12:
        costs = [chance.choices(range(21), k=size) for _ in range(size)]
        columns = find_cheapest_assignment(costs)
        assert sorted(columns) == list(range(size))
        found = sum(costs[row][column] for row, column in enumerate(columns))
        orders = itertools.permutations(range(size))
        assert found == min(sum(map(list.__getitem__, costs, order)) for order in orders), costs


def list_ways(said, heard, meets):
    """Errors and substitutions of every alignment, by brute force."""
    if not said or not heard:
        return {(len(said) + len(heard), 0)}
    ways = {(e + 1, s) for e, s in list_ways(said[1:], heard, meets) | list_ways(said, heard[1:], meets)}
    if meets(said[0], heard[0]):
        wrong = said[0][0] != heard[0][0]
        ways |= {(e + wrong, s + wrong) for e, s in list_ways(said[1:], heard[1:], meets)}
    return ways


def to_tokens(rows):
    values = np.array(rows, dtype=np.int64).reshape(-1, 3)
    starts, ends = values[:, 1] * 1.0, (values[:, 1] + values[:, 2]) * 1.0
    return TimedTokens(values[:, 0], starts, ends, (starts + ends) / 2, np.arange(len(values)))


def test_counts_and_alignments_are_optimal():
    def meets(one, other):
        return one[1] < other[1] + other[2] and other[1] < one[1] + one[2]

    chance = random.Random(2)
    for _ in range(150):
        said, heard = (
            tuple(tuple(map(chance.randrange, (3, 7, 5))) for _ in range(chance.randrange(5)))
            for _ in range(2)
        )
        found = count_timed_errors(to_tokens(said), to_tokens(heard))
        assert (found.errors, found.substitutions) == min(list_ways(said, heard, meets)), (said, heard)
        assert found.deletions - found.insertions == len(said) - len(heard)
        ours, theirs = align_timed_tokens(to_tokens(said), to_tokens(heard))
        pairs = [(at, place) for at, place in enumerate(ours.tolist()) if place >= 0]
        assert [at for at in theirs.tolist() if at >= 0] == [at for at, _ in pairs]
        assert all(meets(said[at], heard[place]) for at, place in pairs), (said, heard)
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
            {"file": file, "start": 0, "end": 1, "text": text, "speaker": speaker}
            for file, text, speaker in [("a", "one two", "ann"), ("a", "three", "bob"), ("b", "four", "ann")]
        ]
    )
    heard = segments.frame(
        [
            {"file": file, "start": 0, "end": 1, "text": text, "speaker": "s0"}
            for file, text in [("a", "three"), ("c", "five")]
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
    assert "–" in timed_error_rate(empty, empty)._repr_html_()


def test_an_alignment_too_large_for_memory_is_refused(monkeypatch):
    table = segments.frame([(0.0, 1.0, "a b c d e f g h i j k l m n")])
    monkeypatch.setattr("speechlab.metrics._timed.distance.MAX_CELLS", 100)
    for how, hint in [
        ({"by_speaker": True}, "reference has no column 'speaker'"),
        ({"by_segment": True, "normalize": None}, "smaller collar"),
    ]:
        with pytest.raises(InvalidRequestError, match=hint):
            timed_error_rate(table, table, **how)


@pytest.mark.slow
@pytest.mark.parametrize("by_speaker", [False, True])
def test_counts_by_segment_add_up(by_speaker):
    chance = random.Random(3)
    for collar in (COLLARS[2], math.inf):
        reference, hypothesis = (pd.DataFrame(make_talks(chance, side, 20)) for side in ("abc", "xyz"))
        given = {"collar": collar, "by_speaker": by_speaker, "normalize": None}
        found = timed_error_rate(reference, hypothesis, by_segment=True, **given)
        assert found == timed_error_rate(reference, hypothesis, **given)
        assert segments.equal(found.segments[list(reference)], reference)
        by_file, streams = found.segments.groupby("file"), found.streams.groupby("file")
        for name in ("substitutions", "deletions", "reference_length"):
            assert by_file[name].sum().equals(streams[name].sum())
        assert (by_file["insertions"].sum() <= streams["insertions"].sum()).all()
        if not by_speaker:
            spoken = by_file["reference_length"].sum() > 0
            assert by_file["insertions"].sum()[spoken].equals(streams["insertions"].sum()[spoken])
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


def test_a_timed_rate_shows_its_streams():
    said = segments.frame([{"file": "a<b", "start": 0, "end": 2, "text": "good morning", "speaker": "ann"}])
    page = timed_error_rate(said, said.assign(text="good evening"))._repr_html_()
    assert [part in page for part in ("a<b", "50.00%", "a&lt;b")] == [False, True, True]
    many = segments.frame([{"file": str(number), "start": 0, "end": 1, "text": "a"} for number in range(30)])
    assert "the first 20 of 30 streams" in timed_error_rate(many, many)._repr_html_()
