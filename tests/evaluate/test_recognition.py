"""Studies of recognition with several systems and conditions, whose recognizer does what a test needs."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from speechlab import evaluate
from speechlab.audio import AudioClip
from speechlab.client import Client
from speechlab.errors import APIConnectionError, InvalidRequestError
from speechlab.evaluate._recognition.conditions import (
    apply_conditions,
    build_conditions,
    measure_active_level_db,
    measure_level_db,
)
from speechlab.evaluate._recognition.hallucinations import flag_hallucinations_and_truncation
from speechlab.metrics import score
from speechlab.store import Store
from speechlab.text import loops
from support.staged import staged_service

SAID = [f"{name} is at the door" for name in ("Ada", "Bo", "Cy", "Di", "Ed", "Flo", "Gus", "Hal")]


@pytest.fixture(scope="module")
def staged():
    with staged_service() as service:
        yield service


@pytest.fixture(scope="module")
def lab(staged):
    with Client(base_url=staged.http.base_url, api_key=staged.http.key) as client:
        yield client


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with Store(tmp_path_factory.mktemp("recognition")) as opened:
        yield opened


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """A recording for each sentence, which is told by its length: so many tenths of a second."""
    folder = tmp_path_factory.mktemp("recordings")
    paths = []
    for number, _ in enumerate(SAID, start=1):
        sound = 0.1 * np.sin(np.arange(1_600 * number) / 4)
        paths.append(str(AudioClip(sound.astype(np.float32), 16_000).save(folder / f"talk-{number}.wav")))
    return pd.DataFrame({"audio": paths, "text": SAID, "language": "en", "speaker": ["A", "B"] * 4})


@pytest.fixture(scope="module")
def told(staged):
    """Tell the recognizer what it hears: a function of the sentence and of the options."""

    def tell(heard):
        def by_length(duration_s):
            number = round(10 * duration_s)
            said = SAID[number - 1] if 0 < number <= len(SAID) else ""
            return heard(said, staged.ears.calls[-1][1])

        staged.ears.hears = by_length

    return tell


@pytest.fixture
def hears(staged, told):
    """The same for one test."""
    yield told
    staged.ears.hears = lambda duration_s: "heard"


def misheard(said, options):
    """Names are heard with hotwords alone."""
    return said if options.hotwords else said.replace(said.split()[0], "who")


@pytest.fixture(scope="module")
def compared(lab, store, recordings, told):
    told(misheard)
    settings = {"plain": {}, "names": {"hotwords": ["Ada", "Bo"]}}
    how = {"store": store, "progress": False, "concurrency": 1}
    return evaluate.recognition(lab, recordings, settings=settings, **how)


@pytest.mark.slow
def test_settings_stand_beside_each_other(compared, tmp_path):
    assert compared.table["system"].tolist() == ["plain"] * 8 + ["names"] * 8
    assert compared.table["recording"].tolist() == list(range(8)) * 2
    assert compared.summary["system"].tolist() == ["names", "plain"]
    assert compared.summary["ranking_rate"].tolist() == [0, 0.2]
    assert compared.tables["order"]["group"].tolist() == ["a", "b"]
    (pair,) = of_systems(compared).to_dict("records")
    assert pair["verdict"] == "differs with these few speakers"
    assert pair["p_holm"] == pytest.approx(2**-7)
    assert pd.isna(pair["low"])  # of eight recordings
    told = "en: names (0.0%) has the lowest word error rate of 2 on 8 utterances; plain"
    assert str(compared.findings[0]).startswith(told)
    again = evaluate.Report.load(compared.save(tmp_path / "study"))
    assert (again.findings, again.systems) == (compared.findings, ["plain", "names"])
    assert {"plain", "names"} <= set(again.record["settings"]["systems"])
    page = (tmp_path / "study" / "report.html").read_text("utf-8")
    assert page.count("names (0.0%) has the lowest") == 1
    heads = [head for head in re.findall(r"<th [^>]*>([^<]*)</th>", page) if head in {"plain", "names"}]
    assert heads == ["plain", "names"]  # the columns of values have the names of the systems
    assert "+20.0</strong>" in page  # as in the figure: the first named makes more errors
    assert compared.rows().frame["fewer_errors"].tolist() == ["names"] * 8


@pytest.mark.slow
def test_rows_of_systems_are_shown_recording_by_recording(lab, store, recordings, hears):
    hears(misheard)
    settings = {"plain": {}, "names": {"hotwords": ["Ada", "Bo"]}, "vad": {"vad": "on"}}
    how = {"store": store, "progress": False, "concurrency": 1}
    three = evaluate.recognition({"ours": lab, "same": lab}, recordings.head(3), settings=settings, **how)
    assert three.systems == [f"{name}, {way}" for name in ("ours", "same") for way in settings]
    wide = three.side_by_side()
    assert wide["error_spread"].tolist() == [1, 1, 1]
    assert wide["hypothesis_ours, names"].tolist() == SAID[:3]
    assert "hypothesis_same, vad" in three.rows().frame
    assert "Fewer than 6 recordings" in "\n".join(map(str, three.findings))


@pytest.mark.slow
def test_what_changed_between_studies_of_several_systems(compared, lab, store, recordings, hears):
    hears(misheard)
    settings = {"plain": {"hotwords": ["Cy"]}, "names": {"hotwords": ["Ada", "Bo"]}}
    how = {"store": store, "progress": False, "concurrency": 1}
    later = evaluate.recognition(lab, recordings, settings=settings, **how)
    summary = later.compare(compared).summary.set_index("group")
    assert summary["verdict"].to_dict() == {
        "plain, all recordings, en": "differs with these few speakers",
        "names, all recordings, en": "no difference shown",
    }
    alone = evaluate.recognition(lab, recordings, voice=None, **how)
    with pytest.raises(InvalidRequestError, match="has the systems 'plain', 'names', the other one a single"):
        alone.compare(compared)
    same = alone.compare(compared.part("plain"))
    assert same.summary["n"].tolist() == [8]
    assert "system" not in same.table


@pytest.mark.slow
def test_recordings_of_one_name_have_their_folders_beside_it(lab, recordings, hears, tmp_path):
    hears(lambda sentence, options: sentence)
    paths = []
    for place, path in zip(("a/x", "b/x", "c"), recordings["audio"], strict=False):
        (tmp_path / place).mkdir(parents=True)
        paths.append(str(AudioClip.from_file(path).save(tmp_path / place / "1.wav")))
    frame = recordings.head(4).assign(audio=[*paths, recordings["audio"][3]], text="the same", speaker="A")
    how = {"store": str(tmp_path / "store"), "progress": False}
    report, turned = (evaluate.recognition(lab, rows, **how) for rows in (frame, frame[::-1]))
    assert report.table["file"].tolist() == ["a/x/1.wav", "b/x/1.wav", "c/1.wav", "talk-4.wav"]
    pairs = turned.compare(report).table
    assert pairs["hypothesis"].nunique() == 4
    assert pairs["hypothesis"].tolist() == pairs["hypothesis_earlier"].tolist()


def of_systems(report):
    """The differences of systems, without those of conditions and of hotwords."""
    rows = report.differences[report.differences["measure"] == "error rate"]
    return rows[~rows["a"].str.contains("as recorded")]


@pytest.mark.slow
def test_systems_under_conditions_are_one_table(lab, store, recordings, hears):
    hears(misheard)
    settings = {"plain": {}, "names": {"hotwords": ["Ada", "Bo"]}}
    how = {"store": store, "progress": False, "concurrency": 1, "settings": settings}
    report = evaluate.recognition(lab, recordings, noise_db=[0], **how)
    assert of_systems(report)["condition"].tolist() == ["as recorded", "noise 0 dB"]
    assert of_systems(report)["p"].tolist() == pytest.approx([2**-7] * 2)
    assert of_systems(report)["p_holm"].tolist() == pytest.approx([2**-6] * 2)
    assert "en, noise 0 dB: names (0.0%) has the lowest" in "\n".join(map(str, report.findings))
    page = report.to_html()
    assert "en, as recorded: names (0.0%) has the lowest" in page
    assert "en, noise 0 dB: names" not in page
    assert "verdict differs with these few speakers</caption>" in page  # of both rows
    named = report.tables["hotwords"].set_index(["condition", "system"])
    missed = report.differences.query("measure == 'hotwords missed' and condition == 'noise 0 dB'")
    assert (missed["b"].tolist(), missed["p_holm"].tolist()) == (["names"], [1])
    assert pd.isna(named.loc[("noise 0 dB", "plain"), "verdict"])
    alone = evaluate.recognition(lab, recordings, noise_db=[0], **{**how, "settings": None})
    for rows in (report.rows(), alone.rows()):
        assert [one["name"] for one in rows.columns if one["shown"]][:2] == ["condition", "file"]
    assert "loop" not in [one["name"] for one in alone.rows().columns if one["shown"]]  # nothing to see
    text, sources = report.methods()
    for part in ("P.56", "long-term spectrum", "loops if", "made up if", "lost its end if", "all conditions"):
        assert part in text, part
    assert "bands" not in text
    assert any("P.56" in source for source in sources)


@pytest.mark.slow
def test_recordings_of_one_speaker_are_one_block(lab, store, recordings, hears):
    hears(misheard)
    settings = {"plain": {}, "names": {"hotwords": ["Ada"]}}
    six = recordings.assign(speaker=[*"ABCDEFAB"])

    def study(frame, **how):
        return evaluate.recognition(lab, frame, settings=settings, store=store, progress=False, **how)

    by_speaker, each = study(six), study(six, groups=None)
    assert of_systems(by_speaker)["blocks"].tolist() == [6]
    assert by_speaker.table["block"].nunique() == 6
    assert by_speaker.summary["interval_needs"].tolist() == [14, 14]
    assert by_speaker.record["settings"]["groups"] == "speaker"
    assert by_speaker.tables["order"]["utterances"].tolist() == [8, 8]
    assert "by block" in str(by_speaker.findings[0])
    assert "8 recordings as 6" in "\n".join(by_speaker.notes)
    assert each.record["settings"]["groups"] is None
    assert of_systems(each)["blocks"].tolist() == [8]
    assert "block" not in each.table
    assert each.summary["error_rate"].tolist() == by_speaker.summary["error_rate"].tolist()
    assert of_systems(study(recordings, groups="speaker"))["blocks"].tolist() == [2]  # else each for itself
    with pytest.raises(InvalidRequestError, match="talk"):
        study(recordings, groups="talk")


@pytest.mark.slow
def test_equal_files_and_sentences_count_once(lab, store, recordings, hears, tmp_path):
    hears(lambda said, options: said)
    copied = tmp_path / "copy.wav"
    copied.write_bytes(Path(recordings["audio"][0]).read_bytes())
    audio, text = [*recordings["audio"][:7], str(copied)], [*recordings["text"][:6], *recordings["text"][:2]]
    for frame, needed, note in (
        (recordings.drop(columns="speaker").assign(audio=audio), [13], "1 row repeats a recording"),
        (recordings.assign(text=text), [17, 17], "2 rows repeat"),  # a line for each speaker
    ):
        report = evaluate.recognition(lab, frame, store=store, progress=False)
        assert report.summary["interval_needs"].tolist() == needed
        assert report.notes[0].startswith(note)


@pytest.mark.slow
def test_a_service_that_is_away_stops_no_other(lab, recordings, hears, tmp_path):
    hears(misheard)
    how = {"store": tmp_path / "store", "progress": False, "give_up_after_s": 0.1, "speechless": 1}
    settings = {"plain": {}, "names": {"hotwords": ["Ada"]}}
    with Client(base_url="http://127.0.0.1:9", api_key="nobody-is-there-1", max_retries=0) as nobody:
        services = {"theirs": nobody, "ours": lab}
        with pytest.warns(UserWarning, match="4 of 8 rows failed"):
            report = evaluate.recognition(services, recordings.head(2), settings=settings, **how)
        with pytest.raises(APIConnectionError):
            evaluate.recognition({"theirs": nobody, "others": nobody}, recordings.head(2), **how)
    done = report.table.groupby("system")["hypothesis"].count()
    assert done.to_dict() == {"ours, names": 2, "ours, plain": 2, "theirs, names": 0, "theirs, plain": 0}
    assert report.tables["order"]["system"].tolist() == ["ours, names", "ours, plain"]
    assert "theirs, plain could not be asked: GET http://127.0.0.1:9" in "\n".join(report.notes)
    assert set(report.tables["speechless"]["system"]) == {"ours, plain", "ours, names"}
    assert len(report.record["runs"]) == 2


def test_what_are_no_systems_and_no_conditions(lab, recordings, store):
    for wrong_lab, how, message in (
        ({}, {}, "a client for each name"),
        ({"": None}, {}, "a client for each name"),
        ({"ours": None}, {"settings": {}}, "parameters of Client.transcribe"),
        ({"ours": None}, {"settings": {"a": ["Ada"]}}, r"settings\['a'\]"),
        (lab, {"noise_db": ["loud"]}, "signal-to-noise ratios"),
        (lab, {"noise_db": 10, "noise": "pink"}, "noise is 'pink'"),
        (lab, {"band_hz": (300, 3400)}, "bands of two frequencies"),
        (lab, {"band_hz": [(3400, 300)]}, "bands of two frequencies"),
        (lab, {"speechless": True}, "speechless is True"),
        (lab, {"noise_db": [0], "noise": "gone.wav"}, "is not read as one: No such file or directory"),
    ):
        with pytest.raises(InvalidRequestError, match=message):
            evaluate.recognition(wrong_lab, recordings.head(1), store=store, progress=False, **how)


@pytest.mark.slow
def test_what_hotwords_help_and_what_they_cost(compared, lab, store, recordings, hears):
    (plain, named) = compared.tables["hotwords"].sort_values("system", ascending=False).to_dict("records")
    assert (plain["hotwords_said"], plain["hotwords_hit"], plain["recall"]) == (2, 0, 0)
    assert (named["hotwords_said"], named["hotwords_hit"], named["recall"]) == (2, 2, 1)
    assert "recognized hotwords went from 0 to 2 of 2 spoken (p = 1.000), hotwords inserted" in "\n".join(
        map(str, compared.findings)
    )  # two of eight can be chance
    assert "No effect found." in "\n".join(map(str, compared.findings))
    names = [said.split()[0] for said in SAID]

    def eager(said, options):
        return f"{said} Ada" if options.hotwords else misheard(said, options)

    hears(eager)
    settings = {"plain": {}, "all": {"hotwords": names}}
    how = {"store": store, "progress": False, "concurrency": 1}
    report = evaluate.recognition(lab, recordings, settings=settings, **how)
    found = report.tables["hotwords"].set_index("system").loc["all"]
    assert (found["recall"], found["hotwords_added"], found["rest_rate"]) == (1, 8, 0)
    assert str(report.findings[-1]).endswith(
        "Hotwords help; they cost more hotwords inserted wrongly. 8 recordings are too few to show much."
    )
    assert report.table["hotwords_added"].tolist() == [0] * 8 + [1] * 8


@pytest.mark.slow
def test_hotwords_of_rows_of_two_languages(lab, store, recordings, hears):
    said = "APIの会議室は東京タワーです。Ada is there."
    rows = recordings.head(2).assign(text=[said, "Ada is here"], language=["ja+en", "en"])
    rows = rows.astype({"language": "string", "text": "string"})  # as a manifest is read
    hears(lambda _, options: said if options.hotwords else "APIの会議室は東京です。Ada is there.")
    settings = {"plain": {}, "names": {"hotwords": ["API", "東京タワー", "Ada"]}}
    how = {"store": store, "progress": False, "concurrency": 1}
    report = evaluate.recognition(lab, rows, settings=settings, **how)
    found = report.tables["hotwords"].set_index(["language", "system"])
    counts = found[["hotwords_said", "hotwords_hit"]]
    assert counts.loc[("ja+en", "plain")].tolist() == [3, 2]
    assert counts.loc[("ja+en", "names")].tolist() == [3, 3]
    assert counts.loc[("en", "names")].tolist() == [1, 1]
    assert found["verdict"].notna().tolist() == [False, True, False, True]
    assert "went from 2 to 3 of 3 spoken" in "\n".join(map(str, report.findings))
    alone = evaluate.recognition(lab, rows, hotwords=["Ada"], speechless=1, **how)
    assert "inserted wrongly" in [column.head for view in alone.views for column in view.columns]
    assert report.table["unbiased_errors"].tolist()[0] == 0


def loud(seconds, level=0.1, rate=16_000):
    return (level * np.sin(np.arange(round(seconds * rate)) / 4)).astype(np.float32)


def test_the_level_of_speech_leaves_pauses_out():
    tone = loud(4)
    level = measure_active_level_db(tone, 16_000)
    assert level == pytest.approx(20 * np.log10(0.1 / np.sqrt(2)), abs=0.1)
    paused = np.concatenate([tone, np.zeros(64_000, np.float32)])
    of_paused = measure_active_level_db(paused, 16_000)
    assert of_paused == pytest.approx(level, abs=0.6)
    assert measure_level_db(paused) == pytest.approx(level - 3, abs=0.1)
    assert measure_active_level_db(0.1 * paused, 16_000) == pytest.approx(of_paused - 20, abs=0.2)
    assert measure_active_level_db(np.zeros(100, np.float32), 16_000) is None


@pytest.mark.parametrize("noise", ["speech", AudioClip(loud(0.5) + 0.01, 16_000)])
def test_noise_has_the_level_that_was_asked_for(noise, store, tmp_path):
    tone = loud(3)
    path = str(AudioClip(tone, 16_000).save(tmp_path / "tone.wav"))
    rows = pd.DataFrame({"audio": [path, "gone.wav"]})
    made = apply_conditions(rows, build_conditions([20, 0], []), noise, 1, store)
    assert made["condition"].tolist() == [
        n for n in ("as recorded", "noise 20 dB", "noise 0 dB") for _ in (0, 1)
    ]
    assert made["audio"].tolist()[1::2] == ["gone.wav"] * 3
    assert made["audio"][0] == path
    for cell, snr in zip(made["audio"][2::2], (20, 0), strict=True):
        clip = AudioClip.from_file(cell)
        assert clip.sample_rate == 16_000
        left = clip.samples - tone
        assert measure_active_level_db(tone, 16_000) - measure_level_db(left) == pytest.approx(snr, abs=0.2)
    again = apply_conditions(rows, build_conditions([20, 0], []), noise, 1, store)
    assert again["audio"].tolist() == made["audio"].tolist()
    other = apply_conditions(rows, build_conditions([20, 0], []), noise, 2, store)
    assert other["audio"][2] != made["audio"][2]


def test_a_band_leaves_what_is_inside(store, tmp_path):
    low, high = (0.2 * np.sin(2 * np.pi * hz * np.arange(16_000) / 16_000) for hz in (1_000, 5_000))
    path = str(AudioClip((low + high).astype(np.float32), 16_000).save(tmp_path / "both.wav"))
    conditions = build_conditions([], [(300, 3_400)])
    made = apply_conditions(pd.DataFrame({"audio": [path]}), conditions, "speech", 0, store)
    left = AudioClip.from_file(made["audio"][1]).samples[2_000:-2_000]
    assert np.allclose(left, low[2_000:-2_000], atol=0.005)


@pytest.mark.slow
def test_levels_of_noise_and_silence_are_a_study(lab, store, recordings, hears):
    hears(lambda said, options: said)
    how = {"store": store, "progress": False, "noise_db": [10, 0], "band_hz": [(300, 3400)], "speechless": 1}
    report = evaluate.recognition(lab, recordings.head(2), **how)
    names = ["as recorded", "noise 10 dB", "noise 0 dB", "300 to 3400 Hz"]
    assert report.summary["condition"].tolist() == names
    assert report.table["snr_db"].dropna().tolist() == [10, 10, 0, 0]
    (axes,) = report.plot("Error rate against noise").axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["10", "0", "as recorded"]
    assert report.tables["speechless"]["sound"].tolist()[0] == "silence"
    assert len(report.tables["speechless"]) == 4
    with pytest.raises(InvalidRequestError, match="the title of a figure of this report"):
        report.plot("Error rate against time")


def test_the_rules_of_hallucinations_and_lost_tails():
    cases = [
        ("en", "good morning", "good morning", False, False),
        ("en", "", "thank you", True, False),
        ("en", "", "", False, False),
        ("en", "good morning", "good morning to all of you here", True, False),
        ("en", "good morning", "good morning to you", False, False),
        ("en", "see you all there on monday", "see you all", False, True),
        ("en", "see you all there", "see you", False, False),
        ("en", "see you all there on monday", "", False, False),
        ("en", "good", "good " + "it was a cold day " * 3, False, False),
        ("ja", "今日は三時に会いましょう", "今日は三時に", False, True),  # by characters
        ("ja", "はい", "はい", False, False),
    ]
    for language in ("en", "ja"):
        of_language = [case[1:] for case in cases if case[0] == language]
        rows = pd.DataFrame(of_language, columns=["text", "hypothesis", "made_up", "lost"])
        looping = [loops(heard, said) for said, heard, *_ in of_language]
        found = flag_hallucinations_and_truncation(score(rows, language=language).assign(loop=looping))
        assert found["hallucination"].tolist() == rows["made_up"].tolist()
        assert found["tail_lost"].tolist() == rows["lost"].tolist()


@pytest.mark.slow
def test_speed_is_measured_by_calls_in_turns_and_compared(staged, lab, recordings, hears, store):
    hears(misheard)
    rows = recordings.head(6).drop(columns="speaker")
    how = {"store": store, "progress": False}
    services = {"ours": lab, "theirs": lab.with_options()}
    first = evaluate.recognition(services, rows, speed=6, noise_db=[0], noise="white", **how)
    assert first.speed["system"].tolist()[:4] == ["ours", "theirs", "theirs", "ours"]
    assert first.speed["turn"].tolist()[::2] == list(range(6))
    assert first.speed["condition"].eq("as recorded").all()
    assert first.speed["error"].isna().all()
    lengths = {name: row / 10 for row, name in enumerate(rows["audio"].map(os.path.basename), 1)}
    assert first.speed["duration_s"].tolist() == pytest.approx(first.speed["file"].map(lengths).tolist())
    clean = first.summary[first.summary["condition"] == "as recorded"]
    assert clean["timed_calls"].tolist() == [6, 6]
    assert (clean["total_s_low"] <= clean["total_s"]).all()
    assert first.summary["timed_calls"].count() == 2  # of noisy recordings nothing was timed
    assert "text (s)" not in first.headline()  # which has a row for noise, too
    assert "text (s)" in "".join(first.sections(clips=0))
    part = first.part("ours")
    assert len(part.speed) == 6
    noisy = first.part("ours", "noise 0 dB")
    assert len(noisy.speed) == 0
    assert "timed_calls" not in noisy.summary
    slow = replace(first, speed=first.speed.assign(total_s=2 * first.speed["total_s"]))
    changes = slow.compare(first)
    of_speed = changes.differences[changes.differences["unit"] == "ratio"]
    assert of_speed["group"].tolist() == [f"{one}, as recorded, en" for one in services]
    assert of_speed["difference"].tolist() == pytest.approx([2, 2])
    assert of_speed["verdict"].tolist() == ["slower"] * 2
    assert (changes.slower, changes.worse) == (True, False)
    assert "time to the end × 2.00" in "\n".join(map(str, changes.findings))
    assert "machines, their load" in "\n".join(map(str, changes.findings))
    assert (part.compare(first.part("ours")).differences["unit"] == "ratio").sum() == 1
    untimed = evaluate.recognition(services, rows, **how)
    assert len(untimed.speed) == 0
    assert not (first.compare(untimed).differences["unit"] == "ratio").any()


@pytest.mark.slow
def test_calls_that_are_timed_ask_what_the_batch_asks(staged, lab, recordings, hears, store):
    hears(misheard)
    rows = recordings.head(2).assign(names=["Ada", None])
    staged.ears.calls.clear()
    how = {"voice": None, "speed": 2, "hotwords": "names", "store": store, "progress": False}
    assert evaluate.recognition(lab, rows, **how).speed["error"].isna().all()
    asked = [options.hotwords for _, options in staged.ears.calls]
    assert asked[-3:] == [("Ada",), ("Ada",), ()]
    assert set(asked) == {("Ada",), ()}
