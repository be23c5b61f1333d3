"""The recognizer: languages, silence, segments, long recordings and its options."""

import csv
import itertools
import re

import numpy as np
import pytest
import soundfile
import soxr

from speechlab.engines import RecognitionOptions, Recognizer, call_at_checkpoints, create
from speechlab.errors import EngineError, ModelError
from support.live import decoding_once

pytestmark = pytest.mark.engines

FIRST = "The first train to the city leaves early in the morning."
SECOND = "Please bring your own lunch because the shop is closed."
BOUNDS = {
    "librispeech-1995-1837-0001.wav": 0.05,
    "test_ja_2.wav": 0.2,
    "aishell-BAC009S0724W0121.wav": 0.35,
}


def silence(seconds):
    return np.zeros(round(seconds * 16_000), dtype=np.float32)


@pytest.fixture(scope="module")
def two(hibari, say):
    """Two sentences of about three seconds each, without silence around."""
    return say(hibari, FIRST, "heart"), say(hibari, SECOND, "heart")


@pytest.fixture(scope="module")
def walk(openjtalk, say):
    """A sentence in Japanese, of the voice that speaks fastest."""
    return say(openjtalk, "今日は天気がいいので、公園まで歩きます。", "mei")


def read_recording(folder, name):
    with (folder / "manifest.csv").open(encoding="utf-8") as stream:
        row = next(row for row in csv.DictReader(stream) if row["audio"] == name)
    samples, rate = soundfile.read(folder / name, dtype="float32", always_2d=True)
    return row, soxr.resample(samples.mean(axis=1), rate, 16_000).astype(np.float32)


@pytest.mark.parametrize("name", BOUNDS)
def test_recordings_of_people_are_recognized(name, human_speech, whisper, error_rate):
    row, sound = read_recording(human_speech, name)
    heard = whisper.recognize(sound, RecognitionOptions())
    assert heard.language == row["language"]
    assert 0 < heard.confidence <= 1
    assert error_rate(row["text"], heard.text) <= BOUNDS[name], heard.text


@pytest.mark.parametrize("vad", ["off", "on", "segments"])
def test_where_nobody_speaks_there_is_no_text(vad, whisper):
    noise = (np.random.default_rng(1).standard_normal(160_000) * 0.05).astype(np.float32)
    tone = (0.3 * np.sin(np.arange(80_000) * 0.17)).astype(np.float32)
    for sound in (silence(0), silence(0.001), silence(12), noise, tone):
        heard = whisper.recognize(sound, RecognitionOptions(vad=vad))
        assert (heard.text, heard.confidence, heard.segments) == ("", 0.0, ()), len(sound)
    assert whisper.recognize(silence(1), RecognitionOptions(language="zh", vad=vad)).language == "zh"


def test_silence_around_and_between_speech_adds_nothing(two, whisper, error_rate):
    sound = np.concatenate([silence(4), two[0], silence(12), two[1], silence(4)])
    heard = whisper.recognize(sound, RecognitionOptions(vad="off"))
    assert error_rate(FIRST + SECOND, heard.text) < 0.1, heard.text


def test_080_081_a_gap_splits_if_it_is_long_enough(two, whisper, error_rate):
    first, second = two
    sound = np.concatenate([silence(3), first, silence(0.25), second, silence(0.7), first, silence(2)])
    duration = len(sound) / 16_000
    heard = whisper.recognize(sound, RecognitionOptions(vad="segments"))
    joined, last = heard.segments
    # Speech begins at 3 s: 1500 ms of pre-roll. It ends 2 s before the end: speech_pad_ms and segment_padding.
    assert joined.start == pytest.approx(1.5, abs=0.15)
    assert last.end == pytest.approx(duration - 2 + 0.3, abs=0.2)
    middle = duration - 2 - len(first) / 16_000 - 0.35
    assert joined.end <= middle + 0.1
    assert last.start >= middle - 0.1
    assert error_rate(FIRST + SECOND, joined.text) < 0.06
    assert error_rate(FIRST, last.text) < 0.06
    assert heard.text == f"{joined.text} {last.text}"


def test_079_segments_stay_orderly_at_the_bounds(two, whisper, error_rate):
    assert isinstance(whisper, Recognizer)
    assert whisper.languages[:3] == ("ja", "en", "zh")
    assert {"de", "fr", "ko"} < set(whisper.languages)
    sound = np.concatenate([two[0], silence(0.6), two[1]])
    duration = len(sound) / 16_000
    none = dict.fromkeys(("segment_padding", "initial_segment_padding_ms", "speech_pad_ms"), 0)
    most = {"segment_padding": 5000, "initial_segment_padding_ms": 5000, "speech_pad_ms": 3000}
    with decoding_once():
        for rules in (
            {**none, "min_segment_duration": 0.0},
            most,
            {"min_silence_gap": 0, "min_segment_duration": 0.0},
            {"min_silence_gap": 20_000},
            {"min_segment_duration": 60.0},
        ):
            heard = whisper.recognize(sound, RecognitionOptions(language="en", vad="segments", **rules))
            edges = [time for segment in heard.segments for time in (segment.start, segment.end)]
            assert edges == sorted(edges), rules
            assert 0 <= edges[0] < edges[-1] <= duration, rules
            assert all(segment.text and segment.start < segment.end for segment in heard.segments), rules
    soft = whisper.recognize(np.float32(0.01) * sound, RecognitionOptions(language="en", vad="on"))
    assert error_rate(FIRST + SECOND, soft.text) < 0.1, soft.text


