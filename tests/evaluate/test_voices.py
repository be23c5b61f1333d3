"""The study of voices, on engines whose faults are known: order, attribution, takes, speed, and what goes wrong."""

import sys
import time
from typing import Any

import numpy as np
import pandas as pd
import pytest

from speechlab import evaluate
from speechlab.client import Client
from speechlab.engines import EngineVoice
from speechlab.errors import EngineError, InvalidRequestError, MissingDependencyError
from speechlab.service import Provider, ServedEngine, run_service
from speechlab.store import Store
from support.clients import KEY
from support.samples import SAID
from support.staged import StagedRecognizer, StagedVoice, staged_config

pytestmark = pytest.mark.slow

NAMES = ("clear", "even", "swallows", "varies", "broken")
OTHER = ("plain", "steady")
"""Voices of another engine."""
FRAME = pd.DataFrame({"text": SAID, "language": "en"})


class Speakers(StagedVoice):
    """Speaks a tone whose length tells who speaks what, and how often it was asked."""

    def __init__(self, names: tuple[str, ...], first: int) -> None:
        voices = tuple(EngineVoice(name, ("en",), "Female", f"A voice called {name}") for name in names)
        super().__init__(voices=voices)
        self.names, self.first = names, first
        self.slower_s = 0.0
        """By how much each call takes longer than the one before."""

    def synthesize(self, text: str, voice: str, *, temperature: float | None = None) -> Any:
        before = sum(1 for call in self.calls if call["voice"] == voice and call["text"] == text)
        self.calls.append({"text": text, "voice": voice, "temperature": temperature})
        time.sleep(self.slower_s * len(self.calls))
        take = before % 4 if voice == "varies" else 0
        if voice == "broken":
            raise EngineError("this voice is damaged")
        length_s = (
            0.5 + 0.2 * (self.first + self.names.index(voice)) + 0.016 * SAID.index(text) + 0.004 * take
        )
        times = np.arange(round(length_s * self.sample_rate)) / self.sample_rate
        return iter([(0.3 * np.sin(2 * np.pi * 220 * times)).astype(np.float32)])


def hears(duration_s: float) -> str:
    """Drops a word whatever the voice, and hears what voices and engines do."""
    who, rest = divmod(round((duration_s - 0.5) / 0.004), 50)
    place, take = divmod(rest, 4)
    name, text = (*NAMES, *OTHER)[who], SAID[place]
    if name in NAMES and place == 3:
        text = text.replace("letter", "ladder")
    if name == "swallows":
        text = text.rsplit(" ", 1)[0]
    if name == "varies" and take % 2:
        text = text.replace("the", "a")
    return text.replace("really ", "")


@pytest.fixture(scope="module")
def served():
    """The first engine, and a client of the service that has both and the ears."""
    one, other = Speakers(NAMES, 0), Speakers(OTHER, len(NAMES))
    config = staged_config(
        ServedEngine("one", "synthesizer", lambda: one, Provider("one", heavy=False)),
        ServedEngine("other", "synthesizer", lambda: other, Provider("other", heavy=False)),
        ServedEngine("ears", "recognizer", lambda: StagedRecognizer(hears=hears), heavy=False),
    )
    with run_service(config) as service, Client(base_url=service.base_url, api_key=KEY) as client:
        yield one, client


@pytest.fixture(scope="module")
def lab(served):
    return served[1]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with Store(tmp_path_factory.mktemp("voices")) as opened:
        yield opened


def study(lab, store, frame=FRAME, voices=("clear", "even", "swallows", "plain", "steady"), **options):
    given = {"store": store, "progress": False, "speed": 0, "dnsmos": 0, **options}
    return evaluate.voices(lab, frame, list(voices), **given)


@pytest.fixture(scope="module")
def report(lab, store):
    return study(lab, store, speed=2)


def test_which_voice_to_take_and_why(report):
    summary = report.summary.set_index("voice_name")
    assert list(summary.index)[:2] == ["other: plain", "other: steady"]
    assert list(summary.index)[-1] == "one: swallows"
    assert summary["group"].tolist() == ["a", "a", "a", "a", "b"]
    choice = report.tables["choice"].iloc[0]
    assert choice["voice_name"] in {"other: plain", "other: steady"}
    assert choice["certainty"] == "open"
    told = "English: other: plain (1.2%) has the lowest word error rate of 5 on 10 utt"
    assert choice["order"].startswith(told)
    assert "one: swallows (13.4%) has a significantly higher one" in choice["order"]
    assert report.conclusion.text.startswith("Take “other: ")
    assert report.conclusion.text.endswith(" may be as good, “one: swallows” is worse.")
    assert "; significantly worse: “one: swallows” (13.4%)" in report.conclusion.certainty
    assert "how pleasant they are, listeners must say." in report.views[0].note


