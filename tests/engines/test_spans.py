"""Segment arithmetic: sorted, not overlapping, inside the file, whatever the settings."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab.engines._recognition.decoding import (
    Span,
    TimedWord,
    Timeline,
    join_words_by_span,
    merge_brief_spans,
    pad_and_join_spans,
    pad_spans,
)


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


@given(recordings(), st.floats(0, 3), st.floats(0, 3), st.floats(0, 3), st.floats(0, 5))
def test_the_whole_chain_is_orderly(recording, speech_pad, minimum, margin, leading):
    spans, duration = recording
    chain = merge_brief_spans(pad_spans(spans, speech_pad, duration), minimum)
    assert_orderly(pad_spans(chain, leading=leading, margin=margin, duration=duration), duration)


@given(recordings(), st.floats(0, 2))
def test_kept_spans_hold_all_speech_and_no_long_silence(recording, margin):
    spans, duration = recording
    kept = pad_and_join_spans(spans, margin, duration)
    assert_orderly(kept, duration)
    assert all(any(k.start <= s.start and s.end <= k.end for k in kept) for s in spans)
    length = sum(span.end - span.start for span in kept)
    assert length <= sum(s.end - s.start for s in spans) + 2 * margin * len(spans) + 1e-6


@given(recordings().filter(lambda pair: pair[0]), st.floats(0, 1), st.floats(0, 1))
def test_the_timeline_leads_back_into_the_recording(recording, margin, where):
    spans, duration = recording
    kept = pad_and_join_spans(spans, margin, duration)
    timeline = Timeline(kept)
    span = kept[int(where * (len(kept) - 1))]
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
    owned = join_words_by_span(words, spans)
    if spans:
        joined = "".join(text for _, text in owned).replace(" ", "")
        assert joined == "".join(word.text for word in words).replace(" ", "")
    assert [span for span, _ in owned] == sorted((span for span, _ in owned), key=lambda span: span.start)


def test_a_short_segment_goes_to_the_nearer_neighbor():
    spans = [Span(0, 2), Span(3, 3.5), Span(3.8, 6)]
    assert merge_brief_spans(spans, 1.0) == [Span(0, 2), Span(3, 6)]


def test_neighbors_meet_in_the_middle_of_their_gap():
    padded = pad_spans([Span(1, 2), Span(2.1, 3)], leading=0.5, margin=0.4, duration=3.1)
    assert [(span.start, span.end) for span in padded] == [
        (0.5, pytest.approx(2.05)),
        (pytest.approx(2.05), 3.1),
    ]
