"""Studies of recognition with several systems and conditions, whose recognizer does what a test needs."""

import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import speechlab as sl
from speechlab import evaluate
from speechlab.audio import AudioClip
from speechlab.client import Client
from speechlab.errors import APIConnectionError, InvalidRequestError
from speechlab.store import Store
from support.staged import staged_service

pytestmark = pytest.mark.slow

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


def misheard(said, options):
    """Names are heard with hotwords alone."""
    return said if options.hotwords else said.replace(said.split()[0], "who")


NAMES = {"plain": {}, "names": {"hotwords": ["Ada", "Bo"]}}


@pytest.fixture(scope="module")
def ask(staged, lab, store):
    """Evaluate a recognizer that hears what a function makes of the sentence and of the options."""

    def evaluate_recognition(rows, heard=misheard, lab=lab, **how):
        def by_length(duration_s):
            number = round(10 * duration_s)
            said = SAID[number - 1] if 0 < number <= len(SAID) else ""
            return heard(said, staged.ears.calls[-1][1])

        staged.ears.hears = by_length
        how = {"store": store, "progress": False, "concurrency": 1} | how
        return evaluate.recognition(lab, rows, **how)

    return evaluate_recognition


@pytest.fixture(scope="module")
def compared(ask, recordings):
    return ask(recordings, settings=NAMES)


def tell(report):
    return "\n".join(map(str, report.findings))


def test_settings_stand_beside_each_other(compared):
    assert compared.table["system"].tolist() == ["plain"] * 8 + ["names"] * 8
    assert compared.table["recording"].tolist() == list(range(8)) * 2
    assert compared.summary["system"].tolist() == ["names", "plain"]
    assert compared.summary["ranking_rate"].tolist() == [0, 0.2]
    assert compared.tables["order"]["group"].tolist() == ["a", "b"]
    (pair,) = of_systems(compared).to_dict("records")
    assert pair["verdict"] == "differs with these few speakers"
    assert pair["p_holm"] == pytest.approx(2**-7)
    page = compared.to_html()
    heads = [head for head in re.findall(r"<th [^>]*>([^<]*)</th>", page) if head in {"plain", "names"}]
    assert heads == ["plain", "names"]  # the columns of values have the names of the systems
    assert "+20.0</strong>" in page  # as in the figure: the first named makes more errors
    wide = compared.side_by_side()
    assert wide["error_spread"].tolist() == [1] * 8
    assert wide["hypothesis_names"].tolist() == SAID
    assert compared.rows().frame["fewer_errors"].tolist() == ["names"] * 8


def test_what_changed_between_studies_of_several_systems(compared, ask, recordings):
    alone = ask(recordings, voice=None)
    with pytest.raises(InvalidRequestError, match="has the systems 'plain', 'names', the other one a single"):
        alone.compare(compared)
    same = alone.compare(compared.part("plain"))
    assert same.summary["n"].tolist() == [8]
    assert "system" not in same.table


def test_recordings_of_one_name_have_their_folders_beside_it(ask, recordings, tmp_path):
    paths = []
    for place, path in zip(("a/x", "b/x", "c"), recordings["audio"], strict=False):
        (tmp_path / place).mkdir(parents=True)
        paths.append(str(AudioClip.from_file(path).save(tmp_path / place / "1.wav")))
    frame = recordings.head(4).assign(audio=[*paths, recordings["audio"][3]], text="the same", speaker="A")
    how = {"heard": lambda said, options: said, "store": str(tmp_path / "store")}
    report, turned = (ask(rows, **how) for rows in (frame, frame[::-1]))
    assert report.table["file"].tolist() == ["a/x/1.wav", "b/x/1.wav", "c/1.wav", "talk-4.wav"]
    pairs = turned.compare(report).table
    assert pairs["hypothesis"].nunique() == 4
    assert pairs["hypothesis"].tolist() == pairs["hypothesis_earlier"].tolist()


def of_systems(report):
    """The differences of systems, without those of conditions and of hotwords."""
    rows = report.differences[report.differences["measure"] == "error rate"]
    return rows[~rows["a"].str.contains("as recorded")]


def test_systems_under_conditions_are_one_table(ask, recordings):
    report = ask(recordings, settings=NAMES, noise_db=[0])
    assert of_systems(report)["condition"].tolist() == ["as recorded", "noise 0 dB"]
    assert of_systems(report)[["p", "p_holm"]].to_numpy() == pytest.approx(np.array([[2**-7, 2**-6]] * 2))
    assert "en, noise 0 dB: names (0.0%) has the lowest" in tell(report)
    page = report.to_html()
    assert "en, as recorded: names (0.0%) has the lowest" in page
    assert "en, noise 0 dB: names" not in page
    named = report.tables["hotwords"].set_index(["condition", "system"])
    missed = report.differences.query("measure == 'hotwords missed' and condition == 'noise 0 dB'")
    assert (missed["b"].tolist(), missed["p_holm"].tolist()) == (["names"], [1])
    assert pd.isna(named.loc[("noise 0 dB", "plain"), "verdict"])
    shown = [one["name"] for one in report.rows().columns if one["shown"]]
    assert shown[:2] == ["condition", "file"]
    text, sources = report.methods()
    for part in ("P.56", "long-term spectrum", "loops if", "made up if", "lost its end if", "all conditions"):
        assert part in text, part
    assert ("bands" in text, any("P.56" in source for source in sources)) == (False, True)