def test_a_lead_of_few_sentences_promises_nothing(lab, store):
    found = study(lab, store, FRAME.head(5), voices=["clear", "plain"])
    (choice,) = found.tables["choice"].to_dict("records")
    assert (choice["voice_name"], choice["certainty"]) == ("other: plain", "open")
    assert choice["more_sentences"] == 15
    assert choice["advice"] == "5 sentences cannot tell “other: plain” from “one: clear”; take 20 or more"


def stands_out(report):
    return [str(finding) for finding in report.findings if finding.shown == "page"]


def test_errors_are_attributed(report):
    found = report.summary.set_index("voice_name")
    words = sum(len(text.split()) for text in SAID)
    assert found["shared_rate"].to_numpy(dtype=float) == pytest.approx(1 / words)
    assert found.loc["one: clear", "engine_rate"] > 0
    assert found.loc["one: clear", "own_rate"] == found.loc["other: plain", "engine_rate"] == 0
    # Where it swallows a word that its engine mispronounces, nobody can tell.
    assert found.loc["one: swallows", "endings_lost"] == 9
    told = stands_out(report)
    assert told[0] == "one: swallows loses the end of 9 of 10 utterances, and other voices do not."
    assert any(text.startswith("All or most voices of one err at 'letter'") for text in told)
    assert any(text.startswith("Whatever the voice, 'really'") for text in told)


def test_voices_of_several_services_one_of_which_is_away(lab, store):
    """Two services share the ids of their voices; a third one is not there."""
    with Client(base_url="http://127.0.0.1:9", api_key="nobody-is-there-1", max_retries=0) as nobody:
        services = {"away": nobody, "ours": lab, "theirs": lab.with_options()}
        chosen = {"away": "x", "ours": ["clear", "plain"], "theirs": ["clear", "swallows"]}
        told = {"store": store, "progress": False, "speed": 1, "dnsmos": 0}
        with pytest.warns(UserWarning, match="10 of 50 rows failed"):
            found = evaluate.voices(services, FRAME, chosen, **told)
    keys = ["system", "voice_name"]
    assert sorted(map(tuple, found.summary[keys].to_numpy().tolist())) == [
        ("ours", "one: clear"),
        ("ours", "other: plain"),
        ("theirs", "one: clear"),
        ("theirs", "one: swallows"),
    ]
    rows = found.summary.set_index(keys)
    assert rows["error_rate"].loc["ours", "one: clear"] == rows["error_rate"].loc["theirs", "one: clear"]
    assert rows["timed_calls"].tolist() == [1] * 4
    (choice,) = found.tables["choice"].to_dict("records")
    assert (choice["system"], choice["voice_name"]) == ("ours", "other: plain")
    assert "one: swallows of theirs" in choice["order"]
    assert "one: swallows of theirs loses the end of" in stands_out(found)[0]
    assert any(note.startswith("away could not be asked: ") for note in found.notes)
    assert "ours heard all voices in place of away." in found.notes
    with pytest.raises(InvalidRequestError, match="the systems of this report spoke"):
        found.suspects()
    lost = found.failures()
    assert lost["system"].tolist() == ["away"] * 10
    assert lost["error"].str.startswith("away could not be asked: ").all()


def test_how_voices_sound_and_how_fast_they_are(report):
    row = report.summary.set_index("voice_name").loc["one: clear"]
    assert row["loudness_lufs"] == pytest.approx(-14, abs=1.5)
    assert row["words_per_s"] > 5
    assert row["leading_silence_s"] == row["longest_pause_s"] == 0
    assert row["timed_calls"] == 2
    assert row["first_audible_s_low"] <= row["first_audible_s"] <= row["first_audible_s_high"]
    assert report.speed["turn"].tolist() == [0] * 5 + [1] * 5
    assert report.speed["voice"].tolist()[5:] == [*report.speed["voice"][1:5], report.speed["voice"][0]]
    assert report.facts["speed"] == "10 calls, one at a time, voices in turns"
    assert "dnsmos_overall" not in report.summary


def test_ratings_that_cannot_be_had_are_refused_first(lab, store, monkeypatch):
    monkeypatch.setitem(sys.modules, "speechmos", None)
    with pytest.raises(MissingDependencyError, match=r"^dnsmos=1 needs speechmos; .*\[quality\]"):
        study(lab, store, FRAME.assign(text="never said"), dnsmos=1)


