"""The listening test in Python: questions, key, sounds, answers, and the page that it writes."""

import base64
import json
import math
import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from speechlab import evaluate
from speechlab.audio import AudioClip
from speechlab.errors import InvalidRequestError
from speechlab.listening import ListeningKey, load_page_words
from speechlab.metrics import loudness
from speechlab.widgets import ListeningTest

RATE = 24_000
HOSTILE = "</script><img src=x onerror='window.fired=1'> $5 and $6 \u202e"


def noise(level, seconds=0.6, seed=0, rate=RATE):
    samples = level * np.random.default_rng(seed).standard_normal(round(seconds * rate))
    return AudioClip(np.clip(samples, -1, 1).astype(np.float32), rate)


@pytest.fixture(scope="module")
def frame():
    rows = [
        (f"sentence {item}", system, noise(0.02 * (1 + which), seed=10 * item + which))
        for item in range(4)
        for which, system in enumerate(["secret one", "secret two", "original"])
    ]
    return pd.DataFrame(rows, columns=["item", "system", "audio"])


def shown_sounds(test):
    return [token for trial in test.trials for token in trial["sounds"]]


def kept(test, listener, answer):
    """Answer all questions as the browser would; ``answer(trial, key)`` gives scores or a choice."""
    test._answer_message(test, {"type": "begin", "listener": listener}, [])
    keys = {trial["id"]: trial for trial in test.key["trials"]}
    asked = [trial for trial in test.trials if not trial["practice"]]
    answers = [
        {"trial": trial["id"], "order": order, "sounds": trial["sounds"], "time_s": 1.5, "plays": {}}
        | answer(trial, keys[trial["id"]])
        for order, trial in enumerate(asked, 1)
    ]
    session = {**test.session, "answers": answers, "finished": "2026-01-01"}
    test._answer_message(test, {"type": "keep", "session": session}, [])


@pytest.fixture
def sent(monkeypatch):
    """What a test sends to the browser."""
    messages = []
    monkeypatch.setattr(
        ListeningTest, "send", lambda _self, content, buffers=None: messages.append((content, buffers))
    )
    return messages


# -- questions and key


def test_the_browser_knows_no_system_no_item_and_no_check(frame):
    for method, reference in (("mos", None), ("ab", None), ("abx", None), ("mushra", "original")):
        test = ListeningTest(frame, method, reference=reference, seed=987_654_321)
        shown = "trials title question instructions order_seed session"
        known = json.dumps([getattr(test, name) for name in shown.split()])
        assert not re.search("secret|original|sentence|check|clean", known)
        assert str(test.key["seed"]) not in known
        assert {frozenset(trial) for trial in test.trials} == {frozenset(test.trials[0])}
        assert "secret" not in test.static_html()


def test_each_system_of_each_item_is_asked_and_practice_is_not(frame):
    test = ListeningTest(frame, training=1, checks=2, seed=5)
    roles = pd.Series([trial["role"] for trial in test.key["trials"]]).value_counts().to_dict()
    assert roles == {"test": 9, "training": 3, "check": 2}
    items = {trial["item"] for trial in test.key["trials"] if trial["role"] == "training"}
    assert items == {"sentence 0"}
    assert [trial["practice"] for trial in test.trials] == [True] * 3 + [False] * 11
    pairs = ListeningTest(frame, "ab", pairs=[("secret one", "original")], training=["sentence 2"], checks=0)
    assert [sorted(trial["sounds"].values()) for trial in pairs.key["trials"]] == [
        ["original", "secret one"]
    ] * 4


def test_checks_are_of_systems_that_listeners_hear(frame, sent):
    long = frame["audio"].copy()
    long[frame["system"] == "secret two"] = noise(0.05, 0.9)
    pairs = [("secret one", "original")]
    test = ListeningTest(frame.assign(audio=long), "ab", pairs=pairs, training=0, checks=20, seed=5)
    for trial in test.key["trials"]:
        for token in trial["sounds"]:
            test._answer_message(test, {"type": "sound", "token": token}, [])
    assert {AudioClip.from_bytes(buffers[0]).duration_s for _, buffers in sent} == {0.6}


def test_a_seed_makes_the_same_test_again(frame):
    one = ListeningTest(frame, seed=5)
    assert one.key == ListeningTest(frame, seed=5).key
    others = (frame, "mos", 6), (frame[:9], "mos", 5), (frame, "mos", None)
    keys = [ListeningTest(rows, method, seed=seed).key["test"] for rows, method, seed in others]
    assert len({one.key["test"], *keys}) == 4


