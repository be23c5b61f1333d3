"""``speechlab study`` as a CI job runs it: real engines, a report, and another one to compare with."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from speechlab import datasets, evaluate
from support.forked import speechlab
from support.openai_server import KEY as OPENAI_KEY
from support.openai_server import openai_server

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def run(live_service, tmp_path_factory):
    root = tmp_path_factory.mktemp("study")
    where = {
        "SPEECHLAB_BASE_URL": live_service.base_url,
        "SPEECHLAB_API_KEY": live_service.api_key,
        "SPEECHLAB_STORE": str(root / "store"),
        "COLUMNS": "120",
    }

    def study(*arguments, **variables):
        env = {**os.environ, **where, **variables}
        return speechlab("study", *arguments, env=env, cwd=root, timeout=240)

    study.root = root
    study.base_url = live_service.base_url
    return study


def test_a_study_of_recordings_and_what_changed_since(run):
    clips = datasets.zh_speech().head(2)[["audio", "text", "language"]]
    clips.to_csv(run.root / "clips.csv", index=False)
    first = run("recognition", "clips.csv", "--out", "first")
    assert first.returncode == 0, first.stderr
    assert "report: first" in first.stdout
    report = evaluate.Report.load(run.root / "first")
    assert len(report.table) == 2
    assert report.record["study"] == "recognition"
    again = run("recognition", "clips.csv", "--out", "now.html", "--earlier", "first", "--fail-if", "worse")
    assert again.returncode == 0, again.stderr
    assert "No difference shown: all recordings, zh" in again.stdout
    assert (run.root / "now.html").stat().st_size > 10_000


def test_a_folder_of_recordings_needs_no_option(run):
    (folder := run.root / "mine").mkdir()
    for clip, text in datasets.zh_speech().head(2)[["audio", "text"]].itertuples(index=False):
        shutil.copy(clip, folder)
        (folder / Path(clip).with_suffix(".txt").name).write_text(text, "utf-8")
    done = run("recognition", "mine")
    assert done.returncode == 0, done.stderr
    assert "language: zh, by the texts; --language says another one" in done.stdout
    assert evaluate.Report.load(run.root / "mine-recognition").table["error_rate"].notna().all()


def test_recordings_of_speech_in_noise_and_in_bands(run):
    clips = datasets.zh_speech().head(1)[["audio", "text", "language"]]
    clips.to_csv(run.root / "clip.csv", index=False)
    conditions = ("--noise-db", 0, "--noise", "white", "--band", "300-3400", "--speechless", 1)
    done = run("recognition", "clip.csv", "--out", "noisy", "--seed", 3, *conditions)
    assert done.returncode == 0, done.stderr
    report = evaluate.Report.load(run.root / "noisy")
    names = ["as recorded", "noise 0 dB", "300 to 3400 Hz"]
    assert report.table["condition"].drop_duplicates().tolist() == names
    assert report.table["status"].isin(["ok", "cached"]).all()
    rates = report.summary.groupby("condition")["ranking_rate"].min()
    assert rates["as recorded"] <= rates["300 to 3400 Hz"] <= rates["noise 0 dB"]
    assert rates["noise 0 dB"] > rates["as recorded"]
    assert len(report.tables["speechless"]) == 4
    assert report.tables["speechless"]["hallucination"].notna().all()
    assert str(report.findings[-1]) in done.stdout


def test_services_by_name_have_their_own_keys(run):
    clips = datasets.zh_speech().head(1)[["audio", "text", "language"]]
    clips.to_csv(run.root / "clip.csv", index=False)
    sides = ("--service", "ours=", "--service", f"the others={run.base_url}")
    setting = ("--setting", 'skipping={"vad": "on"}', "--hotword", "北京", "--hotword", "上海")
    key = {"SPEECHLAB_API_KEY_THE_OTHERS": "a-key-that-nobody-knows"}
    done = run("recognition", "clip.csv", "--out", "sides", *sides, *setting, **key)
    assert done.returncode == 1, done.stderr
    report = evaluate.Report.load(run.root / "sides")
    assert report.systems == [
        "ours, skipping",
        "ours, hotwords",
        "the others, skipping",
        "the others, hotwords",
    ]
    assert report.table["status"].isin(["ok", "cached"]).tolist() == [True, True, False, False]
    assert "the others, hotwords could not be asked" in done.stdout
    settings = report.record["settings"]["systems"]
    assert settings["ours, hotwords"]["hotwords"] == ["北京", "上海"]
    assert "a-key-that-nobody-knows" not in done.stdout + done.stderr


def test_options_of_recognition_that_make_no_sense(run):
    pd.DataFrame({"audio": ["a.wav"], "text": ["a"], "language": "en"}).to_csv(
        run.root / "a.csv", index=False
    )
    for given, message in (
        (("--band", "wide"), "as in --band 300-3400"),
        (("--service", "a=", "--service", "a=http://b"), "given twice"),
        (("--service", "a=", "--service", "b b=http://x"), "set SPEECHLAB_API_KEY_B_B"),
        (("--setting", "a={"), "is no JSON"),
        (("--setting", "hotwords={}", "--hotword", "x"), "give yours another name"),
    ):
        done = run("recognition", "a.csv", "--out", "x", *given)
        assert (done.returncode, message in done.stderr.replace("\n", " ")) == (2, True), done.stderr


def test_a_round_trip_of_a_sample(run):
    texts = pd.DataFrame({"text": ["Good morning.", "Good night.", "  "], "language": "en"})
    texts.to_json(run.root / "texts.jsonl", orient="records", lines=True)
    done = run("round-trip", "texts.jsonl", "--out", "spoken", "--voice", "heart", "--sample", 3)
    assert done.returncode == 1, done.stderr
    assert "1 of 3 rows failed" in done.stderr
    assert "hibari: heart" in done.stdout


def test_which_voice_to_take(run):
    said = ["Good morning.", "Good night.", "二人です。"]
    texts = pd.DataFrame({"text": said, "language": ["en", "en", "ja"]})
    texts.to_csv(run.root / "texts.tsv", index=False, sep="\t")
    named = ("--voice", "heart", "--voice", "mei")
    done = run("voices", "texts.tsv", "--out", "which", *named, "--speed", 1, "--dnsmos", 0)
    assert done.returncode == 0, done.stderr
    row = next(line for line in done.stdout.splitlines() if line.startswith("openjtalk:"))
    assert not re.search(r"\d\.\d{3}", row)
    report = evaluate.Report.load(run.root / "which")
    assert report.study == "voices"
    assert " ".join(report.answer.split()) in " ".join(done.stdout.split())


def test_recordings_that_exist_in_place_of_voices(run):
    clip = datasets.zh_speech().iloc[0]
    rows = [
        {"wav": clip["audio"], "text": clip["text"], "language": "zh", "who": who} for who in ("anna", "bert")
    ]
    pd.DataFrame(rows).to_csv(run.root / "made.csv", index=False)
    given = ("made.csv", "--out", "made", "--audio-column", "wav", "--voice-column", "who")
    done = run("round-trip", *given, "--service", "ears=")
    assert done.returncode == 0, done.stderr
    report = evaluate.Report.load(run.root / "made")
    assert sorted(report.summary["voice_name"]) == ["anna", "bert"]
    assert report.summary["ranking_rate"].notna().all()
    for wrong, told in (
        ((*given[:3], "--voice-column", "who"), "give --audio-column as well"),
        ((*given, "--service", "a=", "--service", "b="), "takes one recognizer"),
        ((*given[:5], "--voice-column", "no"), "no column 'no'"),
    ):
        refused = run("round-trip", *wrong)
        assert refused.returncode == 2, refused.stderr
        assert told in refused.stderr.replace("\n", " ")


def test_voices_of_services_of_both_kinds_in_one_table(run, live_service):
    pd.DataFrame({"text": ["Good morning."], "language": "en"}).to_csv(run.root / "one.csv", index=False)
    with openai_server(live_service) as (_, address):
        sides = ("--service", "ours=", "--service", f"theirs={address}")
        spoken = ("--openai", 'theirs={"speech": "tts-1", "voices": ["alloy"]}')
        named = ("--voice", "ours=heart", "--voice", "theirs=alloy")
        key = {"SPEECHLAB_API_KEY_THEIRS": OPENAI_KEY}
        timed = ("--speed", 1, "--dnsmos", 0)
        which = run("voices", "one.csv", "--out", "both", *timed, *sides, *spoken, *named, **key)
        assert which.returncode == 0, which.stderr
        trip = run("round-trip", "one.csv", "--out", "trip", *sides, *spoken, *named, **key)
        assert trip.returncode == 0, trip.stderr
        wrong = run("voices", "one.csv", "--out", "x", *sides, *spoken, "--voice", "heart", **key)
        assert wrong.returncode == 2
        assert "--voice ours=heart" in wrong.stderr
    report = evaluate.Report.load(run.root / "both")
    assert set(report.summary["system"]) == {"ours", "theirs"}
    assert report.summary["timed_calls"].tolist() == [1, 1]
    assert report.table["engine"].drop_duplicates().tolist() == ["hibari", "tts-1"]
    assert "tts-1: alloy of theirs" in which.stdout
    assert OPENAI_KEY not in which.stdout + which.stderr
    assert set(evaluate.Report.load(run.root / "trip").summary["system"]) == {"ours", "theirs"}


def test_translations_by_settings_with_a_glossary(run):
    pd.DataFrame({"text": ["会議室。"], "source_lang": "ja", "target_lang": "en"}).to_csv(
        run.root / "few.csv", index=False
    )
    (run.root / "terms.csv").write_text("term,target\n会議室,meeting room\n会議室,conference room\n", "utf-8")
    done = run(
        *("translation", "few.csv", "--out", "by-settings", "--glossary", "terms.csv"),
        *("--keyword", "API", "--context", "A plan."),
    )
    assert done.returncode == 0, done.stderr
    report = evaluate.Report.load(run.root / "by-settings")
    assert report.table["system"].tolist() == ["plain", "keywords", "context"]
    assert report.table["terms_expected"].tolist() == [1, 1, 1]
    told = " ".join(done.stdout.split())
    assert "keywords instead of plain, ja → en: texts with terms, terms kept 100.0% to 100.0%" in told
    (run.root / "bad.csv").write_text("a,b\n", "utf-8")
    for wrong, words in (
        (("--glossary", "bad.csv"), "no column 'term'"),
        (
            ("--service", "theirs=http://127.0.0.1:9/v1", "--openai", 'theirs={"model": "x"}'),
            "there is no 'model'",
        ),
        (
            ("--setting", 'keywords={"keywords": ["a"]}', "--keyword", "b"),
            "another option makes a setting called",
        ),
    ):
        told = run("translation", "few.csv", "--out", "x", *wrong)
        assert told.returncode == 2, told.stderr
        assert words in " ".join(told.stderr.split())
    assert not (run.root / "x").exists()


def test_what_is_wrong_is_said_before_the_work(run):
    pd.DataFrame({"text": ["a"], "language": "en"}).to_csv(run.root / "t.csv", index=False)
    alone = run("round-trip", "t.csv", "--out", "x", "--fail-if", "worse")
    assert (alone.returncode, "give --earlier REPORT" in alone.stderr) == (2, True)
    for file, reason in (("gone/file", "there is no folder gone"), (".", "it is a folder")):
        for option in ("--junit", "--markdown"):
            refused = run("round-trip", "t.csv", "--out", "x", option, file)
            assert refused.returncode == 2
            assert f"error: {option}: {file} cannot be written: {reason}\n" in refused.stderr
    assert not (run.root / "x").exists()
