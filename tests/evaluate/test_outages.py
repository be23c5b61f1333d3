"""Services that end in the middle of a study, or were never there: what was done is kept and shown."""

from __future__ import annotations

import pandas as pd
import pytest

from speechlab import evaluate
from speechlab.client import Client
from speechlab.errors import APIConnectionError, InvalidRequestError
from speechlab.store import Store
from support.studies import serving

pytestmark = pytest.mark.slow

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


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_sounds_without_any_recognizer_are_kept(there, nobody, store):
    how = {"store": store, "recognizer": nobody, **HOW}
    report = evaluate.voices(there.lab, TEXTS, ["low", "high"], speed=1, dnsmos=0, **how)
    assert report.table["status"].tolist() == ["error"] * 4
    assert report.table["error"].str.startswith("not recognized: GET http://127.0.0.1:9").all()
    assert report.table["audio"].notna().all()
    assert report.summary["loudness_lufs"].notna().all()
    assert report.summary["timed_calls"].tolist() == [1, 1]
    assert report.summary["ranking_rate"].isna().all()
    said, advice = report.notes
    assert said.startswith("The recognizer could not be asked: GET http://127.0.0.1:9")
    assert advice == "What was spoken is in the store, and the same call resumes from there."
    assert report.answer.startswith("Nothing can be advised.")
    assert [run["operation"] for run in report.record["runs"]] == ["synthesize"]
    asked = len(there.voice.calls)
    resumed = evaluate.round_trip(there.lab, TEXTS, "low", store=store, progress=False)
    assert resumed.table["status"].tolist() == ["ok", "ok"]
    assert len(there.voice.calls) == asked


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_service_that_ends_between_two_takes_keeps_the_first(store):
    with serving() as staged:
        how = {**HOW, "store": store, "progress": staged.ending("synthesize, take 1")}
        report = evaluate.voices(staged.lab, TEXTS, "low", takes=2, speed=1, dnsmos=0, **how)
    first = report.table[report.table["take"] == 0]
    assert first["audio"].notna().all()
    assert report.table["status"].eq("error").all()
    assert report.notes[0].startswith("The recognizer could not be asked: the service was given up")
    assert any(note.startswith("Speed was not measured, all calls failed") for note in report.notes)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_another_service_hears_all_voices(there, store):
    with serving() as staged:
        services = {"ours": staged.lab, "theirs": there.lab}
        how = {**HOW, "store": store, "progress": staged.ending("synthesize")}
        report = evaluate.voices(services, TEXTS, "low", speed=0, dnsmos=0, **how)
    done = report.table.groupby("system")["hypothesis"].count()
    assert done.to_dict() == {"ours": 2, "theirs": 2}
    assert report.notes[0].startswith("The recognizer of ours could not be asked: ")
    assert report.notes[1] == "theirs heard all voices in place of ours."


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_rows_of_a_service_that_ends_early_stay(there, store):
    with serving() as staged:
        services = {"ours": there.lab, "theirs": staged.lab}
        estimated = lambda stage, *_: staged.end() if stage.startswith("estimate") else None  # noqa: E731
        how = {**HOW, "store": store, "progress": estimated}
        report = evaluate.round_trip(services, TEXTS, {"ours": "low", "theirs": "high"}, **how)
    assert report.table["system"].tolist() == ["ours", "ours", "theirs", "theirs"]
    assert report.table["status"].tolist() == ["ok", "ok", "error", "error"]
    assert report.table["error"][2].startswith("theirs could not be asked: ")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_transcripts_are_kept_where_the_service_ends(recordings, store):
    with serving() as staged:
        how = {**HOW, "store": store, "progress": staged.ending("")}
        report = evaluate.recognition(staged.lab, recordings, speechless=1, speed=1, **how)
    assert report.table["hypothesis"].eq("good morning").all()
    told = "none of 4 recordings in which nobody speaks could be recognized."
    assert told in map(str, report.findings)
    assert "Speed was not measured, all calls failed" in "\n".join(report.notes)


@pytest.mark.filterwarnings("ignore::UserWarning")
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


def test_the_catalogue_is_waited_for_as_long_as_was_said(store):
    with Client("http://127.0.0.1:9", api_key="nobody-is-there-1") as away:
        with pytest.raises(APIConnectionError) as raised:
            evaluate.voices(away, TEXTS, "low", store=store, progress=False, give_up_after_s=0.1)
        assert raised.value.timing.attempts <= 2
        assert raised.value.service_lost
