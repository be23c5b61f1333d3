"""Services that end in the middle of a study, change, or fail on some rows: what was done is kept and shown."""

import html
import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest

import speechlab as sl
from speechlab import batch, evaluate, segments
from speechlab.audio import AudioClip
from speechlab.client import Client
from speechlab.errors import InvalidRequestError
from speechlab.evaluate import describe_days, describe_drift, describe_time_drift
from speechlab.store import Store
from support.ears import Ears, ears
from support.planted import plant, right, spoil, study
from support.studies import serving

__all__ = ["ears"]  # a fixture

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning")]

TEXTS = pd.DataFrame({"text": ["Good morning.", "Good night."], "language": "en"})
HOW = {"progress": False, "give_up_after_s": 0.2}


@pytest.fixture(scope="module")
def there():
    with serving() as staged:
        yield staged


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store") as opened:
        yield opened


@pytest.fixture(scope="module")
def nobody():
    with Client("http://127.0.0.1:9", api_key="nobody-is-there-1", max_retries=0) as client:
        yield client


@pytest.fixture
def recordings(there, tmp_path):
    paths = [
        str(there.lab.synthesize(text, voice="low").save(tmp_path / f"{number}.wav"))
        for number, text in enumerate(TEXTS["text"])
    ]
    return TEXTS.assign(audio=paths)


def test_sounds_without_any_recognizer_are_kept(there, nobody, store):
    how = {"store": store, "recognizer": nobody, **HOW}
    report = evaluate.voices(there.lab, TEXTS, ["low", "high"], speed=1, dnsmos=0, **how)
    assert report.table["status"].tolist() == ["error"] * 4
    assert report.table["error"].str.startswith("not recognized: GET http://127.0.0.1:9").all()
    assert report.table["audio"].notna().all()
    assert report.summary["timed_calls"].tolist() == [1, 1]
    said, advice = report.notes
    assert said.startswith("The recognizer could not be asked: GET http://127.0.0.1:9")
    assert advice == "What was spoken is in the store, and the same call resumes from there."
    assert report.answer.startswith("Nothing can be advised.")
    assert [run["operation"] for run in report.record["runs"]] == ["synthesize"]
    asked = len(there.voice.calls)
    resumed = evaluate.round_trip(there.lab, TEXTS, "low", store=store, progress=False)
    assert resumed.table["status"].tolist() == ["ok", "ok"]
    assert len(there.voice.calls) == asked


def test_rows_of_a_service_that_ends_early_stay(there, store):
    with serving() as staged:
        services = {"ours": there.lab, "theirs": staged.lab}
        estimated = lambda stage, *_: staged.end() if stage.startswith("estimate") else None  # noqa: E731
        how = {**HOW, "store": store, "progress": estimated}
        report = evaluate.round_trip(services, TEXTS, {"ours": "low", "theirs": "high"}, **how)
    assert report.table["status"].tolist() == ["ok", "ok", "error", "error"]
    assert report.table["error"][2].startswith("theirs could not be asked: ")


def test_transcripts_are_kept_where_the_service_ends(recordings, store):
    with serving() as staged:
        how = {**HOW, "store": store, "progress": staged.ending("")}
        report = evaluate.recognition(staged.lab, recordings, speechless=1, speed=1, **how)
    assert report.table["hypothesis"].eq("good morning").all()
    told = "none of 4 recordings in which nobody speaks could be recognized."
    assert told in map(str, report.findings)
    assert "Speed was not measured, all calls failed" in "\n".join(report.notes)


def test_translations_are_kept_where_one_of_two_services_ends(there, store):
    texts = TEXTS.assign(source_lang="en", target_lang="ja").drop(columns="language")
    with serving() as staged:
        how = {**HOW, "store": store, "progress": staged.ending("")}
        report = evaluate.translation(
            {"ours": staged.lab, "theirs": there.lab}, texts, back=True, speed=1, **how
        )
    assert report.table["translation"].notna().all()
    # each goes on as soon as its own translations are made, whatever the others do
    missing = report.table["back_translation"].isna().sum()
    assert missing <= 2
    assert report.table["back_error"].notna().sum() == missing
    assert not any(note.startswith("Speed was not measured") for note in report.notes)


