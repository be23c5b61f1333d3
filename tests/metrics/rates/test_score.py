"""Tables of scores."""

import jiwer
import pandas as pd
import pytest

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
    pd.testing.assert_frame_equal(score(scored), scored)  # scoring again replaces
    assert scored["unit"].astype(object).fillna("").tolist()[:6] == [
        "word",
        "char",
        "char",
        "char",
        "",
        "word",
    ]
    assert scored[["error_rate", "errors", "wer", "cer", "alignment"]].iloc[4:6].isna().all(axis=None)
    empty = score(frame[["text", "hypothesis", "language"]].head(0))
    for table in (scored, empty):
        types = [str(table[name].dtype) for name in ("unit", "errors", "error_rate")]
        assert types == ["category", "Int64", "Float64"]
    assert len(summarize(empty)) == 0


def test_rows_agree_with_error_rate(frame):
    scored = score(frame)
    row = scored.iloc[2]
    result = error_rate("精度が高い", "制度が高い", unit="char", language="ja")
    names = ["error_rate", "substitutions", "hits", "reference_length", "cer", "alignment"]
    counts = [result.rate, result.substitutions, result.hits, result.reference_length]
    assert row[names].tolist() == [*counts, 0.2, "[-精-]{+制+}度が高い"]
    assert scored.iloc[1]["reference_normalized"] == scored.iloc[1]["hypothesis_normalized"]
    assert scored.iloc[0][["wer", "cer"]].tolist() == [0.0, 0.0]
    assert scored.iloc[6]["error_rate"] == 0.0
    plain = score(frame.head(1), unit="char", normalize=None)
    assert plain["cer"].iloc[0] == jiwer.cer("It is three", "it's 3")
    assert "wer" not in plain


def test_summaries_are_corpus_rates_of_groups(frame):
    scored = score(frame)
    table = summarize(scored, by=["voice"])
    pd.testing.assert_frame_equal(summarize(scored.iloc[::-1], by="voice"), table)
    assert list(table.columns[:4]) == ["voice", "unit", "utterances", "utterances_scored"]
    row = table[(table["voice"] == "b") & (table["unit"] == "char")].iloc[0]
    assert row[["error_rate", "mean_error_rate"]].tolist() == pytest.approx([1 / 9, 0.1])
    assert row["utterances"] == row["utterances_scored"] == 2
    assert row["error_rate_low"] <= row["error_rate"] <= row["error_rate_high"]
    assert table["utterances"].sum() == len(frame)


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