def test_order_and_places_say_nothing(frame):
    for seed in range(5):  # the volume is never set by a check
        test = ListeningTest(frame, training=0, checks=20, seed=seed)
        roles = {trial["id"]: trial["role"] for trial in test.key["trials"]}
        assert roles[test.trials[0]["id"]] == "test"
    test = ListeningTest(frame, "ab", pairs=[("secret one", "secret two")], training=0, checks=0, seed=1)
    keys = {trial["id"]: trial["sounds"] for trial in test.key["trials"]}
    first = [keys[trial["id"]][trial["sounds"][0]] for trial in test.trials]
    assert set(first) == {"secret one", "secret two"}


# -- sounds


def test_all_sounds_have_one_loudness_unless_it_is_switched_off(frame, sent):
    test = ListeningTest(frame, seed=2)
    assert test.level_lufs == pytest.approx(-23.0)
    assert test.instructions[-1] == "All sounds are played at the same loudness."
    for token in shown_sounds(test)[:4]:
        test._answer_message(test, {"type": "sound", "token": token, "ask": token}, [])
    found = [AudioClip.from_bytes(buffers[0]) for _, buffers in sent]
    checks = {token for trial in test.key["trials"] if trial["role"] == "check" for token in trial["sounds"]}
    heard = [clip for clip, (told, _) in zip(found, sent, strict=True) if told["ask"] not in checks]
    assert [loudness(clip) for clip in heard] == pytest.approx([-23] * len(heard), abs=0.1)
    assert all(bytes(buffers[0][:4]) == b"fLaC" for _, buffers in sent)
    off = ListeningTest(frame, equal_level=False)
    assert math.isnan(off.level_lufs)
    assert off.sounds["audio"].tolist() == frame["audio"].tolist()
    assert off.instructions[-1] == "Sounds are played as loud as they were recorded."


def test_one_loudness_is_one_that_none_clips_at(frame):
    click = np.zeros(RATE, np.float32)
    click[::4_000] = 0.9
    added = pd.DataFrame([{"item": "sentence 0", "system": "click", "audio": AudioClip(click, RATE)}])
    assert ListeningTest(pd.concat([frame, added])).level_lufs < -25


def test_equal_recordings_are_unequal_bytes(frame, sent):
    test = ListeningTest(frame, "mushra", reference="original", training=0, seed=1)
    (trial, *_), keys = test.trials, {one["id"]: one for one in test.key["trials"]}
    hidden = next(token for token, name in keys[trial["id"]]["sounds"].items() if name == "original")
    for token in (hidden, trial["reference"]):
        test._answer_message(test, {"type": "sound", "token": token}, [])
    one, other = (bytes(buffers[0]) for _, buffers in sent)
    assert one != other
    difference = AudioClip.from_bytes(one).samples - AudioClip.from_bytes(other).samples
    assert np.abs(difference).max() <= 4 / 2**15


def test_anchors_are_the_reference_below_their_frequency(frame, sent):
    test = ListeningTest(frame, "mushra", reference="original", training=0)
    sounds = {name: token for token, name in test.key["trials"][0]["sounds"].items()}
    assert set(sounds) == {"secret one", "secret two", "original", "anchor 3.5 kHz", "anchor 7 kHz"}
    for name in ("original", "anchor 3.5 kHz", "anchor 7 kHz"):
        test._answer_message(test, {"type": "sound", "token": sounds[name]}, [])
    spectra = [np.abs(np.fft.rfft(AudioClip.from_bytes(buffers[0]).samples)) ** 2 for _, buffers in sent]

    def level(anchor, low, high):
        """Decibels of a band against the reference, of white noise."""
        band = slice(*(round(hz * 2 * (len(spectra[0]) - 1) / RATE) for hz in (low, high)))
        return 10 * math.log10(spectra[anchor][band].sum() / spectra[0][band].sum())

    assert level(1, 300, 3_400) == pytest.approx(0, abs=0.05)
    assert level(1, 4_000, 4_400) < -25
    assert level(1, 4_500, 11_000) < -50
    assert level(2, 300, 6_900) == pytest.approx(0, abs=0.05)
    assert level(2, 8_000, 11_000) < -50
    narrow = frame.assign(audio=[noise(0.05, rate=8_000)] * len(frame))
    few = ListeningTest(narrow, "mushra", reference="original")
    assert "anchor" not in json.dumps(few.key["trials"])


