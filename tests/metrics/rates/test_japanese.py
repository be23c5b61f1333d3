"""Classes of Japanese differences."""

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speechlab.metrics import classify_differences, score, summarize

pytest.importorskip("pyopenjtalk")


def test_each_difference_has_its_own_class():
    found = classify_differences("明日の会議は精度について三時から", "あすの会議は制度について四時から", "ja")
    assert [(d.kind, d.reference, d.hypothesis) for d in found.differences] == [
        ("notation", "明日", "あす"),
        ("homophone", "精度", "制度"),
        ("recognition", "三", "四"),
    ]
    assert found.tolerant == "明日の会議は制度について四時から"
    assert found.tolerant_errors == 2
    assert found.count("notation") == 1
    assert found.frame()["kind"].tolist() == ["notation", "homophone", "recognition"]
    assert len(classify_differences("同じ", "同じ", "ja").frame()) == 0
    assert [d.kind for d in classify_differences("", "はい", "ja").differences] == ["recognition"]


@settings(max_examples=60)
@given(*[st.text("今日明は箸橋三3時ーサバaA 。きょう😀", max_size=12)] * 2)
def test_differences_account_for_all_errors(one, other):
    found = classify_differences(one, other, "ja")
    assert (found.reference == found.hypothesis) == (not found.differences)
    back = classify_differences(other, one, "ja").differences
    assert [(d.kind, d.reference, d.hypothesis) for d in found.differences] == [
        (d.kind, d.hypothesis, d.reference) for d in back
    ]
    assert found.tolerant_errors <= max(len(found.reference), len(found.hypothesis))
    if found.count("notation") == len(found.differences):
        assert found.tolerant == found.reference
    if not found.count("notation"):
        assert found.tolerant == found.hypothesis
    for difference in found.differences:
        start = difference.start
        assert found.reference[start : start + len(difference.reference)] == difference.reference


def test_scores_have_the_three_counts():
    frame = pd.DataFrame({"text": ["明日の精度", "三時", "x"], "hypothesis": ["あすの制度", "四時", None]})
    scored = score(frame, language="ja")
    names = ["notation_differences", "homophone_differences", "recognition_differences"]
    assert scored[names].iloc[:2].to_numpy().tolist() == [[1, 1, 0], [0, 0, 1]]
    assert scored[names].iloc[2].isna().all()
    first = scored.iloc[0]
    assert first["reading_cer"] == 0.0 or first["reading_cer"] < first["cer"]
    assert first["tolerant_cer"] == 0.2 < first["cer"]
    table = summarize(scored)
    assert table[names].to_numpy().tolist() == [[1, 1, 1]]
    assert table["tolerant_cer"].iloc[0] == pytest.approx(2 / 7)
