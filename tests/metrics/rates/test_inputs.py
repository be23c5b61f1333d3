"""The same calls for lists, Series and tables; and pairs that do not belong together."""

import math

import pandas as pd
import pytest

from speechlab.errors import InvalidRequestError
from speechlab.metrics import by_bins, error_rate, score, score_translations, summarize

FRAME = pd.DataFrame(
    {"said": ["a b", "c d", "e"], "heard": ["a x", "c d", ""], "who": ["s", "t", "t"], "k": [1.0, 2.0, 3.0]},
    index=["u1", "u2", "u3"],
)
NAMES = {"reference": "said", "hypothesis": "heard"}


def test_series_lists_and_tables_give_the_same():
    of_frame = error_rate(FRAME, **NAMES)
    of_series = error_rate(FRAME["said"], FRAME["heard"])
    of_lists = error_rate(FRAME["said"].tolist(), FRAME["heard"].tolist())
    assert of_frame.errors == of_series.errors == of_lists.errors == 2
    assert of_frame.edits()["utterance"].tolist() == of_series.edits()["utterance"].tolist() == ["u1", "u3"]
    assert of_lists.edits()["utterance"].tolist() == [0, 2]
    scored = score(FRAME, **NAMES, language="de")
    listed = score(FRAME["said"], FRAME["heard"], **NAMES, language="de")
    pd.testing.assert_frame_equal(scored.drop(columns=["who", "k"]), listed)
    whole = summarize(scored)
    pd.testing.assert_frame_equal(summarize(FRAME, **NAMES, language="de"), whole)
    pd.testing.assert_frame_equal(by_bins(FRAME, "k", 2, **NAMES, language="de"), by_bins(scored, "k", 2))


@pytest.mark.parametrize(
    "function", [error_rate, lambda *pair: score(*pair, language="de"), score_translations]
)
def test_series_with_different_indexes_are_refused(function):
    said, heard = FRAME["said"], FRAME["heard"]
    function(said, heard)
    function(said.tolist(), heard)
    for other in (heard.sort_index(ascending=False), heard.reset_index(drop=True)):
        with pytest.raises(InvalidRequestError, match="the index of the Series"):
            function(said, other)
        function(said, other.tolist())


def test_groups_are_a_column_or_names():
    rate = error_rate(FRAME, **NAMES)
    expected = rate.confidence_interval(groups=["s", "t", "t"])
    scored = score(FRAME, **NAMES, language="de", normalize=None)
    for groups in ("who", FRAME["who"], ["s", "t", "t"]):
        assert rate.confidence_interval(groups=groups) == expected
        row = summarize(scored, groups=groups).iloc[0]
        assert (row["error_rate_low"], row["error_rate_high"]) == expected
        assert by_bins(scored, "k", bins=[0, 9], groups=groups)["error_rate_low"][0] == expected.low
    for groups, hint in (
        (FRAME["who"].reset_index(drop=True), "the index of the Series"),
        (["a", "b"], "2 entries for 3"),
    ):
        for call in (lambda groups: summarize(scored, groups=groups), rate.confidence_interval):
            with pytest.raises(InvalidRequestError, match=hint):
                call(groups=groups)


def test_tables_have_the_figures_of_the_rate():
    rate = error_rate(["a b c", "d", "", "d"], ["a x c", "d", "e", "d"], language="de")
    (frame,), (row,) = rate.frame().to_dict("records"), summarize(rate).to_dict("records")
    assert rate.sentence_error_rate == 0.5
    assert (frame["error_rate_low"], frame["error_rate_high"]) == rate.confidence_interval()
    names = (
        "error_rate",
        "mean_error_rate",
        "sentence_error_rate",
        "match_error_rate",
        "word_information_lost",
    )
    expected = (rate.rate, rate.mean_error_rate, 0.5, rate.match_error_rate, rate.word_information_lost)
    for found in (frame, row):
        assert tuple(found[name] for name in names) == pytest.approx(expected)
        counts = ("utterances", "empty_references", "reference_length", "errors", "hits")
        counts += ("substitutions", "deletions", "insertions")
        assert [found[name] for name in counts] == [4, 1, 5, 2, 4, 1, 0, 1]
        assert (found["unit"], found["signature"]) == ("word", rate.signature)
    assert math.isnan(error_rate([], []).sentence_error_rate)


def test_languages_without_spaces_are_not_cut_at_spaces():
    with pytest.raises(InvalidRequestError, match="spaces between words"):
        error_rate(["今日は"], ["今日"], language="yue")
    assert error_rate(["今日 天気"], ["今日 雨"], language="yue", normalize=None).rate == 0.5
    assert score(["你食咗飯未"], ["你食左飯未"], language="yue")["unit"][0] == "char"