# -- answers


def test_answers_are_a_tidy_frame_that_the_study_reads(frame, sent):
    test = ListeningTest(frame, "ab", pairs=[("secret one", "secret two")], seed=3)
    assert len(test.answers) == 0

    def prefers(trial, key):
        wanted = key["right"] or next(token for token, name in key["sounds"].items() if name == "secret two")
        return {"choice": wanted}

    for listener in ("ann", "bob", HOSTILE):
        kept(test, listener, prefers)
    answers = test.answers
    assert sorted(answers.columns) == sorted(evaluate.listening_answers(answers).columns)
    assert set(answers["listener"]) == {"ann", "bob", HOSTILE}
    counted = answers[answers["role"] == "test"]
    assert (set(counted["choice"]), set(counted["score"])) == ({"secret two"}, {-1.0})
    assert answers.loc[answers["role"] == "check", "attention"].tolist() == [True] * 6
    report = evaluate.listening(answers, draws=200)
    assert (report.summary["system"].tolist(), report.findings) == (["secret two", "secret one"], ())


def test_what_is_kept_is_never_lost_or_replaced(frame, sent):
    test = ListeningTest(frame, training=0, checks=0, seed=3)

    def rated(number, score):
        trial = test.trials[number]
        answer = {"trial": trial["id"], "order": number + 1, "sounds": trial["sounds"], "time_s": 1.0}
        return {**answer, "scores": {trial["sounds"][0]: score}}

    for answers in ([rated(0, 5), rated(1, 4)], [rated(0, 1), rated(2, 3)], []):
        session = {"listener": "ann", "answers": answers, "else": "x"}  # as an edited page would send it
        test._answer_message(test, {"type": "keep", "session": session, "ask": "v1"}, [])
    assert test.answers["score"].tolist() == [5, 4, 3]
    assert sent.pop()[0] == {"ask": "v1"}
    test._answer_message(test, {"type": "next"}, [])
    assert test.session == {}
    test._answer_message(test, {"type": "begin", "listener": " ann "}, [])  # who comes back goes on
    assert [len(one["answers"]) for one in (test.session, sent.pop()[0]["session"])] == [3, 3]
    sent.clear()
    for nonsense in [
        {"type": "keep", "session": {"listener": "x", "answers": [{"trial": "zz"}]}},
        {"type": "keep", "session": {"listener": "", "answers": []}},
        {"type": "keep", "session": 5},
        {"type": "sound", "token": "../../etc/passwd"},
        "x",
    ]:
        test._answer_message(test, nonsense, [])
        assert (sent, len(test.answers)) == ([], 3)


def test_a_recording_that_is_gone_does_not_name_its_system(frame, sent, tmp_path):
    noise(0.1).save(tmp_path / "secret.wav")
    rows = frame.assign(audio=[str(tmp_path / "secret.wav")] * len(frame))
    test = ListeningTest(rows)
    (tmp_path / "secret.wav").unlink()
    test._answer_message(test, {"type": "sound", "token": shown_sounds(test)[0]}, [])
    assert sent[0][0]["error"] == "The recording can no longer be read. Please tell the author of this test."


# -- the page


def test_the_page_names_no_system_and_its_key_stands_beside_it(frame, tmp_path):
    noise(0.1).save(tmp_path / "secret file.wav")
    rows = frame.assign(audio=[str(tmp_path / "secret file.wav")] * len(frame))
    test = ListeningTest(rows, "mushra", reference="original", seed=4, title=HOSTILE, question=HOSTILE)
    path = test.save(tmp_path / "test.html")
    page = path.read_text("utf-8")
    assert not re.search("secret|original|sentence|anchor 3", page)
    assert "<img src=x" not in page
    assert "default-src 'none'" in page
    key = json.loads((tmp_path / "test.key.json").read_text())
    assert key == test.key
    held = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert set(held["state"]) & {"key", "seed", "session"} == set()
    sounds = [base64.b64decode(one) for one in held["sounds"].values()]
    assert len(set(sounds)) == len(sounds) == 4 * 6
    assert list(held["sounds"]) == sorted(held["sounds"])


