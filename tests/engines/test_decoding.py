"""The parts of decoding: spans, gaps, repetition, and the words of long recordings."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab.engines import RecognitionOptions
from speechlab.engines._recognition import decoding, gaps, repeats, word_times
from speechlab.engines._recognition.decoding import Span, TimedWord, Timeline, merge_brief_spans, pad_spans
from speechlab.engines._recognition.gaps import Decoded, fill_gap, find_gaps

# Spans: sorted, not overlapping, inside the file, whatever the settings


@st.composite
def recordings(draw):
    """Spans and the duration of the file that they lie in."""
    lengths = draw(st.lists(st.tuples(st.floats(0.01, 5), st.floats(0.1, 8)), max_size=12))
    spans, time = [], draw(st.sampled_from([0.0, 0.0, 0.7, 4.0]))
    for gap, length in lengths:
        start = time + gap
        time = start + length
        spans.append(Span(start, time))
    return spans, time + draw(st.sampled_from([0.0, 0.05, 3.0]))


def assert_orderly(spans, duration):
    assert all(0 <= span.start < span.end <= duration for span in spans)
    assert all(left.end <= right.start for left, right in pairwise(spans))


@given(recordings(), st.floats(0, 5), st.floats(0, 5))
def test_padding_keeps_segments_orderly(recording, leading, margin):
    spans, duration = recording
    padded = pad_spans(spans, leading=leading, margin=margin, duration=duration)
    assert len(padded) == len(spans)
    assert_orderly(padded, duration)
    assert all(new.start <= old.start and new.end >= old.end for new, old in zip(padded, spans, strict=True))
    if spans:
        assert padded[0].start == max(0.0, spans[0].start - leading)


@given(recordings(), st.floats(0, 20))
def test_081_merging_leaves_no_short_segment_beside_another(recording, minimum):
    spans, duration = recording
    merged = merge_brief_spans(spans, minimum)
    assert_orderly(merged, duration)
    assert len(merged) <= 1 or all(span.end - span.start >= minimum for span in merged)
    assert all(any(new.start <= old.start and old.end <= new.end for new in merged) for old in spans)
    assert bool(merged) == bool(spans)


@given(recordings(), *[st.floats(0, 3)] * 3, st.floats(0, 5))
def test_the_whole_chain_is_orderly(recording, speech_pad, minimum, margin, leading):
    spans, duration = recording
    chain = merge_brief_spans(pad_spans(spans, speech_pad, duration), minimum)
    assert_orderly(pad_spans(chain, leading=leading, margin=margin, duration=duration), duration)


@given(recordings(), st.floats(0, 2), st.floats(0, 1))
def test_kept_spans_hold_all_speech_and_the_timeline_leads_back(recording, margin, where):
    spans, duration = recording
    kept = decoding.pad_and_join_spans(spans, margin, duration)
    assert_orderly(kept, duration)
    assert all(any(k.start <= s.start and s.end <= k.end for k in kept) for s in spans)
    length = sum(span.end - span.start for span in kept)
    assert length <= sum(s.end - s.start for s in spans) + 2 * margin * len(spans) + 1e-6
    if kept:
        timeline, span = Timeline(kept), kept[int(where * (len(kept) - 1))]
        before = sum(k.end - k.start for k in kept if k.end <= span.start)
        inside = (span.end - span.start) * (0.01 + 0.98 * where)
        assert timeline.to_original_time(before + inside) == pytest.approx(span.start + inside)
        assert 0 <= timeline.to_original_time(1e9) <= duration


@pytest.mark.slow
@given(
    recordings(), st.lists(st.tuples(st.floats(0, 60), st.floats(0, 1), st.sampled_from(["a", " b", "、"])))
)
def test_words_keep_their_order_and_none_is_lost(recording, raw):
    spans, _ = recording
    words = [TimedWord(start, start + length, text) for start, length, text in sorted(raw)]
    owned = decoding.join_words_by_span(words, spans)
    if spans:
        joined = "".join(text for _, text in owned).replace(" ", "")
        assert joined == "".join(word.text for word in words).replace(" ", "")
    assert [span for span, _ in owned] == sorted((span for span, _ in owned), key=lambda span: span.start)


def test_spans_by_hand():
    # a short segment goes to the nearer neighbor; neighbors meet in the middle of their gap
    assert merge_brief_spans([Span(0, 2), Span(3, 3.5), Span(3.8, 6)], 1.0) == [Span(0, 2), Span(3, 6)]
    padded = pad_spans([Span(1, 2), Span(2.1, 3)], leading=0.5, margin=0.4, duration=3.1)
    assert [edge for span in padded for edge in (span.start, span.end)] == pytest.approx(
        [0.5, 2.05, 2.05, 3.1]
    )
    timeline = Timeline([Span(1.0, 4.0), Span(10.0, 12.0)])
    assert timeline.to_shortened_span(Span(1.5, 3.5)) == Span(0.5, 2.5)
    assert timeline.to_shortened_span(Span(10.5, 11.5)) == Span(3.5, 4.5)


# Gaps: speech without text is decoded again


@dataclass(frozen=True)
class Heard:
    """A segment or a word as faster-whisper has it."""

    start: float
    end: float
    text: str
    words: list[Heard] | None = None
    seek: int = 0
    word: str = ""


LUNCH = " Please bring your own lunch because it is closed."
ENGLISH = Heard(0.2, 3.0, LUNCH)
JAPANESE = Heard(4.1, 7.8, "会議の資料を明日までに送ってください。")
IN_ONE = Heard(0.2, 8.0, LUNCH, [Heard(0.2, 1.0, "", word=LUNCH[:7]), Heard(1.0, 3.0, "", word=LUNCH[7:])])
STRETCHES = [Span(0.2, 3.0), Span(4.0, 8.0)]


def decoded(*pairs, language="en"):
    return Decoded(tuple(each for each, _ in pairs), tuple(code for _, code in pairs), language, 0.95)


@pytest.mark.parametrize(
    ("segments", "stretches", "missing"),
    [
        ([ENGLISH], STRETCHES, [1]),
        ([ENGLISH, JAPANESE], STRETCHES, []),
        ([ENGLISH, Heard(4.0, 8.0, " You")], STRETCHES, [1]),
        ([Heard(0.2, 8.0, LUNCH)], STRETCHES, []),
        # a word belongs to the stretch of its middle
        ([IN_ONE], STRETCHES, [1]),
        ([], STRETCHES, [0, 1]),
        ([ENGLISH], [STRETCHES[0], Span(4.0, 4.9)], []),  # a breath
    ],
)
def test_stretches_with_hardly_any_text_are_gaps(segments, stretches, missing):
    pairs = ((each, "ja" if each is JAPANESE else "en") for each in segments)
    found = find_gaps(decoded(*pairs), stretches)
    assert found == [stretches[number] for number in missing]


def test_what_is_found_stands_in_its_place_with_its_language():
    you = (Heard(4.0, 8.0, " You"), "en")
    filled = fill_gap(decoded((ENGLISH, "en"), you), STRETCHES[1], decoded((JAPANESE, "ja"), language="ja"))
    assert filled.text == ENGLISH.text + JAPANESE.text
    assert filled.languages == ("en", "ja")
    assert gaps.choose_main_language(filled).language == "ja"  # 3.7 s of 6.5
    words = [Heard(0.2, 3.0, "", word=" Please bring your own lunch."), Heard(5.0, 6.0, "", word=" You")]
    long = Heard(0.2, 8.0, " Please bring your own lunch. You", words)
    filled = fill_gap(decoded((long, "en")), STRETCHES[1], decoded((JAPANESE, "ja")))
    assert [each.text for each in filled.segments] == [" Please bring your own lunch.", JAPANESE.text]


@pytest.mark.parametrize("text", ["", " ...", " Please bring"])
def test_hardly_more_text_replaces_nothing(text):
    before = decoded((Heard(4.0, 8.0, " Please bring"), "en"))
    assert fill_gap(before, STRETCHES[1], decoded((Heard(4.0, 8.0, text), "en"))) is before


def test_texts_are_changed_by_their_own_languages():
    mixed = decoded((Heard(0, 1, "會議", [Heard(0, 1, "", word="會議")]), "zh"), (Heard(1, 2, "會議"), "ja"))
    changed = gaps.change_texts(mixed, lambda text, code: "会议" if code == "zh" else text)
    assert [each.text for each in changed.segments] == ["会议", "會議"]
    assert changed.segments[0].words[0].word == "会议"


def test_long_speech_without_text_is_a_segment():
    words = [TimedWord(0.3, 2.9, "Please bring your own lunch.")]
    speech = [Span(0.2, 3.0), Span(4.0, 4.8), Span(9.0, 12.0)]
    options = RecognitionOptions(vad="segments", min_segment_duration=0.0, initial_segment_padding_ms=0)
    segments = decoding.build_segments(words, speech, options, 13.0)
    assert [(each.start, each.end, each.text) for each in segments] == [
        (0.0, 3.3, "Please bring your own lunch."),
        (8.7, 12.3, ""),
    ]


# Repetition: which windows are looked at again, and which piece of each is decoded alone

STORY = [
    "The council met to discuss the bridge.",
    "Nobody agreed on who should pay.",
    "A farmer sold his land to the city.",
    "The river rises every spring, and the old bridge leaks.",
    "My sister works in a bakery near the station.",
]
LATE = "The train is late again. "


def decode(*texts):
    """What was decoded in windows of 30 seconds, with one segment each."""
    windows = (Heard(30.0 * n, 30.0 * (n + 1), text, seek=3_000 * n) for n, text in enumerate(texts))
    return decoded(*((window, "en") for window in windows))


@pytest.mark.parametrize(
    ("texts", "windows"),
    [
        ([f"{line} {LATE}" for line in STORY], []),  # said once in each window, as an announcement is
        ([STORY[0], LATE * 6, STORY[1]], [1]),
        (["Thank you."] * 3 + STORY[:2], [0, 1, 2]),
    ],
)
def test_windows_whose_words_repeat_are_looked_at_again(texts, windows):
    found = repeats.find_repeating_windows(decode(*texts), 30.0 * len(texts))
    assert [window.span for window in found] == [Span(30.0 * n, 30.0 * (n + 1)) for n in windows]


def test_the_last_piece_that_repeats_is_decoded_alone():
    (window,) = repeats.find_repeating_windows(decode(LATE * 6), 30.0)
    number, text = repeats.choose_tested_piece(window, [(0.0, 10.0), (10.0, 20.0), (20.0, 30.0)])
    assert number == 2
    assert [repeats.is_alike(text, other) for other in (LATE * 2, STORY[1], "")] == [True, False, False]
    looped = decode(STORY[0], LATE * 6, STORY[2])
    (window,) = repeats.find_repeating_windows(looped, 90.0)
    mended = repeats.replace_window(looped, window, decode(STORY[1]))
    assert (mended.text, len(mended.languages)) == ("".join(STORY[:3]), 3)


def test_what_counts_as_saying_the_same_again():
    for text in (
        "",
        "The train is late again. Please bring your own lunch.",
        "はい、はい、はい。わかりました。",
        "It cost 1,000,000 yen, no, 10,000,000.",
    ):
        assert not decoding.has_repetition(text), text
    for text in (
        "Come on, I'm, I'm, I'm, I'm, I'm, I'm...",
        "会議は三時に始まります。" * 4,
        "so I said that it was fine. So I said that it was fine, so I said that it was fine",
        "あ" * 130,
    ):
        assert decoding.has_repetition(text), text


# Words of a known text


@pytest.mark.parametrize(
    ("text", "language", "recognized", "cuts"),
    [
        # misheard, left out, said beside the text, said twice
        ("one two three. Four five six.", "en", ["One to three", "for five, six"], [0, 3, 6]),
        ("one two three four five six", "en", ["well one two three", "six"], [0, 4, 6]),
        ("one two", "en", ["noise", "one two", ""], [0, 0, 2, 2]),
        ("今日は晴れ。明日は雨。", "ja", ["京は晴れ", "明日は飴"], [0, 3, 6]),
    ],
)
def test_windows_of_a_long_recording_have_their_texts(text, language, recognized, cuts):
    if language == "ja":
        pytest.importorskip("sudachipy")
    words = word_times.find_words(text, language)
    assert word_times.divide_text(text, words, recognized, language) == cuts


def test_a_pause_is_between_two_words_alone():
    features = np.full((80, 100), 1.0, dtype=np.float32)
    features[:, 40:60] = 0.0  # 0.2 s
    times = np.array([[0.0, 0.38], [0.38, 0.5], [0.5, 0.65], [0.65, 1.0]])
    moved = word_times.move_to_pauses(times, features, 1.0)
    assert moved.tolist() == [[0.0, 0.38], [0.38, 0.4], [0.6, 0.65], [0.65, 1.0]]
