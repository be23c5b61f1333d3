"""Services that change during a study, or between studies: equal settings stay equal, and notes say what happened."""

import pandas as pd
import pytest

import speechlab as sl
from speechlab import evaluate
from speechlab.evaluate import describe_days, describe_drift, describe_time_drift

TEXT = "one two three four five six seven eight nine ten"


@pytest.fixture
def service():
    """A translator that loses half of the words from its 61st call on, whatever the setting."""
    calls = []

    def translate(text, **_):
        calls.append(text)
        return " ".join(text.split()[:: 1 if len(calls) <= 60 else 2])

    with sl.system("service", translate=translate, version="1") as lab:
        yield lab


@pytest.mark.slow
def test_a_service_that_worsens_is_no_difference_of_settings(service, tmp_path):
    frame = pd.DataFrame({"text": [f"{TEXT} {row}" for row in range(60)]})
    frame = frame.assign(reference=frame["text"], source_lang="en", target_lang="de")
    settings = {"plain": {}, "new": {"context": "A manual."}}
    how = {"settings": settings, "store": tmp_path, "progress": False}
    report = evaluate.translation(service, frame, **how)
    scores = report.table.groupby("system")["chrf"].mean()
    assert scores["plain"] == pytest.approx(scores["new"], abs=2)
    notes = [note for note in report.notes if "calls have other scores than earlier ones" in note]
    assert [note.partition(":")[0] for note in notes] == ["plain", "new"]
    assert "100.0 to" in notes[0]
    assert "p < 0.001" in notes[0]
    again = evaluate.translation(service, frame, **how)
    assert again.table["answered_at"].tolist() == report.table["answered_at"].tolist()
    assert not any("earlier ones" in note for note in again.notes)  # nothing was asked


def calls(errors, days=("2026-11-28",) * 40, **columns):
    times = [f"{day}T10:{minute:02}:00.000Z" for minute, day in enumerate(days)]
    table = {"status": "ok", "answered_at": times, "errors": errors, "reference_length": 10, "language": "en"}
    return pd.DataFrame(table | columns)


def test_rows_of_another_language_or_speaker_are_no_drift():
    errors = [1, 0] * 10 + [5, 4] * 10
    (note,) = describe_drift(calls(errors), "errors", "reference_length", ["language"])
    assert note.startswith("Later calls have other errors than earlier ones (5.0% to 45.0%, p < 0.001): ")
    two = calls(errors, language=["en"] * 20 + ["ja"] * 20)
    assert not describe_drift(two, "errors", "reference_length", ["language"])
    speakers = calls(errors, block=["ann"] * 20 + ["ben"] * 20)
    assert not describe_drift(speakers, "errors", "reference_length", ["language"])
    of_one_row = calls(errors, block=[f"row {row}" for row in range(40)]).set_axis([0] * 40)
    assert describe_drift(of_one_row, "errors", "reference_length", ["language"]) == [note]
    assert not describe_drift(calls([1, 0, 3, 2] * 10), "errors", "reference_length", ["language"])
    (note,) = describe_time_drift(calls(1, seconds=[1.0, 1.2] * 10 + [2.2, 2.0] * 10), "seconds", [])
    assert note == "Later calls took 1.9 times as long as earlier ones."


def test_answers_of_other_days_are_counted():
    table = calls(0, days=["2026-11-20"] * 15 + ["2026-11-28"] * 25, system=["a"] * 30 + ["b"] * 10)
    (note,) = describe_days(table)
    assert note == (
        "Not all answers are of one day (a: 15 of 2026-11-20, 15 of 2026-11-28; b: 10 of 2026-11-28); a service may "
        "have changed in between."
    )
    assert not describe_days(calls(0))