def test_a_key_is_never_replaced_by_that_of_another_test(frame, tmp_path):
    first = ListeningTest(frame, seed=4)
    first.save(tmp_path / "test.html")
    page = (tmp_path / "test.html").read_bytes()
    for other in (ListeningTest(frame), ListeningTest(frame, seed=4, question="Which is louder?")):
        with pytest.raises(InvalidRequestError, match=r"key of another test.*Give this page another name"):
            other.save(tmp_path / "test.html")
    assert json.loads((tmp_path / "test.key.json").read_text()) == first.key
    assert (tmp_path / "test.html").read_bytes() == page
    ListeningTest(frame, seed=4).save(tmp_path / "test.html")
    louder = frame.assign(audio=[noise(0.04, seed=row) for row in range(len(frame))])
    with pytest.raises(InvalidRequestError, match="key of another test"):
        ListeningTest(louder, seed=4).save(tmp_path / "test.html")


def test_save_refuses_a_page_that_is_too_large(frame, tmp_path, monkeypatch):
    monkeypatch.setattr("speechlab.widgets._listening.files._MAX_PAGE_BYTES", 100_000)
    test = ListeningTest(frame, "ab", training=0)
    with pytest.raises(InvalidRequestError, match=r"\d+ sounds take about 1 MB.*fewer items"):
        test.save(tmp_path / "test.html")
    assert list(tmp_path.iterdir()) == []


def test_questions_are_counted_before_sounds_are_read(tmp_path):
    names = [(f"s{item}", f"v{system}") for item in range(10) for system in range(30)]
    rows = pd.DataFrame(names, columns=["item", "system"]).assign(audio=str(tmp_path / "no.wav"))
    with pytest.raises(InvalidRequestError, match=r"3,915 questions and 435 for practice.*some pairs="):
        ListeningTest(rows, "ab")


def test_names_may_be_numbers(frame):
    numbers = frame[:3].assign(item=1, system=[1, 2, 3])
    test = ListeningTest(numbers, "mushra", reference=3, training=0)
    assert test.key["reference"] == "3"
    pairs = ListeningTest(numbers, "ab", pairs=[(1, 2)], training=0, checks=0)
    assert len(pairs.trials) == 1


# -- crowds


def crowd(**options):
    """A test of ten items of two systems, of which a listener gets three."""
    clip = noise(0.1, 0.5)
    rows = [(f"s{item}", system, clip) for item in range(11) for system in ("one", "two")]
    frame = pd.DataFrame(rows, columns=["item", "system", "audio"])
    return ListeningTest(frame, "ab", seed=4, items_per_listener=3, **options)


def test_parts_of_listeners_ask_all_items_equally_often():
    test = crowd()
    key = ListeningKey.model_validate(test.key)
    asked = Counter()
    for part in range(10):
        mine = [trial.item for trial in key.select_trials(part) if trial.role == "test"]
        assert len(mine) == 3
        asked.update(mine)
        assert max(asked.values()) - min(asked[item] for item in {f"s{n}" for n in range(1, 11)}) <= 1
        assert sum(trial.role == "check" for trial in key.select_trials(part)) == 2
    assert set(asked.values()) == {3}
    for name in ("ann", "bob"):
        test._answer_message(test, {"type": "begin", "listener": name}, [])
    assert [one.part for one in test._sessions.values()] == [0, 1]


def test_each_listener_gets_a_small_page_with_the_own_part(tmp_path):
    test = crowd(page_language="ja")
    pages = test.save_each(tmp_path, ["ann", "bob"])
    whole = test.save(tmp_path / "whole.html").stat().st_size
    assert [page.name for page in pages] == ["test-ann.html", "test-bob.html"]
    assert all(page.stat().st_size < 0.7 * whole for page in pages)
    assert '<html lang="ja">' in pages[0].read_text("utf-8")
    assert "二つの音声" in pages[0].read_text("utf-8")
    with pytest.raises(InvalidRequestError, match="differ in their letters"):
        test.save_each(tmp_path, ["a b", "a-b"])


def test_the_words_of_a_page_are_the_same_in_all_languages():
    english, *others = (load_page_words(language) for language in ("en", "ja", "zh"))
    for words in others:
        assert (list(words), words["methods"].keys()) == (list(english), english["methods"].keys())
        for name, text in english.items():
            if isinstance(text, str):
                assert re.findall(r"\{\w+\}", text) == re.findall(r"\{\w+\}", words[name])
