"""Classes of Japanese differences, on pairs that were written before the code (japanese_differences.tsv)."""

import csv
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speechlab.metrics import compare_japanese, score, summarize

pytest.importorskip("pyopenjtalk")

HERE = Path(__file__).parent
RANK = {"equal": 0, "notation": 1, "homophone": 2, "recognition": 3}
# What the docs say: (written down as, told apart as) -> pairs. "equal": alike after normalisation.
MATRIX = {
    ("notation", "equal"): 24,
    ("notation", "notation"): 90,
    ("notation", "homophone"): 3,
    ("notation", "recognition"): 1,
    ("homophone", "notation"): 1,
    ("homophone", "homophone"): 119,
    ("homophone", "recognition"): 1,
    ("recognition", "recognition"): 107,
}


def pairs():
    with (HERE / "japanese_differences.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def told(pair):
    found = compare_japanese(pair["reference"], pair["hypothesis"]).differences
    return max((difference.kind for difference in found), key=RANK.__getitem__, default="equal")


def test_the_confusion_matrix_is_the_one_in_the_docs():
    matrix = Counter((pair["class"], told(pair)) for pair in pairs())
    right = sum(count for (written, kind), count in matrix.items() if kind in {written, "equal"})
    assert sum(matrix.values()) >= 200
    assert right / sum(matrix.values()) >= 0.97
    assert matrix == MATRIX
    guide = (HERE.parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
    for written in ("notation", "homophone", "recognition"):
        cells = " | ".join(str(matrix.get((written, kind), 0)) for kind in RANK)
        assert f"| {written} | {cells} |" in guide


def test_each_difference_is_judged_for_itself():
    found = compare_japanese("明日の会議は精度について三時から", "あすの会議は制度について四時から")
    assert [(d.kind, d.reference, d.hypothesis) for d in found.differences] == [
        ("notation", "明日", "あす"),
        ("homophone", "精度", "制度"),
        ("recognition", "三", "四"),
    ]
    assert found.tolerant == "明日の会議は制度について四時から"
    assert found.tolerant_errors == 2
    assert found.count("notation") == 1


def test_words_that_are_only_on_one_side_are_recognition_errors():
    found = compare_japanese("今日は雨です", "今日は大雨です").differences
    assert [d.kind for d in found] == ["recognition"]
    assert compare_japanese("", "はい").differences[0].kind == "recognition"
    assert compare_japanese("", "").differences == ()


@settings(max_examples=60, deadline=None)
@given(*[st.text("今日明は箸橋三3時ーサバaA 。きょう😀", max_size=12)] * 2)
def test_differences_account_for_all_errors(one, other):
    found = compare_japanese(one, other)
    assert (found.reference == found.hypothesis) == (not found.differences)
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
