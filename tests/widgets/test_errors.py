"""The table of errors as Python sees it: one system, two systems, classes, confusions, order, and what is refused."""

import pandas as pd
import pytest

from speechlab import metrics
from speechlab.errors import InvalidRequestError
from speechlab.evaluate import Report
from speechlab.widgets import ErrorBrowser

SAID = ["good morning", "this is a test", "明日の精度", None, "all is well"]
SMALL = ["good mourning", "this was test", "明日の制度", "x", "all is well"]
LARGE = ["good morning", "that was some tests", "明日の制度", "y", "all is well"]


@pytest.fixture
def frame():
    said = {"text": SAID, "language": ["en", "en", "ja", "en", "xx-1"], "voice": list("abcde")}
    return pd.DataFrame(said, index=[f"utt-{one}" for one in range(5)])


@pytest.fixture
def small(frame):
    return metrics.score(frame.assign(hypothesis=SMALL))


@pytest.fixture
def large(frame):
    return metrics.score(frame.assign(hypothesis=LARGE))


def shown(table):
    return [column["name"] for column in table.columns if column["shown"]]


def kinds(table):
    return {column["name"]: column["kind"] for column in table.columns}


@pytest.mark.slow
def test_worst_rows_stand_first_and_unscored_ones_last(small):
    table = ErrorBrowser(small)
    assert table.frame.index.tolist() == ["utt-1", "utt-0", "utt-2", "utt-3", "utt-4"]
    assert " ".join(shown(table)) == (
        "text hypothesis reading_cer error_rate errors error_classes score_error language voice"
    )
    assert (kinds(table)["voice"], kinds(table)["confusions"]) == ("category", "list")


def test_confusions_are_those_that_metrics_counts(small):
    found = ErrorBrowser(small).frame["confusions"].explode().dropna().value_counts()
    counted = metrics.confusions(small)
    pairs = counted["reference"].fillna("∅") + " → " + counted["hypothesis"].fillna("∅")
    assert dict(found) == dict(zip(pairs, counted["utterances"], strict=True))


@pytest.mark.parametrize("way", ["two scored tables", "two columns"])
def test_two_systems_stand_side_by_side_by_difference(frame, small, large, way):
    if way == "two columns":
        table = ErrorBrowser(frame.assign(small=SMALL, large=LARGE), hypothesis=["small", "large"])
        hypotheses = ["small", "large"]
    else:
        # in whatever order the rows stand
        table = ErrorBrowser(small, large.iloc[::-1], names=["small", "large"])
        hypotheses = ["hypothesis_small", "hypothesis_large"]
    found = table.frame
    assert found.index.tolist()[:3] == ["utt-1", "utt-0", "utt-2"]
    assert found["error_difference"].tolist()[:3] == [2, -1, 0]
    assert found["fewer_errors"].tolist()[:3] == ["small", "large", "neither"]
    assert found[["fewer_errors", "error_difference"]].iloc[3:].isna().all(axis=None)
    rates = ["fewer_errors", "error_difference", "error_rate_small", "error_rate_large"]
    assert shown(table)[:7] == ["text", *hypotheses, *rates]
    assert [column["name"] for column in table.columns if column["compared"]] == hypotheses
    assert found.loc["utt-0", "confusions_small"] == ["morning → mourning"]
    assert found.loc["utt-0", "confusions_large"] == []
    assert kinds(table)["fewer_errors"] == "category"


def test_of_two_systems_with_other_sounds_the_first_is_heard(small, large):
    table = ErrorBrowser(small.assign(audio="one.wav"), large.assign(audio="other.wav"))
    assert table.sound
    assert set(table.frame["audio_a"]) == {"one.wav"}
    assert "audio_a" not in kinds(table)  # it is the sound, and no text
    assert kinds(table)["audio_b"] == "category"


@pytest.mark.slow
def test_reports_of_studies_show_their_errors(small, large):
    facts = {"voice_name": "v", "gender": "f", "duration_s": 1.0, "tts_rtf": 0.1, "asr_rtf": 0.1}
    one, other = (
        Report.of_scores("t", table.assign(**facts).rename(columns={"text": "said"}), text="said")
        for table in (small, large)
    )
    assert one.errors().reference == "said"
    both = one.errors(other, names=["small", "large"])
    assert (both.reference, both.frame["fewer_errors"].tolist()[:2]) == ("said", ["small", "large"])
    assert "asr_rtf" in both.frame


def test_a_table_without_errors_and_one_without_rows_are_tables(frame, small):
    right = metrics.score(frame.iloc[:1].assign(hypothesis=SAID[:1]))
    assert ErrorBrowser(right).frame["confusions"].tolist() == [[]]
    assert len(ErrorBrowser(small.iloc[:0]).frame) == 0
    assert set(ErrorBrowser(small, small).frame["fewer_errors"].dropna()) == {"neither"}


def test_scores_of_two_ways_are_not_compared(small):
    with pytest.raises(InvalidRequestError, match="scored in different ways, as in row"):
        ErrorBrowser(small, metrics.score(small, unit="char"))