def test_voices_that_a_service_lacks_are_refused_by_name(there, store):
    heard = len(there.ears.calls)
    with serving(("low", "deep")) as other:
        services = {"ours": there.lab, "theirs": other.lab}
        for study in (evaluate.round_trip, evaluate.voices):
            with pytest.raises(InvalidRequestError, match="theirs: voice 'high' fits no voice"):
                study(services, TEXTS, {"ours": "high", "theirs": "high"}, store=store, **HOW)
        assert not other.ears.calls
        assert len(there.ears.calls) == heard
        mute = "the voices of ours speak: en; the voices of theirs speak: en"
        with pytest.raises(InvalidRequestError, match=mute):
            evaluate.voices(services, TEXTS.assign(language="ja"), store=store, **HOW)


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


def study_sounds(address, folder, **options):
    """Study three sounds, of which each is the word "word"."""
    clips = [AudioClip(np.full(64_000, level, np.float32), 16_000) for level in (0.1, 0.2, 0.3)]
    frame = pd.DataFrame({"audio": clips, "text": "word", "language": "en"})
    how = {"voice": None, "store": folder / "store", "progress": False, "concurrency": 1}
    with Client(base_url=address, max_retries=0) as lab:
        return evaluate.recognition(lab, frame, vad="segments", **how, **options)


def test_a_study_keeps_the_row_whose_segments_cannot_be_right(ears, tmp_path):
    Ears.backwards = {2}
    report = study_sounds(ears, tmp_path)
    found = report.tables["segments"]
    assert found["position"].tolist() == [0, 2]
    assert segments.equal(found, segments.frame(found))
    saved = report.save(tmp_path / "study")
    assert all((saved / file).is_file() for file in segments.read(saved / "segments.parquet")["file"])
    both = evaluate.Report.combine("both", [report, report])
    assert both.tables["segments"]["position"].tolist() == [0, 2, 3, 5]
    assert report.table["hypothesis"].tolist() == ["word"] * 3
    assert report.table["error"].str.contains("cannot be right").fillna(False).tolist() == [
        False,
        True,
        False,
    ]


def test_a_study_tells_of_failed_rows_once_and_where_they_are(ears, tmp_path):
    Ears.failing = {2}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        report = study_sounds(ears, tmp_path)
    (warning,) = told
    assert str(warning.message) == "1 of 3 rows failed: 1 like 'HTTP 400: no'. report.failures() has them"
    assert warning.filename == __file__
    assert len(report.failures()) == 1


def test_a_budget_is_of_a_study_and_rows_not_asked_failed(ears, tmp_path):
    with pytest.warns(UserWarning, match="the batch stopped: the budget of 1 calls is used up"):
        report = study_sounds(ears, tmp_path, budget=batch.Budget(calls=1))
    assert report.table["status"].tolist() == ["ok", "error", "error"]
    assert report.failures()["error"].str.startswith("not asked: the budget of 1 calls is used up").all()


def test_failed_rows_and_counts_lead_to_their_rows():
    frame = plant(8, b=right, c=spoil(0.2))
    frame.loc[:1, "c"], frame.loc[2, "b"] = None, ""
    report = study(frame, "b", "c")
    rows = report.build_shown_table()
    page = "".join(map(str, report.below(rows)))
    assert "2 of 8 rows of c failed: 2 like " in page
    links = [json.loads(html.unescape(link)) for link in re.findall(r'data-rows="([^"]*)"', page)]
    columns = {name for link in links for name, _ in [*link["categories"], *link["ranges"]]}
    assert columns <= set(rows.rows.layout.by_title)
    assert {"categories": [["status_c", ["error"]]], "ranges": []} in links
    assert ["empty_b", ["✓"]] in [category for link in links for category in link["categories"]]