def test_equal_files_and_sentences_count_once(ask, recordings, tmp_path):
    copied = tmp_path / "copy.wav"
    copied.write_bytes(Path(recordings["audio"][0]).read_bytes())
    audio, text = [*recordings["audio"][:7], str(copied)], [*recordings["text"][:6], *recordings["text"][:2]]
    for frame, needed, note in (
        (recordings.drop(columns="speaker").assign(audio=audio), [13], "1 row repeats a recording"),
        (recordings.assign(text=text), [17, 17], "2 rows repeat"),  # a line for each speaker
    ):
        report = ask(frame, lambda said, options: said)
        assert report.summary["interval_needs"].tolist() == needed
        assert report.notes[0].startswith(note)


def test_a_service_that_is_away_stops_no_other(ask, lab, recordings, tmp_path):
    how = {"store": tmp_path / "store", "give_up_after_s": 0.1, "speechless": 1}
    with Client(base_url="http://127.0.0.1:9", api_key="nobody-is-there-1", max_retries=0) as nobody:
        services = {"theirs": nobody, "ours": lab}
        with pytest.warns(UserWarning, match="4 of 8 rows failed"):
            report = ask(recordings.head(2), lab=services, settings=NAMES, **how)
        with pytest.raises(APIConnectionError):
            ask(recordings.head(2), lab={"theirs": nobody}, **how)
    done = report.table.groupby("system")["hypothesis"].count()
    assert done.to_dict() == {"ours, names": 2, "ours, plain": 2, "theirs, names": 0, "theirs, plain": 0}
    assert "theirs, plain could not be asked: GET http://127.0.0.1:9" in "\n".join(report.notes)
    assert set(report.tables["speechless"]["system"]) == {"ours, plain", "ours, names"}


def test_what_hotwords_help_and_what_they_cost(compared, ask, recordings):
    (plain, named) = compared.tables["hotwords"].sort_values("system", ascending=False).to_dict("records")
    assert (plain["hotwords_said"], plain["hotwords_hit"], plain["recall"]) == (2, 0, 0)
    assert (named["hotwords_said"], named["hotwords_hit"], named["recall"]) == (2, 2, 1)
    told = "recognized hotwords went from 0 to 2 of 2 spoken (p = 1.000), hotwords inserted"
    assert told in tell(compared)  # two of eight can be chance
    assert "No effect found." in tell(compared)

    def eager(said, options):
        return f"{said} Ada" if options.hotwords else misheard(said, options)

    names = [said.split()[0] for said in SAID]
    report = ask(recordings, eager, settings={"plain": {}, "all": {"hotwords": names}})
    found = report.tables["hotwords"].set_index("system").loc["all"]
    assert (found["recall"], found["hotwords_added"], found["rest_rate"]) == (1, 8, 0)
    assert str(report.findings[-1]).endswith(
        "Hotwords help; they cost more hotwords inserted wrongly. 8 recordings are too few to show much."
    )
    assert report.table["hotwords_added"].tolist() == [0] * 8 + [1] * 8


def test_hotwords_of_rows_of_two_languages(ask, recordings):
    said = "APIの会議室は東京タワーです。Ada is there."
    rows = recordings.head(2).assign(text=[said, "Ada is here"], language=["ja+en", "en"])
    rows = rows.astype({"language": "string", "text": "string"})  # as a manifest is read
    heard = lambda _, options: said if options.hotwords else "APIの会議室は東京です。Ada is there."  # noqa: E731
    report = ask(rows, heard, settings={"plain": {}, "names": {"hotwords": ["API", "東京タワー", "Ada"]}})
    found = report.tables["hotwords"].set_index(["language", "system"])
    counts = found[["hotwords_said", "hotwords_hit"]]
    assert counts.loc[("ja+en", "plain")].tolist() == [3, 2]
    assert counts.loc[("ja+en", "names")].tolist() == [3, 3]
    assert counts.loc[("en", "names")].tolist() == [1, 1]


