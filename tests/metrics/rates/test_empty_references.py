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
    sides = [[text if unit == "word" else text.replace(" ", "") for text in side] for side in (SAID, HEARD)]
    return pd.DataFrame({"text": sides[0], "hypothesis": sides[1], "length_s": [1.0, 2.0, 3.0, 4.0]})


@pytest.mark.parametrize("unit", list(UNITS))
def test_lists_and_tables_have_the_same_divisor(unit):
    pytest.importorskip("pyopenjtalk" if unit == "reading" else "pypinyin")
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
    for package in ("pyopenjtalk", "pypinyin"):
        pytest.importorskip(package)
    japanese, chinese = (
        score(rows("char").iloc[[1]], language=language).iloc[0] for language in ("ja", "zh")
    )
    assert japanese["reading_cer"] == japanese["reading_errors"] > 0
    assert japanese[["cer", "tolerant_cer"]].tolist() == [2, 2]
    assert chinese[["cer", "pinyin_error_rate", "toneless_error_rate"]].tolist() == [2, 2, 2]
    assert score(rows("word").iloc[[1]], language="de")[["wer", "cer"]].iloc[0].tolist() == [2, 3]


def test_fractions_of_zero_are_missing_in_every_rate():
    scored = score(pd.DataFrame({"text": [""], "hypothesis": [""]}), language="de")
    assert hotword_scores(scored, hotwords=["a"])[["recall", "precision"]].isna().all(axis=None)
    assert glossary_terms([""], ["a"], ["a"])["preserved"].isna().all()
    assert score_translations(["a b c d", "", " "], ["a b c d", "x", ""]).empty_references == 2
    frame = pd.DataFrame({"reference": ["a b", ""], "translation": ["a b", "x"]})
    assert score_translations(frame, by=(), language="en", draws=10)["empty_references"].tolist() == [1]