def test_a_measure_of_the_user_is_asked_once_for_each_clip(lab, store):
    """Such as a network that predicts ratings, which no package installs."""
    asked = []

    def loud(samples, rate):
        asked.append((samples.dtype, samples.ndim, rate))
        if len(asked) == 1:
            raise ValueError("not yet")
        return float(abs(samples).max())

    options = {"frame": FRAME.head(2), "voices": ["clear", "even"], "measures": {"loud": loud}}
    report = study(lab, store, **options)
    assert len(asked) == 4
    assert {one[:2] for one in asked} == {(np.dtype("float32"), 1)}
    assert report.table["rated_loud"].notna().sum() == 3
    assert report.table["measure_error"].dropna().tolist() == ["rated_loud: ValueError: not yet"]
    medians = report.table.groupby("voice_name")["rated_loud"].median()
    assert report.summary.set_index("voice_name")["rated_loud"].to_dict() == pytest.approx(medians.to_dict())
    again = study(lab, store, **options)
    assert len(asked) == 5  # the one that failed
    assert again.table["rated_loud"].notna().all()


def test_speeds_of_one_engine_agree_in_any_order(served, store):
    """An engine gets slower from call to call, as a machine that grows hot; its voices are equally fast."""
    engine, lab = served
    engine.calls.clear()
    engine.slower_s = 0.01
    try:
        found = study(lab, store, FRAME.head(4), ("swallows", "even", "clear"), speed=4)
    finally:
        engine.slower_s = 0.0
    summary = found.summary
    assert summary["timed_calls"].tolist() == [4] * 3
    assert summary["first_audible_s_low"].max() < summary["first_audible_s_high"].min()
    assert "sooner" not in found.answer
    assert "later" not in found.answer


def test_a_study_of_voices_is_saved_and_read(report, tmp_path):
    again = evaluate.Report.load(report.save(tmp_path / "out"))
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    for words in ("Notable findings", "text or recognizer", "more sentences", "one at a time", "Piepho"):
        assert words.replace(" ", "\N{NO-BREAK SPACE}") in page or words in page, words
    assert repr(again) == repr(report)
    assert again.findings == report.findings


def test_takes_tell_how_voices_vary(lab, store):
    found = study(lab, store, FRAME.head(4), ["varies", "clear"], takes=4)
    assert found.table["take"].value_counts().to_dict() == dict.fromkeys(range(4), 8)
    spread = found.summary.set_index("voice_name")["take_sd"]
    assert spread["one: varies"] > 0.05
    assert spread["one: clear"] == 0
    assert found.tables["variance"]["share_take"].iloc[0] > 0.1
    # Takes of a sentence are no new sentences.
    assert found.summary["interval_needs"].tolist() == [16] * 2
    assert found.differences["blocks"].tolist() == [4]


def test_engines_may_be_named_and_wrong_ones_cost_nothing(served, store):
    engine, lab = served
    engine.calls.clear()
    with pytest.raises(InvalidRequestError, match="nobody"):
        study(lab, store, FRAME.head(1), engines={"nobody": "x"}, takes=9)
    assert not engine.calls
    named = dict.fromkeys((voice.id for voice in lab.voices()), "same")
    found = study(lab, store, FRAME.head(2), ["clear", "plain"], engines=named)
    assert found.table["engine"].unique().tolist() == ["same"]


def test_one_voice_one_sentence(lab, store):
    alone = study(lab, store, FRAME.head(2), voices=["clear", "clear"])  # named twice, it is one
    assert alone.answer.startswith("Nothing can be advised.")
    assert alone.answer.endswith("give two or more.")
    short = study(lab, store, FRAME.iloc[[3, 3]])
    assert short.answer.startswith("Nothing can be advised. 1 sentence cannot tell ")
    assert short.notes == ("1 row repeats a sentence of the table; each sentence counts once.",)
    assert len(short.table) == 5


def test_voices_that_fail(lab, store):
    with pytest.warns(UserWarning, match="10 of 30 rows failed"):
        found = study(lab, store, voices=["clear", "swallows", "broken"])
    assert found.answer == (
        "Take “one: clear”. It makes significantly fewer errors than “one: swallows” on 10 sentences "
        "(“one: clear” 2.4%, “one: swallows” 13.4%, p = 0.004)."
    )
    assert found.notes == ("one: broken (en) failed on all sentences, and has no place in the order.",)
    assert found.headline()["sentences"].tolist() == ["10", "10", "0 of 10"]
    with pytest.warns(UserWarning, match="rows failed"):
        nothing = study(lab, store, voices=["broken"])
    assert nothing.answer.startswith("Nothing can be advised. All 10 rows failed; mostly: ")


def test_a_round_trip_whose_speed_cannot_be_measured_says_so(lab, store):
    rows, how = FRAME.head(2), {"store": store, "progress": False}
    evaluate.round_trip(lab, rows, ["clear"], **how)
    replaying = lab.with_options(mode="replay", store=store)
    report = evaluate.round_trip(replaying, rows, ["clear"], speed=1, **how)
    assert report.notes[0].startswith("Speed was not measured: ")
    assert report.table["hypothesis"].notna().all()
