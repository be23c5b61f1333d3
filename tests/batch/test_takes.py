"""Lines that are checked and taken again: voices that lose, repeat, cut and drift, a recognizer that slips."""

import numpy as np
import pandas as pd
import pytest

from speechlab import batch
from speechlab.audio import AudioClip
from speechlab.client import system
from speechlab.errors import InvalidRequestError
from speechlab.text import Lexicon

pytestmark = pytest.mark.slow
RATE = 16_000
TEXTS = [
    "silver coat", "paper window, market", "garden summer", "orange table", "winter letter", "yellow basket",
    "kitchen corner", "mountain station", "pencil doctor", "simple hammer", "village ladder", "morning pocket",
]  # fmt: skip


class Stage:
    """Voices whose first take of some texts has a fault, and a recognizer that knows what was said in each sound."""

    def __init__(self, faults, *, always=False, misheard=(), slips=()):
        self.faults, self.always, self.misheard, self.slips = faults, always, misheard, set(slips)
        self.said, self.calls, self.heard = [], [], 0
        self.lab = system(
            "stage", synthesize=self.speak, voices={"ada": "English", "bob": "English"}, version="1"
        )
        self.ear = system("ear", transcribe=self.recognize, version="1")

    def speak(self, text, voice):
        self.calls.append((text, voice))
        again = [one for one, _ in self.calls].count(text) > 1
        fault = None if (again and not self.always) or voice == "bob" else self.faults.get(text)
        words = text.replace(",", "").split()
        words = {"lose": words[:-1], "repeat": [*words, *words], "silent": []}.get(fault, words)
        pitch = {"ada": 200, "bob": 120}[voice] * (1.5 if fault == "drift" else 1)
        sound = np.concatenate([tone(word, pitch) for word in words or ["x"]]) * (8 if fault == "clip" else 1)
        sound = np.clip(sound, -1, 1) * (0 if fault == "silent" else 1)
        sound = sound[: -RATE // 8] if fault == "cut" else np.append(sound, np.zeros(800))
        self.said.append(words)
        mark = np.array([1, *(1 if bit == "1" else -1 for bit in f"{len(self.said):012b}")]) * 4 / 32_767
        return AudioClip(np.concatenate([mark, np.zeros(800), sound]), RATE)

    def recognize(self, clip):
        self.heard += 1
        steps = np.rint(clip.samples * 32_767).astype(int)
        bits = steps[np.flatnonzero(steps)[0] + 1 :][:12]
        words = list(self.said[int("".join("1" if bit > 0 else "0" for bit in bits), 2) - 1])
        if " ".join(words) in self.slips:
            self.slips.discard(" ".join(words))
            words[0] = "cotton"
        return " ".join("garbage" if word in self.misheard else word for word in words)

    def make(self, store, texts=TEXTS, **options):
        frame = pd.DataFrame({"text": texts, "voice": "ada", "language": "en"})
        return batch.synthesize(frame, self.lab, check=self.ear, store=store, progress=False, **options)


def tone(word, pitch):
    """A sound of its own for each letter."""
    times = np.arange(RATE // 16) / RATE
    letters = []
    for letter in word:
        levels = np.random.default_rng(ord(letter)).uniform(0, 1, 12) ** 3
        wave = sum(level * np.sin(2 * np.pi * pitch * (at + 1) * times) for at, level in enumerate(levels))
        letters.append(0.2 * wave / np.abs(wave).max())
    sound = np.concatenate(letters)
    return sound * np.minimum(1, np.minimum(np.arange(len(sound)), len(sound) - np.arange(len(sound))) / 500)


def test_each_fault_is_taken_again_and_nothing_is_paid_twice(store):
    kinds = ("lose", "repeat", "cut", "clip", "silent", "drift")
    stage = Stage(dict(zip(TEXTS, kinds, strict=False)), slips={"village ladder"})
    made = stage.make(store)
    assert made["check"].tolist() == ["ready"] * 12
    assert made["take"].tolist() == [1] * 6 + [0] * 6
    assert made["takes"].tolist() == [2] * 6 + [1] * 6
    why = made["why"].tolist()
    assert why[0].endswith("lost “coat”")
    assert "repeated “paper window market”" in why[1]
    parts = ("cut off", "clipped", "silent", "+7 semitones from the pitch of this voice")
    assert all(part in text for part, text in zip(parts, why[2:6], strict=True))
    assert pd.isna(made["why"][6:]).all()
    assert made["attempts"].tolist() == [2] * 6 + [1] * 6
    run = batch.load(made, store)
    pd.testing.assert_frame_equal(run.table(), made)
    assert run.verify()
    assert (run.status, run.manifest["usage"]["calls"], run.manifest["statuses"]) == (
        "finished",
        18,
        {"ok": 12},
    )
    calls, heard = len(stage.calls), stage.heard
    again = stage.make(store)
    assert (len(stage.calls), stage.heard) == (calls, heard) == (18, 18 + 2)
    columns = ["audio", "key", "take", "check", "why", "transcript"]
    pd.testing.assert_frame_equal(again[columns], made[columns])


def test_another_language_is_found_by_a_free_recognizer(store):
    stage = Stage({TEXTS[0]: "lose"}, misheard=set(TEXTS[1].replace(",", "").split()))

    def identify(clip, language=None):
        text = stage.recognize(clip)
        return {"text": text, "language": language or ("ja" if "garbage" in text else "en")}

    stage.ear = system("identifying", transcribe=identify, version="1")
    made = stage.make(store, TEXTS[:6], takes=2)
    assert made["check"].tolist() == ["ready", "faulty", *["ready"] * 4]
    assert made["why"][1].startswith("it is recognized as Japanese; ")
    assert made["transcript"][1] == "garbage garbage garbage"
    # six lines, two again with silence around them, one of them without a language; then a take of each of the two
    assert stage.heard == 6 + 2 + 2 + 1
    stage.ear = system("mute", transcribe=stage.recognize, version="1")  # which names no language
    assert stage.make(store, TEXTS[1:2], takes=2)["why"][0].startswith(
        "could not be judged: “garbage garbage"
    )


def test_a_word_that_a_lexicon_respells_is_right_in_either_form(store):
    texts = ["Siobhan silver coat", "Siobhan paper window"]
    stage = Stage({})
    lexicon = Lexicon([("en", "Siobhan", "shivawn")])
    made = stage.make(store, texts, respell=lexicon, takes=2)
    assert made["check"].tolist() == ["ready"] * 2
    assert made["transcript"].tolist() == ["shivawn silver coat", "shivawn paper window"]
    assert made["text"].tolist() == texts
    stage.misheard = {"shivawn"}
    made = stage.make(store, ["Siobhan orange table"], respell=lexicon)
    why = "could not be judged: “garbage” for “Siobhan”; a word of the lexicon is written in neither form"
    assert made[["check", "why", "takes"]].values.tolist() == [["unclear", why, 1]]


def test_entries_of_unknown_voices_are_named_once(store):
    stage = Stage({})
    lexicon = Lexicon([("en", "coat", "cote", "adda"), ("en", "paper", "papr", "ADA")])
    with pytest.warns(UserWarning, match="change nothing: 'adda'; did you mean 'ada'") as seen:
        stage.make(store, TEXTS[:1], respell=lexicon)
    assert len(seen) == 1


def test_what_is_misheard_in_every_take_is_set_apart(store):
    stage = Stage({TEXTS[0]: "lose", TEXTS[1]: "clip"}, always=True, misheard={"table"})
    made = stage.make(store, TEXTS[:6], takes=4)
    assert made["check"].tolist() == ["unclear", "faulty", "ready", "unclear", "ready", "ready"]
    assert made["why"][3] == "could not be judged: “garbage” for “table”, in each of 2 takes"
    assert made["takes"].tolist() == [2, 4, 1, 2, 1, 1]
    assert "clipped" in made["why"][1]
    other = stage.make(store, TEXTS[:6], takes=4, fallback_voice="bob")
    assert other["check"].tolist() == ["ready", "ready", "ready", "unclear", "ready", "ready"]
    assert other["why"][0].endswith("lost “coat”; spoken by the fallback voice")


def test_a_voice_that_reads_one_way_gets_another_cut(store):
    stage = Stage({TEXTS[1]: "lose", TEXTS[2]: "lose"}, always=True)
    stage.lab = system("constant", synthesize=speak_alike(stage), voices={"ada": "English"}, version="1")
    made = stage.make(store, TEXTS[:6], takes=5)
    assert made["check"].tolist() == ["ready"] * 6
    assert {"paper window. market", "garden summer."} <= {text for text, _ in stage.calls}
    assert made["text"].tolist() == TEXTS[:6]
    stage = Stage({TEXTS[0]: "lose"}, always=True)
    voices = {"ada": "English", "bob": "English"}
    stage.lab = system("two", synthesize=speak_alike(stage), voices=voices, version="1")
    made = stage.make(store, TEXTS[:2], takes=3, fallback_voice="bob")
    assert made["check"].tolist() == ["ready", "ready"]
    assert made["why"][0].endswith("spoken by the fallback voice")
    assert batch.runs(store)["rows"].min() > 0  # to look for the voice is no run


def speak_alike(stage):
    """A function of voices that read a text in one way only."""
    sounds = {}
    return lambda text, voice: sounds.setdefault((text, voice), stage.speak(text, voice))


def test_a_budget_stops_the_takes_and_failed_rows_stay_errors(store):
    stage = Stage(dict.fromkeys(TEXTS[:3], "lose"))
    with pytest.warns(UserWarning, match="the budget is used up") as warned:
        made = stage.make(store, [*TEXTS[:6], None], budget=batch.Budget(calls=7))
    assert made["check"].tolist()[:-1] == ["ready", "faulty", "faulty", *["ready"] * 3]
    assert len(warned) == 2
    assert "not taken again: the budget" in made["why"][1]
    assert made["status"].tolist()[-1] == "error"
    assert stage.make(store, TEXTS[:6])["check"].tolist() == ["ready"] * 6


def test_a_recognizer_that_fails_is_a_warning(store):
    stage = Stage({})
    hear = stage.ear
    for language, advice in (("English", "give 'en'"), ("xx", "ISO 639-1"), (3, "ISO 639-1")):
        frame = pd.DataFrame({"text": TEXTS[:2], "voice": "ada", "language": ["en-GB", language]})
        with pytest.raises(InvalidRequestError, match=rf"row 2: column 'language' holds .* {advice}"):
            batch.synthesize(frame, stage.lab, check=hear, store=store, progress=False)
    assert not stage.calls

    def fail(clip):
        raise RuntimeError("no memory")

    stage.ear = system("broken", transcribe=fail, version="1")
    with pytest.warns(UserWarning, match="the recognizer failed for 2 of 2 lines: .*no memory"):
        assert stage.make(store, TEXTS[:2])["check"].tolist() == ["unclear"] * 2


def test_a_language_is_that_of_the_voice_where_nobody_says_it(store):
    stage = Stage({TEXTS[0]: "lose"})
    frame = pd.DataFrame({"text": TEXTS[:3], "voice": "ada"})
    made = batch.synthesize(frame, stage.lab, check=stage.ear, store=store, progress=False)
    assert made["check"].tolist() == ["ready"] * 3
    stage.lab = system("two", synthesize=stage.speak, voices={"ada": "English, Japanese"}, version="1")
    made = batch.synthesize(frame, stage.lab, check=stage.ear, store=store, progress=False)
    assert made["check"].tolist() == ["unclear"] * 3
    assert made["why"][0].startswith("could not be judged: its language is not known")
