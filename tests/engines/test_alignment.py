"""Words in time: known edges, and what cannot be aligned."""

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import speechlab as sl
from speechlab.errors import EngineError
from support.texts import check_refusals

WORDS = ["many", "students", "walk", "to", "school", "along", "the", "river"]
RATE = 16_000
SILENT = sl.AudioClip(np.zeros(RATE, dtype=np.float32), RATE)


class Staged:
    """A recognizer without a model: it gives all words the same times, and confidences in turn."""

    def __init__(self, *confidences):
        self.confidences, self.at_once, self.most = itertools.cycle(confidences or [0.9]), 0, 0

    def load(self):
        pass

    def align(self, samples, text, places, language):
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        time.sleep(0.001)
        self.at_once -= 1
        return np.array([[0.0, 0.1, next(self.confidences)] for _ in places])


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
    rows = [
        (stereo, " ".join(WORDS), ""),
        (SILENT, "nobody speaks", "no speech"),
        (str(tmp_path / "absent.wav"), "nothing", "absent.wav"),
        (clip, "…", "no words"),
        (clip, None, "must be a text"),
        (clip, "half of \ud800", "half of a"),
        (clip, "seven apple trees surprised the old committee", ""),
    ]
    audio, texts, problems = zip(*rows, strict=True)
    frame = pd.DataFrame({"audio": audio, "text": pd.Series(texts, dtype=object), "language": "en"})
    with pytest.warns(UserWarning, match="recordings") as warned:
        table = sl.align(frame, recognizer=whisper)
    doubt = "the text of 1 of 7 recordings, or a part of it, is hardly what is said there (row 6)"
    for told in (doubt, "5 of 7 recordings could not be aligned"):
        assert any(told in str(each.message) for each in warned)
    for part, error in zip(problems, table.groupby("row")["error"].first(), strict=True):
        assert part in error
        assert bool(part) == bool(error)
    failed = table["error"] != ""
    assert table.loc[failed, ["start", "end"]].isna().all(axis=None)
    assert not table.loc[~failed, ["start", "end"]].isna().any(axis=None)


@pytest.mark.engines
def test_what_whisper_cannot_align_is_an_error_in_words(joined, whisper):
    clip, _ = joined
    with pytest.raises(EngineError, match="'xx' is not recognized"):
        sl.align(clip, "word", language="xx", recognizer=whisper)
    with pytest.raises(EngineError, match="cannot be spoken in"):
        sl.align(clip, " ".join(WORDS * 60), language="en", recognizer=whisper)
    table = sl.align(clip, f"many <|endoftext|> {' '.join(WORDS[1:])}", language="en", recognizer=whisper)
    assert table["word"].tolist() == ["many", "<|endoftext|>", *WORDS[1:]]
    assert table["end"].iloc[-1] > 0.9 * clip.duration_s - 0.5


def test_refusals_of_alignments(monkeypatch):
    """Before the model is loaded."""
    monkeypatch.setattr(Staged, "load", lambda _: pytest.fail("loaded"))
    monkeypatch.setattr(Staged, "align", Staged.load)
    names = {"sl": sl, "silent": SILENT, "model": Staged()}
    check_refusals(Path(__file__).with_name("refusals.md"), "alignments", **names)


@pytest.mark.parametrize(
    ("words", "language", "unit"),
    [
        (["“Well –", " he", " paid", " $1,250.50", " &", " left!” 🙂"], "en", None),
        (["今日", "は、", "iPhone", " 15", "を", "「見", "た」。"], "ja", None),
        (["今", "日", "は"], "ja", "char"),
        (["他", "有", "iPhone", " 15，", "对", "吗？"], "zh", None),
    ],
)
def test_words_and_characters_with_the_signs_beside_them(words, language, unit):
    if language == "ja":
        pytest.importorskip("sudachipy")
    table = sl.align(SILENT, "".join(words), language=language, unit=unit, recognizer=Staged())
    assert table["word"].tolist() == [word.strip() for word in words]


def test_threads_take_turns_at_one_model():
    recognizer = Staged()

    def align(text):
        how = {"language": "en", "recognizer": recognizer, "progress": False}
        return len(sl.align([SILENT] * 4, [text] * 4, **how))

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(align, ["one two"] * 3)) == [8, 8, 8]
    assert recognizer.most == 1


@pytest.mark.parametrize(
    ("confidences", "is_doubted"),
    [
        ([0.05] * 3, True),
        ([0.9] * 15 + [0.02] * 10 + [0.9] * 15, True),  # another part
        ([0.02, 0.9, 0.02, 0.02] * 10, False),  # single words that were misheard
        ([0.9] * 15 + [0.02] * 5 + [0.9] * 15, False),
    ],
)
def test_a_text_of_which_a_part_is_another_is_doubted(recwarn, confidences, is_doubted):
    text = " ".join(["word"] * len(confidences))
    sl.align([SILENT], [text], language="en", recognizer=Staged(*confidences), progress=False)
    assert [str(each.message)[:20] for each in recwarn] == ["the text of 1 of 1 r"] * is_doubted