LONG = [
    FIRST,
    SECOND,
    "My sister bought a red bicycle for her daughter last week.",
    "The children played in the garden until the sun went down.",
    "He could not find the key to the old wooden door.",
    "We will discuss the budget and the schedule at the meeting tomorrow.",
    "The river was so high that the bridge had to be closed.",
    "She wrote a long letter to the editor of the newspaper.",
    "After dinner they walked along the beach and looked at the stars.",
]


def test_more_than_a_window_is_split_where_it_pauses(hibari, two, say, whisper, error_rate):
    sounds = [*two, *(say(hibari, text, "heart") for text in LONG[2:])]
    sound = np.concatenate([part for one in sounds for part in (one, silence(0.8))])
    assert len(sound) / 16_000 > 30.5
    timed = whisper.recognize(sound, RecognitionOptions(vad="segments"))
    assert error_rate("".join(LONG), timed.text) < 0.06, timed.text
    assert len(timed.segments) == len(LONG)
    for text, segment in zip(LONG, timed.segments, strict=True):
        assert error_rate(text, segment.text) < 0.2, segment.text


def test_speech_that_repeats_itself_is_no_loop(hibari, say, whisper, error_rate):
    text = "The train is late again. " * 4
    heard = whisper.recognize(say(hibari, text, "heart"), RecognitionOptions(language="en"))
    assert error_rate(text, heard.text) < 0.1, heard.text


@pytest.fixture
def steps(monkeypatch):
    """What a recognition does: 0 for a window that is encoded, numbers of tokens, and "turn" where others may run.

    What runs between two turns cannot be interrupted; for half an hour the first steps take seconds.
    """
    library = pytest.importorskip("ctranslate2").models.Whisper
    steps = []
    generate, encode = library.generate, library.encode

    def generated(model, encoded, prompts, **options):
        result = generate(model, encoded, prompts, **options)
        steps.extend([len(result[0].sequences_ids[0]), *["retried"] * (options["no_repeat_ngram_size"] > 0)])
        return result

    monkeypatch.setattr(library, "generate", generated)
    monkeypatch.setattr(library, "encode", lambda *given, **how: steps.append(0) or encode(*given, **how))
    with call_at_checkpoints(lambda: steps.append("turn")):
        yield steps


def test_laughter_is_no_loop_and_lets_others_run(openjtalk, say, walk, whisper, steps):
    """A loop runs to the most tokens that its sound can have, and is decoded again: neither may be one long step."""
    laughter = say(openjtalk, "はははは。", "mei")
    sound = np.concatenate([*[laughter] * 3, silence(0.3), walk])
    steps.clear()
    heard = whisper.recognize(sound, RecognitionOptions(language="ja"))
    assert "公園まで歩きます" in heard.text, heard.text
    assert not re.search(r"(.{2,}?)\1\1", heard.text), heard.text
    assert "retried" in steps
    work = [step for step in steps if step != "retried"]
    assert all("turn" in pair for pair in itertools.pairwise(work)), steps
    assert max(step for step in work if step != "turn") <= 20 + 20 * len(sound) / 16_000 + 1


def test_hotwords_bring_rare_names_with_other_options(hibari, say, whisper):
    sound = say(hibari, "The engineers of Kayraline met in Worbleton.", "heart")
    options = {"temperature": 0.3, "repetition_penalty": 1.2, "top_p": 0.1, "language": "en"}
    hinted = whisper.recognize(sound, RecognitionOptions(hotwords=("Kayraline", "Worbleton"), **options))
    assert "Worbleton" in hinted.text or "Kayraline" in hinted.text, hinted.text


def test_impossible_options_and_samples_are_refused(whisper, tmp_path):
    for samples, options, text in (
        (silence(1), {"language": "tlh"}, "choose one of: ja, en, zh, .* more"),
        (silence(1), {"vad": "x"}, "vad='x'"),
        (silence(1).reshape(2, -1), {}, r"shape \(2, 8000\)"),
        (silence(1) + np.nan, {}, "not numbers"),
    ):
        with pytest.raises(EngineError, match=text):
            whisper.recognize(samples, RecognitionOptions(**options))
    with pytest.raises(ModelError, match=r"lacks config\.json, model\.bin, tokenizer\.json"):
        create("whisper", model=str(tmp_path)).load()


def test_two_languages_of_a_recording_are_both_heard(openjtalk, say, two, walk, whisper):
    """With hardly a pause between them, pieces hold both languages, and lose one: the whole is kept then."""
    said = [walk, two[0], say(openjtalk, "会議の資料を明日までに送ってください。", "mei"), two[1]]
    sound = np.concatenate([part for one in said for part in (one, silence(0.1))])
    heard = whisper.recognize(sound, RecognitionOptions())
    assert all(word in heard.text for word in ("公園", "train", "会議", "lunch")), heard.text


def test_another_language_after_a_pause_is_recognized_too(human_speech, whisper, error_rate):
    """The Japanese is so clear that Whisper stays with it, and drops the English."""
    _, japanese = read_recording(human_speech, "test_ja_2.wav")
    row, english = read_recording(human_speech, "librispeech-1995-1837-0001.wav")
    heard = whisper.recognize(
        np.concatenate([japanese, silence(3.5), english]), RecognitionOptions(vad="segments")
    )
    assert error_rate(row["text"], heard.segments[-1].text) <= 0.05, heard.segments
    assert "テスト" in heard.text
