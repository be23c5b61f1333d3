"""Times of words, the calibration of confidences, and texts that change while they are shown."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speechlab.errors import InvalidRequestError, SegmentError
from speechlab.metrics import calibration, partial_stability, word_times


def words(*rows, file=None):
    table = pd.DataFrame(rows, columns=["start", "end", "word"])
    return table if file is None else table.assign(file=file)


SAID = words((0.0, 0.4, "Good"), (0.5, 1.0, "morning,"), (1.2, 1.5, "dear"), (1.5, 2.0, "friends"))


def test_by_hand():
    heard = words((0.03, 0.36, "good"), (0.62, 1.0, "morning"), (1.5, 1.92, "friends!"), (2.2, 2.4, "uh"))
    found = word_times(SAID, heard.assign(confidence=[0.9, 0.8, 0.7, 0.1]), normalize="basic")
    assert found.words["correct"].tolist() == [True, True, True, False]
    assert found.words["reference"].tolist()[:3] == [0, 1, 3]
    assert found.words["reference"].isna().tolist() == [False] * 3 + [True]
    assert found.words["start_error_s"].tolist()[:3] == pytest.approx([0.03, 0.12, 0.0])
    assert found.words["end_error_s"].tolist()[:3] == pytest.approx([-0.04, 0.0, -0.08])
    table = found.frame()
    assert table["matched"].tolist() == [1, 2, 3]
    for name in ("precision", "recall", "f1"):
        assert table[name].tolist() == [0.25, 0.5, 0.75]
    edges = found.edges()[["mean_s", "median_s", "mean_abs_s", "median_abs_s"]]
    assert edges.loc["start"].tolist() == pytest.approx([0.05, 0.03, 0.05, 0.03])
    assert edges.loc["end"].tolist() == pytest.approx([-0.04, -0.04, 0.04, 0.04])
    assert found.within(0.12).matched == 3  # to the microsecond
    assert calibration(found.words).count == 4


def test_a_repeated_word_has_the_nearest_counterpart():
    said = words((0.0, 0.2, "no"), (1.0, 1.2, "no"), (2.0, 2.2, "no"), (3.0, 3.2, "thanks"))
    for place in range(3):
        heard = words((place + 0.1, place + 0.3, "no"), (3.0, 3.2, "thanks"))
        assert word_times(said, heard).words["reference"].tolist() == [place, 3]


def test_a_word_that_becomes_several_tokens_is_one_word():
    said = words((0.0, 0.3, "I"), (0.3, 0.6, "don't"), (0.6, 1.0, "know"))
    whole = words((0.0, 0.3, "I"), (0.35, 0.6, "don't"), (0.6, 1.0, "know"))
    assert word_times(said, whole, language="en").words["correct"].all()
    parts = words((0.0, 0.3, "I"), (0.3, 0.4, "do"), (0.4, 0.6, "not"), (0.6, 1.0, "know"))
    found = word_times(said, parts, language="en")
    assert found.words["correct"].tolist() == [True, False, False, True]
    assert found.within(1).recall == pytest.approx(2 / 3)


def test_japanese_words_and_several_files():
    said = pd.concat([words((0, 1, "今日"), (1, 2, "は"), file="a"), words((0, 1, "今日"), file="b")])
    found = word_times(said, said.assign(start=said["start"] + 0.5), unit="char", language="ja")
    assert found.words["correct"].all()
    assert found.words["file"].tolist() == ["a", "a", "b"]
    assert found.within(0.2).matched == 0
    assert found.within(0.5).f1 == 1.0


def test_nothing_in_common():
    empty = SAID[:0]
    for found in (word_times(SAID, empty), word_times(empty, SAID), word_times(empty, empty)):
        assert found.within(0.1).matched == 0
        assert np.isnan(found.edges()["mean_abs_s"]).all()
    assert math.isnan(word_times(empty, empty).within(0.1).f1)
    late = SAID.assign(start=SAID["start"] + 60, end=SAID["end"] + 60)
    assert word_times(SAID, late, collar=math.inf).within(60).f1 == 1.0


@pytest.mark.slow
@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), max_size=5),
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), max_size=5),
)
def test_it_is_the_nearest_of_the_best_alignments(one, other):
    def table(rows):
        starts = np.cumsum([gap for _, gap in rows], dtype=float) / 10
        return pd.DataFrame({"start": starts, "end": starts + 0.1, "word": [word for word, _ in rows]})

    said, heard = table(one), table(other)
    found = word_times(said, heard, normalize=None, collar=math.inf)
    best = min(
        (
            len(said) + len(heard) - len(left) - sum(same := [one[i][0] == other[j][0] for i, j in pairs]),
            len(same) - sum(same),
            round(sum(abs(said["start"][i] - heard["start"][j]) for i, j in pairs), 6),
            -sum(same),
        )
        for size in range(min(len(said), len(heard)) + 1)
        for left in itertools.combinations(range(len(said)), size)
        for right in itertools.combinations(range(len(heard)), size)
        for pairs in [list(zip(left, right, strict=True))]
    )
    assert int(found.words["correct"].sum()) == -best[3]


def test_what_is_refused():
    with pytest.raises(SegmentError, match="start of row 1"):
        word_times(SAID, SAID.assign(start=[0.0, None, 1.2, 1.5]))
    table = pd.DataFrame({"correct": [True, False], "confidence": [0.5, 1.5]})
    for wrong, message in (
        (table, "holds 1.5; give numbers from 0 to 1"),
        (table.assign(confidence=0.5, correct=["yes", "no"]), "give True and False"),
    ):
        with pytest.raises(InvalidRequestError, match=message):
            calibration(wrong)


CERTAIN = st.tuples(st.booleans(), st.integers(0, 20).map(lambda value: value / 20))


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(CERTAIN, min_size=1, max_size=30), st.integers(1, 12), st.randoms())
def test_calibration_by_its_definitions(rows, bins, random):
    table = pd.DataFrame(rows, columns=["correct", "confidence"])
    found = calibration(table, bins=bins)
    by_bin = {}
    for right, sure in rows:
        by_bin.setdefault(min(math.floor(sure * bins + 1e-9), bins - 1), []).append((right, sure))
    ece = sum(abs(sum(r for r, _ in part) - sum(s for _, s in part)) for part in by_bin.values()) / len(rows)
    assert found.ece == pytest.approx(ece, abs=1e-12)
    assert found.reliability["count"].tolist() == [len(by_bin[place]) for place in sorted(by_bin)]
    assert found.reliability["low"].tolist() == [place / bins for place in sorted(by_bin)]
    assert found.brier_score == pytest.approx(sum((s - r) ** 2 for r, s in rows) / len(rows))
    assert 0 <= found.ece <= 1
    assert 0 <= found.aurc <= 1
    last = found.risk_coverage.iloc[-1]
    assert (last["coverage"], last["risk"]) == (1.0, pytest.approx(1 - found.accuracy))
    for row in found.risk_coverage.itertuples():
        kept = [right for right, sure in rows if sure >= row.threshold]
        assert (row.coverage, row.risk) == pytest.approx((len(kept) / len(rows), 1 - sum(kept) / len(kept)))
    shuffled = calibration(table.sample(frac=1, random_state=random.randrange(99)), bins=bins)
    assert (shuffled.ece, shuffled.aurc) == (pytest.approx(found.ece), pytest.approx(found.aurc))


def test_the_area_is_the_mean_over_orders_of_equal_confidences():
    for rows in [[(True, 0.9), (False, 0.5), (True, 0.5), (True, 0.5), (False, 0.2)], [(False, 0.1)] * 4]:
        areas = []
        for order in itertools.permutations(sorted(rows, key=lambda row: -row[1])):
            if [sure for _, sure in order] == sorted((sure for _, sure in rows), reverse=True):
                wrong = np.cumsum([not right for right, _ in order])
                areas.append(np.mean(wrong / np.arange(1, len(rows) + 1)))
        found = calibration(pd.DataFrame(rows, columns=["correct", "confidence"]))
        assert found.aurc == pytest.approx(np.mean(areas))


def test_missing_confidences_are_counted():
    table = pd.DataFrame({"correct": [True, True, False], "confidence": [0.75, None, 0.25]})
    found = calibration(table)
    assert (found.count, found.missing, found.accuracy, found.mean_confidence) == (2, 1, 0.5, 0.5)
    assert found.ece == 0.25
    empty = calibration(table[:0])
    assert math.isnan(empty.ece)
    assert len(empty.reliability) == len(empty.risk_coverage) == 0
    assert calibration(table.assign(confidence=1.0)).normalized_cross_entropy == -math.inf


def test_word_times_take_a_reference_of_texts():
    texts = pd.DataFrame({"file": ["a", "b", "c"], "text": ["Good morning, friends", "yes", None]})
    rows = [("a", 0.0, 0.4, "good", 0.95), ("a", 0.5, 1.0, "morning", 0.9), ("a", 1.2, 1.5, "fiends", 0.4)]
    columns = ["file", "start", "end", "word", "confidence"]
    heard = pd.DataFrame([*rows, ("b", 0.0, 0.3, "Yes.", 0.8), ("c", 0.0, 1.0, "you", 0.7)], columns=columns)
    found = word_times(texts, heard, language="en")
    assert found.words["correct"].tolist() == [True, True, False, True, False]
    assert found.words[["start_error_s", "end_error_s"]].isna().all(axis=None)
    assert calibration(found.words).accuracy == pytest.approx(0.6)
    assert "3 of 4 words recognized; their times are unknown" in repr(found)
    with pytest.raises(InvalidRequestError, match="no times of words"):
        found.within(0.1)


SHOWN = st.sampled_from(["a", "b", "c", "dd"])
STEPS = st.lists(st.tuples(st.integers(0, 3), st.lists(SHOWN, max_size=3), st.booleans()), max_size=12)


@given(STEPS)
def test_what_is_withdrawn_is_what_is_counted(steps):
    """Each step withdraws words, puts others there that differ from them at the first place, and may be final."""
    shown, texts, withdrawn, revisions, final = [], [], 0, 0, 0
    for count, new, ends in steps:
        count = min(count, len(shown))  # noqa: PLW2901 - of those that are there
        kept, gone = shown[: len(shown) - count], shown[len(shown) - count :]
        if gone and new and gone[0] == new[0]:
            new = ["other", *new[1:]]  # noqa: PLW2901
        shown = [*kept, *new]
        withdrawn, revisions = withdrawn + len(gone), revisions + bool(gone)
        texts.append((" ".join(shown), ends))
        if ends:
            final, shown = final + len(shown), []
    found = partial_stability(texts, language="en")
    assert (found.unstable_words, found.revisions, found.words) == (withdrawn, revisions, final)
    if final:
        assert found.unstable_partial_word_ratio == withdrawn / final
    else:
        assert math.isnan(found.unstable_partial_word_ratio)


@given(st.lists(SHOWN, min_size=1, max_size=8))
def test_a_text_that_only_grows_is_stable(words):
    texts = [(" ".join(words[:n]), n == len(words)) for n in range(1, len(words) + 1)]
    found = partial_stability(texts)
    assert (found.unstable_words, found.words) == (0, len(words))
    repeated = partial_stability([one for text, final in texts for one in [(text, False), (text, final)]])
    assert repeated == found


def test_partial_stability_counts_characters_and_notation():
    assert partial_stability([("三 十", False), ("三時に", True)], language="ja").unstable_words == 1
    assert partial_stability([("good morning", False), ("Good morning.", True)]).unstable_words == 2
    assert partial_stability([("some", False), ("something", True)]).revisions == 1
