"""One rule for references without tokens, in every function that divides by their length."""

import pandas as pd
import pytest

from speechlab.metrics import (
    by_bins,
    compare,
    confusions,
    error_rate,
    glossary_terms,
    hotword_scores,
    score,
    score_translations,
    summarize,
)

# Two tokens of reference, three insertions: 3 / max(2, 1); alone the second pair is 2 / 1, the third 0 / 1.
SAID = ["一 二", "", "!", ""]
HEARD = ["一 二", "三 四", "", "五"]
UNITS = {"char": "ja", "reading": "ja", "pinyin": "zh", "toneless": "zh", "word": "de"}


def rows(unit):
    spaced = unit == "word"
    return pd.DataFrame(
        {
            "text": SAID if spaced else [text.replace(" ", "") for text in SAID],
            "hypothesis": HEARD if spaced else [text.replace(" ", "") for text in HEARD],
            "length_s": [1.0, 2.0, 3.0, 4.0],
        }
    )


@pytest.mark.parametrize("unit", list(UNITS))
def test_lists_and_tables_have_the_same_divisor(unit):
    if unit == "reading":
        pytest.importorskip("pyopenjtalk")
    if unit in {"pinyin", "toneless"}:
        pytest.importorskip("pypinyin")
    frame = rows(unit)
    result = error_rate(frame["text"], frame["hypothesis"], unit, UNITS[unit])
    # Readings have other lengths than characters, so the expectation comes from the counts themselves.
    errors, lengths = result.errors_by_utterance, result.lengths_by_utterance
    assert (lengths == 0).tolist() == [False, True, True, True]
    assert errors[0] == errors[2] == 0
    assert errors[1] >= 2
    assert result.empty_references == 3
    assert result.rates_by_utterance.tolist() == [0, errors[1], 0, errors[3]]
    assert result.rate == errors.sum() / lengths.sum()
    assert result.mean_error_rate == (errors[1] + errors[3]) / 4

    scored = score(frame, language=UNITS[unit], unit=unit)
    assert scored["error_rate"].tolist() == result.rates_by_utterance.tolist()
    assert scored["reference_length"].tolist() == lengths.tolist()
    table = summarize(scored).iloc[0]
    assert (table["error_rate"], table["mean_error_rate"]) == (result.rate, result.mean_error_rate)
    assert (table["error_rate_low"], table["error_rate_high"]) == result.confidence_interval()
    assert table["empty_references"] == 3
    assert confusions(scored)["count"].sum() == confusions(result)["count"].sum() == errors.sum()
    binned = by_bins(scored, "length_s", bins=[0, 2.5, 5])
    assert binned["empty_references"].tolist() == [1, 2]
    assert binned["error_rate"].tolist() == [errors[1] / lengths[0], errors[3]]
    found = compare(scored, scored.assign(errors=0, hypothesis_normalized=scored["reference_normalized"]))
    assert (found.error_rate_a, found.error_rate_b, found.empty_references) == (result.rate, 0, 3)

    only_empty = score(frame.iloc[1:], language=UNITS[unit], unit=unit)
    assert summarize(only_empty)["error_rate"].tolist() == [errors[1] + errors[3]]
    assert compare(only_empty, only_empty).error_rate_a == errors[1] + errors[3]
    assert compare({"a": only_empty, "b": only_empty}, draws=10)["empty_references"].tolist() == [3]


def test_other_rates_have_the_same_divisor():
    pytest.importorskip("pyopenjtalk")
    pytest.importorskip("pypinyin")
    japanese = score(rows("char").iloc[[1]], language="ja").iloc[0]
    assert japanese["cer"] == japanese["tolerant_cer"] == 2
    assert japanese["reading_cer"] == japanese["reading_errors"] > 0
    chinese = score(rows("char").iloc[[1]], language="zh").iloc[0]
    assert chinese["cer"] == chinese["pinyin_error_rate"] == chinese["toneless_error_rate"] == 2
    english = score(rows("word").iloc[[1]], language="de").iloc[0]
    assert (english["wer"], english["cer"]) == (2, 3)


def test_fractions_of_zero_are_missing_and_not_zero():
    scored = score(pd.DataFrame({"text": [""], "hypothesis": [""]}), language="de")
    assert hotword_scores(scored, hotwords=["a"])[["recall", "precision"]].isna().all(axis=None)
    assert glossary_terms([""], ["a"], ["a"])["preserved"].isna().all()


def test_translation_scores_count_empty_references():
    result = score_translations(["a b c d", "", " "], ["a b c d", "x", ""])
    assert result.empty_references == 2
    frame = pd.DataFrame({"reference": ["a b", ""], "translation": ["a b", "x"]})
    assert score_translations(frame, by=(), language="en", draws=10)["empty_references"].tolist() == [1]
