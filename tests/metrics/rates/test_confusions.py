"""Tables of confusions."""

import pandas as pd
import pytest

from speechlab.errors import InvalidRequestError
from speechlab.metrics import confusions, error_rate, score


def test_counts_are_those_of_the_rate():
    result = error_rate(["a b c", "a b b", "x"], ["a d c", "a d", "x y"])
    table = confusions(result)
    assert table["count"].sum() == result.errors
    assert table["share"].sum() == pytest.approx(1)
    first = table.iloc[0]
    assert (first["reference"], first["hypothesis"], first["count"], first["utterances"]) == ("b", "d", 2, 2)
    assert set(table["operation"]) == {"substitute", "delete", "insert"}
    assert table[table["operation"] == "insert"]["reference"].isna().all()


def test_a_scored_table_gives_the_same():
    frame = pd.DataFrame({"text": ["a b", "a", None], "hypothesis": ["a c", "", "x"]})
    scored = score(frame, language="en", normalize=None)
    rate = error_rate(["a b", "a"], ["a c", ""], language="en", normalize=None)
    pd.testing.assert_frame_equal(confusions(scored), confusions(rate))
    how = {"language": "en", "normalize": None}
    pd.testing.assert_frame_equal(confusions(scored), confusions(frame, **how))
    pd.testing.assert_frame_equal(confusions(scored), confusions(frame["text"], frame["hypothesis"], **how))


def test_units_are_counted_separately():
    frame = pd.DataFrame({"text": ["a b", "精度"], "hypothesis": ["a c", "制度"], "language": ["en", "ja"]})
    table = confusions(score(frame))
    assert dict(zip(table["unit"], table["share"], strict=True)) == {"char": 1.0, "word": 1.0}


def test_without_errors_and_without_scores():
    assert len(confusions(error_rate("a", "a"))) == 0
    with pytest.raises(InvalidRequestError, match="'unit'"):
        confusions(pd.DataFrame({"text": ["a"]}))
