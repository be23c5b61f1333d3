"""Words in time: known edges, the division of texts, and what cannot be aligned."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

import speechlab as sl
from speechlab.engines._recognition.word_times import divide_text, find_words, move_to_pauses
from speechlab.errors import EngineError, InvalidRequestError

WORDS = ["many", "students", "walk", "to", "school", "along", "the", "river"]
RATE = 16_000


def trim(sound):
    loud = np.flatnonzero(np.abs(sound) > 0.01 * np.abs(sound).max())
    return sound[loud[0] : loud[-1] + 1]


@pytest.fixture(scope="module")
def joined(hibari, say):
    """A sentence of single words, a pause in its middle, and their starts and ends in seconds."""
    silence = np.zeros(RATE // 2, dtype=np.float32)
    parts, times, at = [silence], [], len(silence)
    for number, word in enumerate(WORDS):
        if number == 5:
            parts.append(silence)
            at += len(silence)
        parts.append(trim(say(hibari, word, "heart")))
        times.append((at / RATE, (at + len(parts[-1])) / RATE))
        at += len(parts[-1])
    return sl.AudioClip(np.concatenate([*parts, silence]), RATE), np.array(times)


@pytest.mark.engines
def test_edges_are_where_the_words_were_joined(joined, whisper):
    clip, times = joined
    table = sl.align(clip, " ".join(WORDS), language="en", recognizer=whisper)
    assert table.columns.tolist() == ["word", "start", "end", "confidence"]
    assert table["word"].tolist() == WORDS
    found = table[["start", "end"]].to_numpy()
    errors = np.abs(found - times)
    assert np.median(errors) <= 0.04
    assert (errors <= 0.1).mean() >= 0.9
    assert np.abs(found[4, 1] - times[4, 1]) < 0.05 > np.abs(found[5, 0] - times[5, 0])  # around the pause
    assert (np.diff(found.ravel()) >= 0).all()
    assert table["confidence"].mean() > 0.4
    signs = sl.align(clip, " ".join(WORDS), language="en", unit="char", recognizer=whisper)
    assert (signs["end"] >= signs["start"]).all()
    lengths = signs["end"] - signs["start"]
    assert lengths.iloc[[0, 1, 2, -3, -2, -1]].min() > 0.02  # of the first and last word
    firsts = np.cumsum([0, *map(len, WORDS[:-1])])
    assert np.abs(signs["start"].to_numpy()[firsts] - found[:, 0]).max() < 0.05


@pytest.mark.engines
def test_speech_without_silence_around_it_is_aligned(openjtalk, say, whisper):
    text = "写真を撮らないでください。"
    sound = say(openjtalk, text, "mei")  # with 0.04 s before and after
    table = sl.align(sl.AudioClip(sound, RATE), text, language="ja", recognizer=whisper)
    assert (table["end"] - table["start"]).min() > 0.04
    assert table["confidence"].mean() > 0.6
    padded = sl.AudioClip(np.pad(sound, RATE // 2), RATE)
    around = sl.align(padded, text, language="ja", recognizer=whisper)
    differences = table[["start", "end"]] + 0.5 - around[["start", "end"]]
    assert differences.abs().max().max() < 0.05


@pytest.mark.engines
def test_one_of_several_that_fails_says_why_and_stops_nothing(joined, whisper, tmp_path):
    clip, _ = joined
    stereo = sl.AudioClip(np.repeat(clip.samples.reshape(-1, 1), 2, axis=1), RATE).resample(8_000)
    silent = sl.AudioClip(np.zeros(RATE, dtype=np.float32), RATE)
    rows = [
        (stereo, " ".join(WORDS)),
        (silent, "nobody speaks"),
        (str(tmp_path / "absent.wav"), "nothing"),
        (clip, "…"),
        (clip, None),
        (clip, "half of \ud800"),
        (clip, "seven apple trees surprised the old committee"),
    ]
    audio, texts = ([row[at] for row in rows] for at in (0, 1))
    frame = pd.DataFrame({"audio": audio, "text": pd.Series(texts, dtype=object), "language": "en"})
    with pytest.warns(UserWarning, match="recordings") as warned:
        table = sl.align(frame, recognizer=whisper)
    texts = [str(each.message) for each in warned]
    assert any("5 of 7 recordings could not be aligned" in text for text in texts)
    doubt = "the text of 1 of 7 recordings, or a part of it, is hardly what is said there (row 6)"
    assert any(doubt in text for text in texts)
    errors = table.groupby("row")["error"].first()
    for row, part in enumerate(
        ("", "no speech", "absent.wav", "no words", "must be a text", "half of a", "")
    ):
        assert part in errors[row]
        assert bool(part) == bool(errors[row])
    failed = table["error"] != ""
    assert table.loc[failed, ["start", "end"]].isna().all(axis=None)
    assert not table.loc[~failed, ["start", "end"]].isna().any(axis=None)


@pytest.mark.engines
def test_what_cannot_be_aligned_is_an_error_in_words(joined, whisper):
    clip, _ = joined
    with pytest.raises(InvalidRequestError, match="no words to align"):
        sl.align(clip, "…", recognizer=whisper)
    with pytest.raises(InvalidRequestError, match="give language="):
        sl.align(clip, "Leeds station", recognizer=whisper)
    with pytest.raises(EngineError, match="'xx' is not recognized"):
        sl.align(clip, "word", language="xx", recognizer=whisper)
    with pytest.raises(EngineError, match="cannot be spoken in"):
        sl.align(clip, " ".join(WORDS * 60), language="en", recognizer=whisper)
    with pytest.raises(InvalidRequestError, match="1 recordings and 2 texts"):
        sl.align([clip], ["one", "two"], recognizer=whisper)
    with pytest.raises(InvalidRequestError, match="a Whisper"):
        sl.align(clip, "word", recognizer=sl.engines.ReadHere())
    table = sl.align(clip, f"many <|endoftext|> {' '.join(WORDS[1:])}", language="en", recognizer=whisper)
    assert table["word"].tolist() == ["many", "<|endoftext|>", *WORDS[1:]]
    assert table["end"].iloc[-1] > 0.9 * clip.duration_s - 0.5


def test_a_text_without_words_is_refused_before_the_model_is_loaded():
    class Recognizer:
        def load(self):
            pytest.fail("loaded")

        align = load

    clip = sl.AudioClip(np.zeros(RATE, dtype=np.float32), RATE)
    with pytest.raises(InvalidRequestError, match="no words to align"):
        sl.align(clip, "…", recognizer=Recognizer())
    with pytest.raises(InvalidRequestError, match="give language="):
        sl.align(clip, "Leeds station", recognizer=Recognizer())


@pytest.mark.parametrize(
    ("text", "language", "unit", "words"),
    [
        (
            "“Well – he paid $1,250.50 & left!” 🙂",
            "en",
            None,
            ["“Well –", "he", "paid", "$1,250.50", "&", "left!” 🙂"],
        ),
        (
            "今日は、iPhone 15を「見た」。",
            "ja",
            None,
            ["今日", "は、", "iPhone", "15", "を", "「見", "た」。"],
        ),
        ("今日は", "ja", "char", ["今", "日", "は"]),
        ("他有iPhone 15，对吗？", "zh", None, ["他", "有", "iPhone", "15，", "对", "吗？"]),
        ("สวัสดี", "th", None, ["ส", "วั", "ส", "ดี"]),
        ("no", "en", "char", ["n", "o"]),
        ("… !", "en", None, []),
    ],
)
def test_words_and_characters_with_the_signs_beside_them(text, language, unit, words):
    if language == "ja":
        pytest.importorskip("sudachipy")
    assert [text[start:end] for start, end in find_words(text, language, unit)] == words


def test_chinese_has_no_words_here():
    with pytest.raises(InvalidRequestError, match="unit='char'"):
        find_words("今天", "zh", "word")


@pytest.mark.parametrize(
    ("text", "language", "recognized", "cuts"),
    [
        # misheard, left out, said beside the text, said twice
        ("one two three. Four five six.", "en", ["One to three", "for five, six"], [0, 3, 6]),
        ("one two three four five six", "en", ["well one two three", "six"], [0, 4, 6]),
        ("yes yes yes yes", "en", ["yes", "yes yes", "yes"], [0, 1, 3, 4]),
        ("one two", "en", ["noise", "one two", ""], [0, 0, 2, 2]),
        ("今日は晴れ。明日は雨。", "ja", ["京は晴れ", "明日は飴"], [0, 3, 6]),
        ("今天很好，明天再说。", "zh", ["今天很好", "明天在说"], [0, 4, 8]),
    ],
)
def test_windows_of_a_long_recording_have_their_part_of_the_text(text, language, recognized, cuts):
    if language == "ja":
        pytest.importorskip("sudachipy")
    assert divide_text(text, find_words(text, language), recognized, language) == cuts


def test_threads_take_turns_at_one_model_and_a_bar_counts_recordings(monkeypatch):
    """A staged recognizer, which two threads may not use at once."""
    at_once, most, bars = [], [], []

    class Recognizer:
        def load(self):
            pass

        def align(self, samples, text, places, language):
            at_once.append(1)
            most.append(len(at_once))
            time.sleep(0.005)
            at_once.pop()
            return np.array([[0.0, 0.1, 0.9]] * len(places))

    class Bar:
        def __init__(self, total, *_, **__):
            self.counts = [total]
            bars.append(self.counts)

        def update(self):
            self.counts.append(1)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    monkeypatch.setattr("speechlab.engines._align.open_bar", Bar)
    clip = sl.AudioClip(np.zeros(RATE, dtype=np.float32), RATE)

    def align(progress):
        how = {"language": "en", "recognizer": Recognizer(), "progress": progress}
        return len(sl.align([clip] * 4, ["one two"] * 4, **how))

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(align, [True, False, True])) == [8, 8, 8]
    assert max(most) == 1
    assert bars == [[4, 1, 1, 1, 1]] * 2


@pytest.mark.parametrize(
    ("confidences", "is_doubted"),
    [
        ([0.05] * 3, True),
        ([0.9] * 3, False),
        ([0.9] * 15 + [0.02] * 10 + [0.9] * 15, True),  # another part
        ([0.02, 0.9, 0.02, 0.02] * 10, False),  # single words that were misheard
        ([0.9] * 15 + [0.02] * 5 + [0.9] * 15, False),
    ],
)
def test_a_text_of_which_a_part_is_another_is_doubted(recwarn, confidences, is_doubted):
    class Recognizer:
        def load(self):
            pass

        def align(self, samples, text, places, language):
            return np.array([[0.0, 0.1, confidence] for confidence in confidences])

    clip = sl.AudioClip(np.zeros(RATE, dtype=np.float32), RATE)
    text = " ".join(["word"] * len(confidences))
    sl.align([clip], [text], language="en", recognizer=Recognizer(), progress=False)
    assert [str(each.message)[:20] for each in recwarn] == ["the text of 1 of 1 r"] * is_doubted


def test_a_pause_is_between_two_words_alone():
    features = np.full((80, 100), 1.0, dtype=np.float32)
    features[:, 40:60] = 0.0  # 0.2 s
    times = np.array([[0.0, 0.38], [0.38, 0.5], [0.5, 0.65], [0.65, 1.0]])
    moved = move_to_pauses(times, features, 1.0)
    assert moved.tolist() == [[0.0, 0.38], [0.38, 0.4], [0.6, 0.65], [0.65, 1.0]]
