"""What a segment frame is, and what is refused."""

import pickle

import numpy as np
import pandas as pd
import pytest

from speechlab import segments
from speechlab.client import Transcript
from speechlab.contract import ReplySegment
from speechlab.errors import SegmentError


def test_columns_are_typed_and_ordered():
    given = {
        "mine": [1, 2],
        "confidence": [0.5, None],
        "end": [1, 2],
        "start": [0, 1],
        "speaker": ["ann", None],
    }
    made = segments.frame(pd.DataFrame({**given, "channel": [1, 2]}, index=[7, 9]), file="a.wav")
    assert list(made) == ["file", "start", "end", "text", "channel", "speaker", "confidence", "mine"]
    assert made.index.equals(pd.RangeIndex(2))
    assert made["start"].dtype == made["end"].dtype == made["confidence"].dtype == np.float64
    assert (made["file"].tolist(), made["text"].tolist()) == (["a.wav", "a.wav"], ["", ""])
    assert (made["channel"].tolist(), made["speaker"].tolist()) == (["1", "2"], ["ann", ""])


class Piece:
    start, end, text = 1.0, 2.0, "hello"


HEARD = Transcript("hello", pieces=(ReplySegment(start=1.0, end=2.0, text="hello"),))


@pytest.mark.parametrize(
    "rows",
    [
        [(1.0, 2.0, "hello")],
        [[1, 2, "hello"]],
        [{"start": 1.0, "end": 2.0, "text": "hello"}],
        [Piece()],
        (piece for piece in (Piece(),)),
        pd.DataFrame({"start": [1.0], "end": [2.0], "text": ["hello"]}),
        pd.DataFrame({"word": ["hello"], "start": [1.0], "end": [2.0]}),
        HEARD.segments,
        HEARD.pieces,
    ],
)
def test_rows_of_every_kind(rows):
    made = segments.frame(rows, file="x")
    assert made.iloc[0].tolist() == ["x", 1.0, 2.0, "hello"]


def test_a_given_file_does_not_replace_what_is_named():
    made = segments.frame([{"file": "b", "start": 0, "end": 1}, {"start": 0, "end": 1}], file="a")
    assert made["file"].tolist() == ["b", "a"]


def test_what_cannot_be_right_is_refused():
    for rows, text, column, positions in [
        ([(0.0, 1.0), (2.0, 1.0)], r"row 1 ends at 1 s, before its start at 2 s", "end", (1,)),
        ([(0.0, 1.0), (-0.5, 1.0)], r"start of row 1 \(-0.5\) is negative", "start", (1,)),
        ([(float("nan"), 1.0)], r"start of row 0 \(nan\) is missing", "start", (0,)),
        ([(0.0, float("inf"))], "end of row 0 .* beyond", "end", (0,)),
        ([("0", 1.0)], "start of row 0 is '0'; expected a number", "start", (0,)),
        ([{"begin": 0.0}], "needs the column 'start'; there are: begin", "start", ()),
        ([{"start": 0, "end": 1, "confidence": 1.5}], r"confidence of row 0 \(1.5\)", "confidence", (0,)),
    ]:
        with pytest.raises(SegmentError, match=text) as caught:
            segments.frame(rows)
        assert caught.value.column == column
        assert caught.value.rows == positions
        twin = pickle.loads(pickle.dumps(caught.value))
        assert (str(twin), twin.rows) == (str(caught.value), caught.value.rows)


def test_what_is_no_table_is_refused():
    twice = pd.DataFrame([[0, 1, 2]], columns=["start", "end", "end"])
    with pytest.raises(SegmentError, match="'end' occurs twice"):
        segments.frame(twice)
    deltas = pd.DataFrame({"start": pd.to_timedelta([0], unit="s"), "end": [1.0]})
    with pytest.raises(SegmentError, match="total_seconds"):
        segments.frame(deltas)


def test_times_are_equal_to_the_microsecond():
    one = segments.frame([(0.1 + 0.2, 1.0, "x")])
    assert segments.equal(one, segments.frame([(0.3, 1.0, "x")]))
    assert not segments.equal(one, segments.frame([(0.300001, 1.0, "x")]))
    assert not segments.equal(one, segments.frame([(0.3, 1.0, "y")]))
    assert not segments.equal(one, one.assign(speaker="ann"))
    # An end that lies before its start by the noise of arithmetic alone is no fault.
    assert len(segments.frame([(0.1 + 0.2, 0.3)])) == 1
