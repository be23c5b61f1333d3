"""Tables of scores."""

import subprocess
import sys

import jiwer
import pandas as pd
import pytest

from speechlab.errors import InvalidRequestError
from speechlab.metrics import error_rate, score, summarize

pytest.importorskip("whisper_normalizer")


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "text": ["It is three", "三時に会議", "精度が高い", "语音识别", None, "Guten Tag!", "", "a"],
            "hypothesis": ["it's 3", "3時に会議", "制度が高い", "语音识别", "x", None, "", "b"],
            "language": ["en-US", "ja", "ja-JP", "zh", None, "de", "en", "en"],
            "voice": list("aabbabab"),
        },
        index=[1, 1, 2, 3, 4, 5, 9, 7],
    )


def test_rows_keep_index_order_and_columns(frame):
    before = frame.copy()
    scored = score(frame)
    pd.testing.assert_frame_equal(frame, before)
    pd.testing.assert_frame_equal(scored[list(frame.columns)], before)
    assert scored["unit"].tolist()[:4] == ["word", "char", "char", "char"]
    assert scored["unit"].dtype == "category"
    assert scored["errors"].dtype == "Int64"
    assert scored["error_rate"].dtype == "Float64"


def test_rows_agree_with_error_rate(frame):
    scored = score(frame)
    row = scored.iloc[2]
    result = error_rate("精度が高い", "制度が高い", unit="char", language="ja")
    assert (row["error_rate"], row["substitutions"], row["hits"], row["reference_length"]) == (
        result.rate,
        result.substitutions,
        result.hits,
        result.reference_length,
    )
    assert row["cer"] == 0.2
    assert row["alignment"] == "[-精-]{+制+}度が高い"
    assert scored.iloc[1]["reference_normalized"] == scored.iloc[1]["hypothesis_normalized"]
    assert scored.iloc[0]["wer"] == 0.0
    assert scored.iloc[0]["cer"] == 0.0
    assert scored.iloc[6]["error_rate"] == 0.0


def test_missing_values_give_missing_scores(frame):
    scored = score(frame)
    for place in (4, 5):
        assert scored.iloc[place][["error_rate", "errors", "wer", "cer", "alignment"]].isna().all()
    assert pd.isna(scored.iloc[4]["unit"])
    assert scored.iloc[5]["unit"] == "word"


def test_one_language_for_all_rows():
    frame = pd.DataFrame({"said": ["三時"], "heard": ["3時"]})
    assert score(frame, reference="said", hypothesis="heard", language="ja")["error_rate"].tolist() == [0.0]


def test_an_empty_table_keeps_its_types():
    empty = pd.DataFrame({"text": [], "hypothesis": [], "language": []})
    scored = score(empty)
    assert scored["errors"].dtype == "Int64"
    assert len(summarize(scored)) == 0


def test_scoring_twice_replaces(frame):
    once = score(frame)
    pd.testing.assert_frame_equal(score(once), once)


def test_custom_unit_and_normalizer(frame):
    english = frame[frame["language"] == "en-US"]
    scored = score(english, unit="char", normalize=None)
    assert scored["cer"].iloc[0] == jiwer.cer("It is three", "it's 3")
    assert "wer" not in scored


def test_summaries_are_corpus_rates_of_groups(frame):
    scored = score(frame)
    table = summarize(scored, by=["voice"])
    assert list(table.columns[:4]) == ["voice", "unit", "utterances", "utterances_scored"]
    row = table[(table["voice"] == "b") & (table["unit"] == "char")].iloc[0]
    part = frame[(frame["voice"] == "b") & frame["language"].isin(["ja-JP", "zh"])]
    assert row["error_rate"] == pytest.approx(1 / 9)
    assert row["mean_error_rate"] == pytest.approx(0.1)
    assert row["utterances"] == row["utterances_scored"] == len(part)
    assert row["error_rate_low"] <= row["error_rate"] <= row["error_rate_high"]
    assert table["utterances"].sum() == len(frame)


def test_summary_equals_error_rate(frame):
    rows = pd.DataFrame(
        {"text": ["a b c", "d e", "f"] * 9, "hypothesis": ["a b", "d x e", "f"] * 9, "voice": list("xyz") * 9}
    )
    table = summarize(score(rows, language="en"))
    result = error_rate(rows["text"], rows["hypothesis"], language="en")
    row = table.iloc[0]
    assert row["error_rate"] == result.rate == row["wer"]
    assert (row["error_rate_low"], row["error_rate_high"]) == result.confidence_interval()
    assert row["mean_error_rate"] == result.mean_error_rate
    blocks = summarize(score(rows, language="en"), groups="voice").iloc[0]
    assert (blocks["error_rate_low"], blocks["error_rate_high"]) == result.confidence_interval(
        groups=rows["voice"]
    )


def test_summaries_are_repeatable(frame):
    scored = score(frame)
    pd.testing.assert_frame_equal(summarize(scored, by="voice"), summarize(scored.iloc[::-1], by="voice"))


def test_errors_name_the_value(frame):
    for call, hint in [
        (lambda f: score(f, reference="txt"), "no column 'txt'"),
        (lambda f: score(f, language="lang"), "no column 'lang'"),
        (lambda f: score(f[["text", "hypothesis"]], language="jp"), "'jp'"),
        (lambda f: score(pd.concat([f, f["text"]], axis=1)), "2 columns named 'text'"),
        (lambda f: score(pd.concat([f, f["voice"]], axis=1)), "2 columns named 'voice'"),
        (summarize, "no column 'unit'"),
        (lambda f: summarize(score(f), by="speaker"), "no column 'speaker'"),
        (lambda f: score(f[["text", "hypothesis"]], language="ja", unit="word"), "unit='char'"),
    ]:
        with pytest.raises(InvalidRequestError, match=hint):
            call(frame)


def test_score_reports_invalid_rows_and_goes_on():
    frame = pd.DataFrame(
        {
            "text": ["a b", "a b", "三時", 5.0, None, "a", "{ a / b }"],
            "hypothesis": ["a c", "a c", "四時", "5", "x", ["a"], "a"],
            "language": ["de", "jp", "ja", "de", "de", "de", 3],
        }
    )
    scored = score(frame)
    wrong = scored["score_error"]
    assert wrong.isna().tolist() == [True, False, True, False, True, False, False]
    assert "'jp' is not a language" in wrong[1]
    assert "the reference is 5.0 (float)" in wrong[3]
    assert "the hypothesis is ['a'] (list)" in wrong[5]
    assert "the language is 3 (int)" in wrong[6]
    assert scored["errors"].notna().tolist() == [True, False, True, False, False, False, False]
    good = [0, 2]
    alone = score(frame.iloc[good]).astype(scored.dtypes.to_dict())
    pd.testing.assert_frame_equal(scored.iloc[good], alone)
    table = summarize(scored)
    assert table["utterances"].sum() == len(frame)
    assert table["utterances_scored"].sum() == 2

    words = score(frame.iloc[[0, 2]], unit="word")
    assert words["score_error"].isna().tolist() == [True, False]
    assert "unit='char'" in words["score_error"].iloc[1]


@pytest.mark.slow
def test_the_import_loads_no_heavy_package():
    heavy = {"pandas", "matplotlib", "pyopenjtalk", "sudachipy", "opencc", "whisper_normalizer"}
    code = (
        f"import sys, speechlab.metrics, speechlab.text; sys.exit(', '.join({heavy} & set(sys.modules)) or 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
