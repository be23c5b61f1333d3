"""What a comparison or a watch answers: figures of what is not significant, few speakers, from when to when."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from speechlab import evaluate
from support.planted import check_budget, plant, right, spoil, study


def compare(before, now, count=40, **columns):
    """Both reports of one system on planted rows, compared."""
    frame = plant(count, before=before, now=now).assign(**columns)
    reports = [study(frame, name) for name in ("before", "now")]
    changes = reports[1].compare(reports[0])
    check_budget(changes)
    return changes


def test_no_significant_change_has_its_figures():
    changes = compare(spoil(0.05), spoil(0.1), 20)
    assert changes.conclusion.text == "No significant change."
    p = changes.summary["p_holm"].iloc[0]
    line = changes.conclusion.certainty
    assert line.startswith("German ")
    assert "% → " in line
    assert f"(p = {p:.3f}, 20 rows)" in line
    assert ("watch it" in line) == (changes.summary["p"].iloc[0] < 0.1)
    assert compare(right, right, 12).answer == "No significant change. German 0.0% as before (12 rows)."


def test_what_rose_is_said_with_both_rates():
    changes = compare(spoil(0.02), spoil(0.2))
    before, now = changes.summary[["value_a", "value_b"]].iloc[0]
    assert changes.conclusion.text == f"The error rate of German rose from {before:.1%} to {now:.1%}."
    assert changes.conclusion.certainty == "German: p < 0.001, 40 rows."
    assert changes.worse


def test_several_groups_have_a_line_each_and_names_stay_as_they_are():
    frame = plant(40, a=spoil(0.05), b=spoil(0.3)).assign(language=["en", "de"] * 20)
    changed = study(frame, "b").compare(study(frame, "a"), names=("ours", "their new one"))
    check_budget(changed)
    assert changed.conclusion.text == "Worse: English and German with “their new one”."
    assert [line.split(" ")[0] for line in changed.conclusion.certainty.split("\n")] == ["English", "German"]
    sides = [{"iPhone": "a", "my b": "b"}, {"iPhone": "b", "my b": "a"}]
    before, now = (evaluate.recognition(None, frame, hypotheses=side, progress=False) for side in sides)
    changes = now.compare(before)
    check_budget(changes)
    assert changes.conclusion.text == "Worse: 2 groups; better: 2 groups."
    assert "\n“my b” in English " in changes.conclusion.certainty


def test_few_speakers_are_told_and_settle_nothing():
    changes = compare(spoil(0.03), spoil(0.2), 80, speaker=[f"s{row % 4}" for row in range(80)])
    assert changes.conclusion.text == "More errors in German with these four speakers."
    assert "this says nothing about other speakers: test 6 or more for that" in changes.answer
    assert str(changes.findings[0]).startswith("Differs with these few speakers: ")
    assert not changes.worse


def test_rows_that_failed_are_counted():
    changes = compare(right, lambda row, text, noise: None if row < 10 else text)
    assert changes.conclusion.text == "More rows failed: 10 of 40, before none."


def test_one_row_hides_no_change():
    loop = lambda row, text, noise: f"{text}{' yes' * 400}" if row == 3 else spoil(0.02)(row, text, noise)  # noqa: E731
    changes = compare(loop, spoil(0.2))
    assert changes.conclusion.text == "One row hides a change in German."
    assert "without one row " in changes.conclusion.certainty


def test_rows_of_a_store_are_noted():
    frame = plant(12, a=right)
    report = study(frame, "a")
    asked = replace(report, record={**report.record, "runs": [{"id": "1"}]})
    changes = evaluate.Report.of(asked).compare(report)
    assert changes.notes == (
        "All 12 rows of the later report came from a store, and may be answers of an earlier day.",
    )
    assert not report.compare(report).notes


def watch(rates, count=30, fails=()):
    """A watch of nights with these error rates, or with failed rows in some of them."""
    random, nights = np.random.default_rng(1), []
    frame = plant(count, a=right)
    for night, rate in enumerate(rates, 1):
        texts = [
            " ".join("x" if random.random() < rate else word for word in text.split())
            for text in frame["text"]
        ]
        heard = pd.Series(texts, dtype="string").mask(pd.Series(frame.index < 12) & (night in fails))
        nights.append(study(frame.assign(a=heard), "a"))
    report = evaluate.watch(nights)
    check_budget(report)
    return report


@pytest.mark.slow
def test_a_watch_says_from_when_and_since_when_it_is_back():
    report = watch([0.05] * 5 + [0.3] * 4 + [0.05] * 2)
    row = report.summary[report.summary["changed"]].iloc[0]
    assert (row["onset"], row["back"]) == (6, 10)
    assert row["usual"] == pytest.approx(0.05, abs=0.02)
    assert row["worst"] == pytest.approx(0.28, abs=0.05)
    assert report.conclusion.text == "The error rate of German was higher from about run 6 to 9."
    assert f"; back since run 10, now {row['now']:.1%}." in report.answer.replace("\n", " ")


@pytest.mark.slow
def test_a_watch_that_lasts_says_since_when_and_failures_begin_at_none():
    report = watch([0.03] * 8, fails=(6, 7, 8))
    row = report.summary[report.summary["changed"]].iloc[0]
    assert report.conclusion.text == "More rows have failed since about run 6."
    assert report.conclusion.certainty.startswith(
        f"0.0% before, 40.0% since; alarm at run {row['alarm']}, 20"
    )
