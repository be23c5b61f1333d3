"""What decides is in the sentence: failures, empty outputs, one row, few speakers; of plants with a known truth."""

from __future__ import annotations

import random
import re

import pandas as pd
import pytest

from speechlab.errors import InvalidRequestError
from support.planted import check_budget, plant, right, spoil, study


def test_failures_are_told_and_never_taken():
    frame = plant(40, a=lambda row, text, noise: None if row % 2 else text, b=spoil(0.06))
    report = study(frame, "a", "b")
    assert report.conclusion.text == "Take b: a failed on 20 of 40 recordings."
    assert "where all answered, a 0.0%, b" in report.conclusion.certainty.lower()
    assert "with failures as all wrong a 50.0%, b" in report.conclusion.certainty
    assert "significantly" not in report.answer
    assert report.differences["verdict"].tolist() == ["not settled, as one failed on more rows"]
    check_budget(report)
    third = study(
        plant(72, a=lambda row, text, _: text if row % 6 else None, b=spoil(0.03), c=spoil(0.03)), *"abc"
    )
    assert re.fullmatch(r"Take (b|c): a failed on 12 of 72 recordings\.", third.conclusion.text)
    assert re.search(r"; (b|c) may be as good\.$", third.conclusion.certainty)


def test_a_lead_that_may_be_chance_is_none_where_the_leader_failed():
    frame = plant(27, a=spoil(0.03), b=spoil(0.06))
    frame.loc[frame.index[:4], "a"] = None
    report = study(frame, "a", "b")
    assert report.conclusion.text == "No difference is shown, but a failed on 4 of 27 recordings."
    check_budget(report)


def test_a_third_system_that_fails_takes_no_verdict_from_the_others():
    frame = plant(60, a=spoil(0.03), b=spoil(0.13))
    both = study(frame, "a", "b")
    frame["c"] = frame["text"].where(frame.index < 6, None)
    report = study(frame, "a", "b", "c")
    assert report.conclusion.text == both.conclusion.text == "Take a."
    assert report.differences["p"].tolist() == both.differences["p"].tolist()
    assert report.answer.endswith("c answered 6 of 60.")
    check_budget(report)


def test_pairs_are_tested_on_the_rows_that_both_have():
    frame = plant(40, a=spoil(0.03), b=spoil(0.2), c=lambda row, text, noise: None if row < 6 else text)
    pairs = study(frame, "a", "b", "c").differences
    assert pairs[["a", "b", "n"]].apply(tuple, axis=1).tolist().count(("a", "b", 40)) == 1
    assert sorted(pairs["n"]) == [34, 34, 40]


def test_clear_losers_are_named():
    report = study(plant(60, a=spoil(0.055), b=spoil(0.057), c=spoil(0.26)), "a", "b", "c")
    assert re.fullmatch(r"Take (a|b) for now; (a|b) may be as good, c is worse.", report.conclusion.text)
    assert "; significantly worse: c (2" in report.conclusion.certainty
    check_budget(report)


def test_empty_outputs_are_a_finding_with_their_count():
    frame = plant(28, a=lambda row, text, noise: "" if row < 8 else spoil(0.02)(row, text, noise))
    frame["duration_s"] = [12.0] * 8 + [6.0] * 20
    report = study(frame, "a")
    assert report.conclusion.text == "8 of 28 German recordings came back empty."
    assert "errors in 100 words; those that are empty are all longer than 6 s" in report.conclusion.certainty
    assert any(
        "8 of 28 recordings came back empty, all longer than 6 s" in str(one) for one in report.findings
    )
    assert report.summary["empties"].tolist() == [8]
    frame["b"] = [spoil(0.3)(row, text, random.Random(row)) for row, text in enumerate(frame["text"])]
    beside = study(frame, "a", "b")
    assert "came back empty on 8 of 28" in beside.answer
    check_budget(report)
    check_budget(beside)


def test_one_runaway_row_is_named_and_the_verdict_with_and_without_it():
    loop = lambda row, text, noise: f"{text}{' yes' * 400}" if row == 3 else text  # noqa: E731
    alone = study(plant(40, a=loop), "a")
    assert alone.conclusion.text == "One of 40 German recordings makes all 400 errors."
    assert alone.conclusion.certainty.startswith(
        "The other 39 are right; 400 words were inserted in it; it is “"
    )
    report = study(plant(30, a=loop, b=spoil(0.1)), "a", "b")
    assert report.conclusion.text == "a is better but for one recording."
    assert report.conclusion.certainty.startswith(
        "One recording makes all 400 errors of a; without it a 0.0%, b"
    )
    assert "%" not in alone.answer
    check_budget(alone)
    check_budget(report)


def test_what_would_settle_it_counts_the_blocks_of_the_test():
    frame = plant(80, a=spoil(0.06), b=spoil(0.09))
    frame["speaker"] = [f"s{row % 8}" for row in range(80)]
    report = study(frame, "a", "b")
    needed, p = report.tables["order"][["needed", "p_best"]].iloc[1]
    assert p > 0.05
    told = f"about {needed - 8} more speakers would settle it"
    assert (told in report.answer) == (p <= 0.5 and needed > 8)
    assert "more recording" not in report.answer
    check_budget(report)


