"""Checked lines as a report: exceptions first, and a bound that a heard sample allows and nothing else."""

import math
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from speechlab import evaluate
from speechlab.audio import AudioClip
from speechlab.errors import InvalidRequestError
from speechlab.metrics import compute_count_bound

CLIP = AudioClip(np.zeros(80), 8_000)


def lines(ready, *others):
    """A checked batch of so many ready lines and some others."""
    checks = ["ready"] * ready + list(others)
    return pd.DataFrame(
        {
            "text": [f"line {at}" for at in range(len(checks))],
            "language": "en",
            "voice": "ada",
            "audio": CLIP,
            "duration_s": 0.01,
            "status": ["ok" if check else "error" for check in checks],
            "error": [None if check else "no sound" for check in checks],
            "key": [
                sha256(f"{at}".encode()).hexdigest() if check else None for at, check in enumerate(checks)
            ],
            "transcript": [f"line {at}" for at in range(len(checks))],
            "take": 0,
            "takes": 1,
            "check": checks,
            "why": [None if check == "ready" else "lost “line”" for check in checks],
        }
    )


def test_exceptions_come_first_and_bounds_need_a_whole_sample():
    made = lines(38, "faulty", "unclear")
    report = evaluate.acceptance(made)
    assert report.conclusion.text == "38 of 40 lines are ready; 2 need an ear."
    assert report.conclusion.certainty.endswith("is not known; report.sample(38) gives the lines to hear.")
    assert report.table["state"].tolist() == ["needs an ear"] * 2 + ["ready"] * 38
    table = report.sample(30)
    with pytest.raises(InvalidRequestError, match="begins with 'right' or 'wrong'"):
        table.note(0, "good")
    table.note(0, "")
    assert len(table.frame) == 32
    assert table.answers == ["right", "wrong"]
    for label in table.frame.index[:31]:
        table.note(label, "right")
    waiting = evaluate.acceptance(made, table)
    assert waiting.conclusion.certainty.startswith("Not decided yet: 1 line of the sample")
    table.note(table.frame.index[31], "right")
    table.note(table.frame.index[1], "wrong: it says something else")
    done = evaluate.acceptance(made, table)
    assert (
        done.answer == "39 of 40 lines are ready; 1 is wrong. At most 2.6% of the ready ones are wrong (95%)."
    )
    assert done.summary[["lines", "ready", "wrong"]].to_numpy().tolist() == [[40, 39, 1]]
    assert set(report.sample(10).frame["key"]) <= set(table.frame["key"])


def test_what_was_chosen_by_hand_makes_no_bound():
    made = lines(40, None)
    chosen = made.iloc[:20].assign(note="right")
    report = evaluate.acceptance(made, chosen)
    assert report.answer.startswith("40 of 41 lines are ready; 1 failed. What was heard is no sample")
    assert evaluate.acceptance(made.iloc[:0]).answer == "There are no lines."
    left = evaluate.acceptance(made.replace({"status": {"error": "cancelled"}}))  # by a budget
    assert left.conclusion.text == "40 of 41 lines are ready; 1 was not asked."
    with pytest.raises(InvalidRequestError, match="'maybe' of a line is no decision"):
        evaluate.acceptance(made, chosen.assign(note="maybe"))
    with pytest.raises(InvalidRequestError, match="check=recognizer"):
        evaluate.acceptance(made.drop(columns="check"))


def test_the_bound_is_exact():
    assert compute_count_bound(38, 38, 0) == 0
    assert compute_count_bound(100_000, 59, 0) / 100_000 == pytest.approx(1 - 0.05 ** (1 / 59), abs=2e-4)
    for cases, sample, hits in ((40, 10, 1), (25, 24, 3), (60, 1, 0), (9, 9, 4)):
        bound = compute_count_bound(cases, sample, hits)

        def chance(total, cases=cases, sample=sample, hits=hits):
            ways = (math.comb(total, hit) * math.comb(cases - total, sample - hit) for hit in range(hits + 1))
            return sum(ways) / math.comb(cases, sample)

        assert chance(bound) > 0.05 >= (chance(bound + 1) if bound < cases else 0)


def test_a_line_whose_sound_cannot_be_read_is_not_ready(tmp_path):
    made = lines(12)
    (tmp_path / "text.wav").write_text("no sound at all")
    made["audio"] = made["audio"].astype(object)
    made.loc[0, "audio"], made.loc[1, "audio"] = str(tmp_path / "gone.wav"), str(tmp_path / "text.wav")
    made.loc[2, "audio"] = None
    report = evaluate.acceptance(made)
    assert report.conclusion.text.startswith(
        "9 of 12 lines are ready; 3 failed; the sound of 3 lines cannot be read: there is no file "
    )
    assert report.table["state"].tolist() == ["failed"] * 3 + ["ready"] * 9
    assert report.table["why"].str.startswith("its sound cannot be read: ")[:3].all()
    assert len(report.sample(12).frame) == 9
    report.save(tmp_path / "ready")
    again = evaluate.open_report(tmp_path / "ready")
    assert (again.answer, again.table["audio"].notna().sum()) == (report.answer, 9)
    assert evaluate.verify(tmp_path / "ready")
    own = tmp_path / "ready" / "audio" / "own.wav"
    changed = Path(again.table["audio"].iloc[-1])
    for file in (own, changed):
        file.write_text("mine")
    evaluate.acceptance(lines(3)).save(tmp_path / "ready")
    kept = evaluate.open_report(tmp_path / "ready").table["audio"]
    assert {*own.parent.iterdir()} == {*map(Path, kept), own, changed}
    assert len(kept) == 3


def test_a_recognizer_that_failed_is_in_the_first_sentence():
    made = lines(2, "unclear")
    made.loc[2, "why"] = "could not be judged: the recognizer failed: no memory"
    made.loc[2, "transcript"] = None
    sentence = evaluate.acceptance(made).conclusion.text
    assert sentence == (
        "2 of 3 lines are ready; 1 needs an ear; the recognizer failed for 1 of 3 lines: no memory."
    )
    heard = made[2:].assign(note="right")
    assert evaluate.acceptance(made, heard).conclusion.text == "All 3 lines are ready."
    assert evaluate.acceptance(lines(0, "faulty")).conclusion.text == "0 of 1 line is ready; 1 needs an ear."


def test_a_checked_batch_is_read_from_csv(tmp_path):
    made = lines(3, "faulty").assign(takes=[1, 2, 1, 3])
    made["audio"] = str(CLIP.save(tmp_path / "a.wav"))
    made.to_csv(tmp_path / "made.csv", index=False)
    report = evaluate.acceptance(tmp_path / "made.csv")
    assert report.conclusion.text == evaluate.acceptance(made).conclusion.text
    assert report.summary["taken_again"].tolist() == [2]
    with pytest.raises(InvalidRequestError, match="row 3: column 'takes' holds 'many', which is no number"):
        evaluate.acceptance(made.assign(takes=["1", "2", "many", None]))