def test_speed_is_measured_by_calls_in_turns_and_compared(ask, lab, recordings):
    rows = recordings.head(6).drop(columns="speaker")
    services = {"ours": lab, "theirs": lab.with_options()}
    first = ask(rows, lab=services, speed=6)
    assert first.speed["system"].tolist()[:4] == ["ours", "theirs", "theirs", "ours"]
    assert first.speed["turn"].tolist()[::2] == list(range(6))
    assert first.speed["error"].isna().all()
    lengths = {name: row / 10 for row, name in enumerate(rows["audio"].map(os.path.basename), 1)}
    assert first.speed["duration_s"].tolist() == pytest.approx(first.speed["file"].map(lengths).tolist())
    assert first.summary["timed_calls"].tolist() == [6, 6]
    assert (first.summary["total_s_low"] <= first.summary["total_s"]).all()
    assert len(first.part("ours").speed) == 6
    slow = replace(first, speed=first.speed.assign(total_s=2 * first.speed["total_s"]))
    changes = slow.compare(first)
    of_speed = changes.differences[changes.differences["unit"] == "ratio"]
    assert of_speed["group"].tolist() == [f"{one}, en" for one in services]
    assert of_speed["difference"].tolist() == pytest.approx([2, 2])
    assert of_speed["verdict"].tolist() == ["slower"] * 2
    assert (changes.slower, changes.worse) == (True, False)
    assert "time to the end × 2.00" in tell(changes)


def test_calls_that_are_timed_ask_what_the_batch_asks(staged, ask, recordings):
    rows = recordings.head(2).assign(names=["Ada", None])
    staged.ears.calls.clear()
    assert ask(rows, voice=None, speed=2, hotwords="names").speed["error"].isna().all()
    asked = [options.hotwords for _, options in staged.ears.calls]
    assert asked[-3:] == [("Ada",), ("Ada",), ()]
    assert set(asked) == {("Ada",), ()}


def hear_conditions(clips, store, **conditions):
    """The samples that a recognizer gets of each of some sounds, by condition."""
    rows = pd.DataFrame({"audio": [AudioClip(clip.astype(np.float32), 16_000) for clip in clips]})
    rows = rows.assign(text="a", language="en")
    with sl.system("ears", transcribe=lambda clip: "a", version="1") as ears:
        table = evaluate.recognition(ears, rows, store=store, progress=False, **conditions).table
    heard = [AudioClip.from_file(cell) if isinstance(cell, str) else cell for cell in table["audio"]]
    assert {clip.sample_rate for clip in heard} == {16_000}
    conditions = table["condition"].drop_duplicates()
    return {
        name: [heard[at].samples for at in np.flatnonzero(table["condition"] == name)] for name in conditions
    }


def level_db(samples):
    return 10 * np.log10(np.mean(np.square(samples)))


@pytest.mark.parametrize("noise", ["speech", AudioClip(np.sin(np.arange(8_000) / 4) / 10 + 0.01, 16_000)])
def test_noise_has_its_level_below_speech_without_pauses(noise, tmp_path):
    tone = 0.1 * np.sin(np.arange(64_000) / 4)
    sounds = [tone, np.concatenate([tone, np.zeros(64_000)])]
    how = {"noise_db": [20, 0], "noise": noise}
    made = hear_conditions(sounds, tmp_path, **how)
    assert list(made) == ["as recorded", "noise 20 dB", "noise 0 dB"]
    for snr in (20, 0):
        for sound, heard, off in zip(sounds, made[f"noise {snr} dB"], (0.2, 0.6), strict=True):
            assert level_db(tone) - level_db(heard - sound) == pytest.approx(snr, abs=off)
    if noise == "speech":
        again, other = (hear_conditions(sounds, tmp_path, **how, **seed) for seed in ({}, {"seed": 2}))
        same = [np.array_equal(made["noise 0 dB"][0], one["noise 0 dB"][0]) for one in (again, other)]
        assert same == [True, False]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_is_no_sound_stays_so_in_noise(tmp_path):
    silent = AudioClip(np.zeros(100, np.float32), 16_000).save(tmp_path / "silent.wav")
    rows = pd.DataFrame({"audio": ["gone.wav", str(silent)], "text": "a", "language": "en"})
    with sl.system("ears", transcribe=lambda clip: "a", version="1") as ears:
        report = evaluate.recognition(ears, rows, noise_db=[0], store=tmp_path, progress=False)
    assert report.table["audio"].tolist()[::2] == ["gone.wav"] * 2
    assert report.table["hypothesis"].notna().tolist() == [False, True] * 2
    assert AudioClip.from_file(report.table["audio"][3]).samples.any()


def test_a_band_leaves_what_is_inside(tmp_path):
    low, high = (0.2 * np.sin(2 * np.pi * hz * np.arange(16_000) / 16_000) for hz in (1_000, 5_000))
    made = hear_conditions([low + high], tmp_path, band_hz=[(300, 3_400)])
    assert np.allclose(made["300 to 3400 Hz"][0][2_000:-2_000], low[2_000:-2_000], atol=0.005)


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
    rows = pd.DataFrame(cases, columns=["language", "text", "heard", "made_up", "lost"])
    found = evaluate.recognition(None, rows, hypotheses="heard", progress=False).table
    assert found["hallucination"].tolist() == rows["made_up"].tolist()
    assert found["tail_lost"].tolist() == rows["lost"].tolist()