def test_most_speakers_against_the_mean_are_told_and_no_number_that_promises_too_much():
    speakers = [f"s{speaker}" for speaker, count in enumerate([100] + [5] * 7) for _ in range(count)]
    frame = plant(
        135,
        a=lambda row, text, noise: spoil(0.02 if row < 100 else 0.3)(row, text, noise),
        b=lambda row, text, noise: spoil(0.14 if row < 100 else 0.05)(row, text, noise),
    ).assign(speaker=speakers)
    report = study(frame, "a", "b")
    assert report.answer.startswith("No difference shown between a and b. a ")
    assert "b wins with 7 of 8 speakers" in report.answer
    assert " more " not in report.answer
    check_budget(report)


def test_few_speakers_are_told_and_settle_nothing():
    frame = plant(80, a=spoil(0.04), b=spoil(0.13)).assign(Client_ID=[f"s{row % 4}" for row in range(80)])
    report = study(frame, "a", "b")
    assert report.conclusion.text == "a makes fewer errors with these four speakers."
    assert (
        "The column Client_ID has four speakers, so this is about them alone; groups=None takes "
        in report.notes[0]
    )
    assert report.answer.endswith(
        "on 80 recordings; this says nothing about other speakers: test 6 or more for that."
    )
    assert not report.worse
    assert report.differences["p"].iloc[0] < 0.001
    check_budget(report)
    even = study(frame.assign(b=plant(80, b=spoil(0.05))["b"]), "a", "b")
    assert "this says nothing about other speakers" in even.answer


def test_equal_texts_without_a_speaker_are_one_block():
    once = plant(6, a=right, b=spoil(0.2))
    shouted = once.assign(text=once["text"].str.upper() + "!")
    report = study(pd.concat([once, shouted] * 5, ignore_index=True), "a", "b")
    assert report.differences[["n", "blocks"]].iloc[0].tolist() == [60, 6]
    assert report.differences["p"].tolist() == study(once, "a", "b").differences["p"].tolist()
    assert study(pd.concat([once] * 2, ignore_index=True), "a", "b", groups=None).differences[
        "blocks"
    ].tolist() == [12]


def test_level_is_a_claim_with_a_margin_and_keep_one_with_a_baseline():
    frame = plant(200, a=spoil(0.01), b=spoil(0.01))
    report = study(frame, "a", "b", margin=3)
    assert report.conclusion.text in {"a and b are level.", "b and a are level."}
    assert report.answer.endswith("points apart (margin 3 points).")
    few = frame.head(30).assign(b=frame["a"].head(30)[::-1].tolist()).assign(b=frame["a"].head(30))
    assert "no difference seen" in study(few, "a", "b", margin=0.01).answer.lower()
    clear = study(plant(40, a=right, b=spoil(0.3)), "a", "b", baseline="a")
    assert clear.conclusion.text == "Keep a."
    kept = study(frame.head(40), "a", "b", baseline="b", margin=0.01)
    assert kept.conclusion.text == "Keep b."
    assert "keep" not in study(frame.head(40), "a", "b").answer.lower()
    with pytest.raises(InvalidRequestError, match="baseline"):
        study(frame, "a", "b", baseline="c")
    with pytest.raises(InvalidRequestError, match="margin"):
        study(frame, "a", "b", margin=0)


def test_a_small_sample_and_a_small_lead_are_told_apart():
    report = study(plant(4, a=right, banana=lambda row, text, noise: "banana"), "a", "banana")
    assert (
        report.answer
        == "a is ahead of banana, not yet for sure. 4 recordings cannot tell a from banana; 6 could."
    )


def test_references_that_carry_the_answer_are_told():
    frame = plant(60, a=spoil(0.03), b=spoil(0.03))
    frame.loc[:6, "text"] = frame["text"].iloc[20:27].tolist()
    report = study(frame, "a", "b")
    assert "7 of 60 recordings came out wholly unlike their references" in report.answer.replace("\n", " ")
    signs = pd.DataFrame(
        {"text": ["...", "!", "ten cats"], "language": "en", "a": ["hello you there", "x", "ten cats"]}
    )
    report = study(signs, "a")
    assert report.answer.startswith("0.0 errors in 100 English words. 1 recording")
    assert report.notes == ("2 of 3 recognized rows have no reference, and no score.",)
    assert report.table["text"].tolist() == signs["text"].tolist()


def test_names_stay_as_they_are_with_a_line_for_each_language():
    frame = plant(48, **{"my set": spoil(0.05), "iPhone": spoil(0.3)})
    frame["language"] = ["en", "de"] * 24
    report = study(frame, "my set", "iPhone")
    assert report.conclusion.text == "Take “my set”."
    lines = report.conclusion.certainty.split("\n")
    assert [line.partition(":")[0] for line in lines] == ["English", "German"]
    swapped = study(
        frame.drop(columns="my set").assign(z=frame["iPhone"], iPhone=frame["text"]), "z", "iPhone"
    )
    assert swapped.conclusion.text == "Take iPhone."
    check_budget(report)
