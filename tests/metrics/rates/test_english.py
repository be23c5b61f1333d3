"""Classes of English differences, and the rate that forgives notation."""

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speechlab.metrics import classify_differences, score, summarize
from speechlab.text import words

PARTS = words(
    """4719 4 7 1 9 twenty five 10:35 p.m. pm $5 five dollars May 29th the of 1/2 half e-mail email their there
    it's its don't do not uh um, km 5km % ( ) ' - a 2024-05-29 2024-13-45 0/0 13/13/2024 half past 0
    $99999999999999999999 ½ ii é 十 🙂 \u00a0"""
)
TEXTS = st.lists(st.sampled_from(PARTS), max_size=7).map(" ".join)


def test_differences_are_given_as_written():
    for reference, hypothesis, expected in [
        (
            "They're here at 10:35.",
            "There here at ten thirty five!",
            [("homophone", "They're", "There", 0), ("notation", "10:35", "ten thirty five", 16)],
        ),
        (
            "send 5km of rope",
            "send five kilometres rope",
            [("notation", "km", "kilometres", 6), ("recognition", "of", "", 9)],
        ),
        ("er, a cat", "a hat", [("filler", "er", "", 0), ("recognition", "cat", "hat", 6)]),
        ("", "yes", [("recognition", "", "yes", 0)]),
        ("of 2/3", "of 3/2", [("recognition", "2/3", "3/2", 3)]),
        ("a b", "a b", []),
    ]:
        assert [
            tuple(difference)
            for difference in classify_differences(reference, hypothesis, "en-GB").differences
        ] == expected


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(TEXTS, TEXTS)
def test_tolerance_never_adds_errors(one, other):
    scored = score([one], [other], language="en").iloc[0]
    assert 0 <= scored["tolerant_errors"] <= scored["errors"]
    assert scored["tolerant_wer"] == scored["tolerant_errors"] / max(scored["word_length"], 1)
    found, back = classify_differences(one, other, "en"), classify_differences(other, one, "en")
    assert [d.kind for d in found.differences] == [d.kind for d in back.differences]
    for difference in found.differences:
        end = difference.start + len(difference.reference)
        assert found.reference[difference.start : end] == difference.reference
        assert difference.hypothesis in other
    if found.differences and {d.kind for d in found.differences} <= {"notation", "filler"}:
        assert scored["tolerant_errors"] == 0


def test_scores_have_the_tolerant_rate_and_the_counts():
    frame = pd.DataFrame(
        {
            "text": ["call 4719 at 10:35 p.m.", "their colour", "三時", "x"],
            "hypothesis": ["call 4 7 1 9 at 10.35 pm", "there color is", "四時", None],
            "language": ["en", "en", "fr", "en"],
        }
    )
    scored = score(frame)
    assert scored["tolerant_errors"].tolist()[:2] == [0, 2]
    assert scored["tolerant_wer"].tolist()[:2] == [0, 1]
    names = ["notation_differences", "homophone_differences", "recognition_differences"]
    assert scored[names].iloc[:2].to_numpy().tolist() == [[2, 0, 0], [0, 1, 1]]
    assert scored[[*names, "tolerant_wer"]].iloc[2:].isna().all(axis=None)
    table = summarize(scored, by=["language"]).set_index("language")
    assert table.loc["en", "tolerant_wer"] == pytest.approx(2 / scored["word_length"].iloc[:2].sum())
    assert table.loc["en", "homophone_differences"] == 1
    assert "tolerant_cer" not in table or table["tolerant_cer"].isna().all()
    assert "tolerant_wer" not in score(frame, normalize=None)


def test_fillers_are_counted_apart():
    frame = pd.DataFrame(
        {
            "text": ["uh yes", "er, a cat", "a rope of 30 mm", "yes"],
            "hypothesis": ["yes", "a hat", "a rope of 30 millimetres", "um yes, 5"],
            "language": "en",
        }
    )
    scored = score(frame)
    assert scored["filler_differences"].tolist() == [1, 1, 0, 1]
    assert scored["recognition_differences"].tolist() == [0, 1, 0, 1]
    assert summarize(scored)["filler_differences"].tolist() == [3]


def test_two_languages_keep_their_tolerant_rates_apart():
    pytest.importorskip("pyopenjtalk")
    frame = pd.DataFrame(
        {
            "text": ["a b", "今日"],
            "hypothesis": ["a c", "きょう"],
            "language": ["en", "ja"],
            "group": ["g", "g"],
        }
    )
    table = summarize(score(frame), by=["group"])
    rates = table.set_index("unit")[["tolerant_wer", "tolerant_cer"]]
    assert rates.loc["word", "tolerant_wer"] == 0.5
    assert rates.loc["char", "tolerant_cer"] == 0
    assert rates.isna().sum().sum() == 2


@pytest.mark.slow
@pytest.mark.timeout(20)
def test_long_texts_take_no_more_than_their_length():
    for piece in [
        *("a", "twenty-", "1", "1,", "1.", "5/", "10:", "'s", "a.", "(", "[", "-1"),
        *(f"{part} " for part in ("word", "one", "1", "$5", "May 1", "dr")),
    ]:
        text = piece * 2_000
        found = classify_differences(f"{text}.", f"x {text}!", "en")
        assert "recognition" in {difference.kind for difference in found.differences}
