"""Speech without text: which stretches are decoded again, and how what is found replaces what is there."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from speechlab.engines._protocols import RecognitionOptions
from speechlab.engines._recognition.decoding import Span, TimedWord, Timeline, build_segments
from speechlab.engines._recognition.gaps import (
    Decoded,
    change_texts,
    choose_main_language,
    fill_gap,
    find_gaps,
)


@dataclass(frozen=True)
class Word:
    """A word as faster-whisper has it."""

    start: float
    end: float
    word: str


@dataclass(frozen=True)
class Segment:
    """A segment as faster-whisper has it."""

    start: float
    end: float
    text: str
    words: list[Word] | None = field(default=None)


ENGLISH = Segment(0.2, 3.0, " Please bring your own lunch because it is closed.")
JAPANESE = Segment(4.1, 7.8, "会議の資料を明日までに送ってください。")
STRETCHES = [Span(0.2, 3.0), Span(4.0, 8.0)]


def decoded(*pairs, language="en"):
    return Decoded(tuple(each for each, _ in pairs), tuple(code for _, code in pairs), language, 0.95)


@pytest.mark.parametrize(
    ("pairs", "gaps"),
    [
        ([(ENGLISH, "en")], [STRETCHES[1]]),
        ([(ENGLISH, "en"), (JAPANESE, "ja")], []),
        ([(ENGLISH, "en"), (Segment(4.0, 8.0, " You"), "en")], [STRETCHES[1]]),
        ([(Segment(0.2, 8.0, " Please bring your own lunch because it is closed."), "en")], []),
        ([], STRETCHES),
    ],
)
def test_stretches_with_hardly_any_text_are_gaps(pairs, gaps):
    assert find_gaps(decoded(*pairs), STRETCHES) == gaps


def test_a_word_belongs_to_the_stretch_of_its_middle():
    words = [Word(0.2, 1.0, " Please"), Word(1.0, 3.0, " bring your own lunch.")]
    assert find_gaps(
        decoded((Segment(0.2, 8.0, " Please bring your own lunch.", words), "en")), STRETCHES
    ) == [STRETCHES[1]]


def test_a_breath_is_no_gap():
    assert find_gaps(decoded((ENGLISH, "en")), [Span(0.2, 3.0), Span(4.0, 4.9)]) == []


def test_what_is_found_stands_in_its_place_with_its_language():
    you = (Segment(4.0, 8.0, " You"), "en")
    filled = fill_gap(decoded((ENGLISH, "en"), you), STRETCHES[1], decoded((JAPANESE, "ja"), language="ja"))
    assert filled.text == ENGLISH.text + JAPANESE.text
    assert filled.languages == ("en", "ja")
    assert choose_main_language(filled).language == "ja"  # 3.7 s of 6.5
    first = fill_gap(decoded((JAPANESE, "ja")), STRETCHES[0], decoded((ENGLISH, "en")))
    assert first.languages == ("en", "ja")


@pytest.mark.parametrize("text", ["", " ...", " Please bring"])
def test_hardly_more_text_replaces_nothing(text):
    before = decoded((Segment(4.0, 8.0, " Please bring"), "en"))
    assert fill_gap(before, STRETCHES[1], decoded((Segment(4.0, 8.0, text), "en"))) is before


def test_a_segment_keeps_its_words_outside_the_gap():
    words = [Word(0.2, 3.0, " Please bring your own lunch."), Word(5.0, 6.0, " You")]
    long = Segment(0.2, 8.0, " Please bring your own lunch. You", words)
    filled = fill_gap(decoded((long, "en")), STRETCHES[1], decoded((JAPANESE, "ja")))
    assert [segment.text for segment in filled.segments] == [" Please bring your own lunch.", JAPANESE.text]


def test_texts_are_changed_by_their_own_languages():
    mixed = decoded((Segment(0, 1, "會議", [Word(0, 1, "會議")]), "zh"), (Segment(1, 2, "會議"), "ja"))
    changed = change_texts(mixed, lambda text, code: "会议" if code == "zh" else text)
    assert [segment.text for segment in changed.segments] == ["会议", "會議"]
    assert changed.segments[0].words[0].word == "会议"


def test_long_speech_without_text_is_a_segment():
    words = [TimedWord(0.3, 2.9, "Please bring your own lunch.")]
    speech = [Span(0.2, 3.0), Span(4.0, 4.8), Span(9.0, 12.0)]
    options = RecognitionOptions(vad="segments", min_segment_duration=0.0, initial_segment_padding_ms=0)
    segments = build_segments(words, speech, options, 13.0)
    assert [(segment.start, segment.end, segment.text) for segment in segments] == [
        (0.0, 3.3, "Please bring your own lunch."),
        (8.7, 12.3, ""),
    ]


def test_speech_has_its_place_in_the_shortened_recording():
    timeline = Timeline([Span(1.0, 4.0), Span(10.0, 12.0)])
    assert timeline.to_shortened_span(Span(1.5, 3.5)) == Span(0.5, 2.5)
    assert timeline.to_shortened_span(Span(10.5, 11.5)) == Span(3.5, 4.5)
