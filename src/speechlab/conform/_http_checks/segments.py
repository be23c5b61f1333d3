"""Checks of recognition with ``vad=segments`` (sections 2.3 and 2.4)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from speechlab.conform._http_checks.recognition import (
    recognize_silence,
    require_fields_accepted,
    require_language_and_confidence,
)
from speechlab.conform._model import build_decorators
from speechlab.conform._probe.sounds import insert_silence, request_speech_once
from speechlab.conform._probe.target import Target, build_refusal_step, build_step_for_each_value

if TYPE_CHECKING:
    from speechlab.conform._probe.http import Exchange

_GAPS = ("min_silence_gap", "speech_pad_ms", "min_segment_duration")
_INTEGERS = ("min_silence_gap", "segment_padding", "initial_segment_padding_ms", "speech_pad_ms")
_ONSET_S = 3.0
_PRE_ROLL_S = 1.5
_TOLERANCE_S = 0.7

check, advice = build_decorators(__name__, Target.skip_without_recognition)
_build_segment_refusal_step = partial(build_refusal_step, partial(recognize_silence, vad="segments"))


def _is_number(value: object) -> bool:
    return type(value) in {int, float}


def _insist_segments(t: Target, reply: Exchange) -> list[dict[str, Any]]:
    body = t.insist_success(reply).parse_json()
    segments = body.get("segments") if isinstance(body, dict) else None
    t.insist_that(isinstance(segments, list), "segments is an array", reply)
    assert isinstance(segments, list)
    for each in segments:
        right = isinstance(each, dict) and _is_number(each.get("start")) and _is_number(each.get("end"))
        t.insist_that(right and isinstance(each.get("text"), str), "a segment has start, end and text", reply)
        t.require_that(each["end"] > each["start"], "a segment ends after it starts", reply)
    return segments


def _recognize_late_speech_once(t: Target) -> Exchange:
    """Recognize speech that begins after three seconds of silence."""
    return t.get_or_make(
        "late", lambda: t.recognize(insert_silence(request_speech_once(t), _ONSET_S), vad="segments")
    )


@check(
    "78-form", "vad=segments returns language, confidence and segments, but no text", also=(79,), metered=2
)
def _check_reply_form(t: Target) -> None:
    reply = _recognize_late_speech_once(t)
    t.require_that(_insist_segments(t, reply), "speech has a segment", reply)
    body = reply.parse_json()
    t.require_that("text" not in body, "no top-level text", reply)
    require_language_and_confidence(t, body, reply)


@advice("79-sorted", "segments are sorted, without overlap, and within the recording", metered=2)
def _check_segment_order(t: Target) -> None:
    reply, end = _recognize_late_speech_once(t), 0.0
    for each in _insist_segments(t, reply):
        t.require_that(each["start"] >= end, "segments are in order and do not overlap", reply)
        end = each["end"]
    length_s = request_speech_once(t).duration_s + _ONSET_S + 0.5
    t.require_that(end <= length_s + 0.1, "the last segment ends within the recording", reply)


@check("80-pre-roll", "the first segment begins 1.5 s before speech by default", metered=3, quick=False)
def _check_pre_roll(t: Target) -> None:
    reply = _recognize_late_speech_once(t)
    segments = _insist_segments(t, reply)
    t.insist_that(segments, "speech has a segment", reply)
    # The padding of segments and of speech may add to the pre-roll, and voices begin with a breath.
    early = segments[0]["start"] <= _ONSET_S - _PRE_ROLL_S + _TOLERANCE_S
    t.require_that(early, f"the first start is about {_ONSET_S - _PRE_ROLL_S:g} s", reply)
    t.require_that(segments[0]["start"] >= 0.5, "the silence before the speech is left out", reply)
    clip = insert_silence(request_speech_once(t), _ONSET_S)
    tight = t.recognize(clip, vad="segments", initial_segment_padding_ms=0)
    starts = [each["start"] for each in _insist_segments(t, tight)]
    later = starts and starts[0] > segments[0]["start"]
    t.require_that(later, "without pre-roll the first segment begins later", tight)


@check("81-gaps", "a silence splits only if it is longer than min_silence_gap", metered=3, quick=False)
def _check_silence_gap(t: Target) -> None:
    clip = insert_silence(request_speech_once(t), 0.5, 1.5)
    options = {"vad": "segments", "min_segment_duration": 0.0}
    apart = t.recognize(clip, **options, min_silence_gap=400)
    t.require_that(
        len(_insist_segments(t, apart)) >= 2, "two segments, for 1.5 s of silence between the speech", apart
    )
    joined = t.recognize(clip, **options, min_silence_gap=5_000)
    t.require_that(
        len(_insist_segments(t, joined)) == 1, "one segment, with a min_silence_gap of 5 s", joined
    )


@check("74-gap-values", "min_silence_gap, speech_pad_ms and min_segment_duration are numbers")
def _check_gap_types(t: Target) -> None:
    for name in _GAPS:
        _build_segment_refusal_step(f"{name} is not a number", **{name: ("long",)})(t)
        require_fields_accepted(t, vad="segments", **{name: 300})


advice("74-negative", "… and at least 0", metered=3)(
    *(_build_segment_refusal_step(f"{name} is at least 0", **{name: (-1,)}) for name in _GAPS)
)


@check("75-padding", "segment_padding and initial_segment_padding_ms are 0 to 5000")
def _check_padding_range(t: Target) -> None:
    for name in ("segment_padding", "initial_segment_padding_ms"):
        _build_segment_refusal_step(f"{name} is 0 to 5000", **{name: (-1, 5_001)})(t)
        build_step_for_each_value(partial(require_fields_accepted, vad="segments"), **{name: (0, 5_000)})(t)


@advice("76-ignored", "without vad=segments its fields are ignored")
def _check_ignored_fields(t: Target) -> None:
    require_fields_accepted(t, vad="off", segment_padding=9_999)
    require_fields_accepted(t, initial_segment_padding_ms=-5)


advice("77-integers", "booleans, strings and fractions are not integers", metered=12)(
    *(
        _build_segment_refusal_step(f"{name} is not an integer", **{name: (True, "100", 1.5)})
        for name in _INTEGERS
    )
)
