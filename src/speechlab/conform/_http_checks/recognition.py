"""Checks of recognition: its requests and replies (sections 2.3, 2.4, 4.4 and 7.1)."""

from __future__ import annotations

import base64
import struct
from functools import partial
from typing import TYPE_CHECKING, Any

from speechlab.conform._model import Step, build_decorators
from speechlab.conform._probe.sounds import NOT_AUDIO, build_silence, request_speech_once, sniff_container
from speechlab.conform._probe.target import (
    Target,
    build_refusal_step,
    build_step_for_each_value,
    insist_json_object,
    require_refusal,
)
from speechlab.contract import INVALID_BASE64, NO_AUDIO, RECOGNITION_PATH, UNSUPPORTED_AUDIO, Language

if TYPE_CHECKING:
    from speechlab.conform._probe.http import Exchange

_RANGES = {
    "temperature": (0.0, 2.0),
    "top_p": (0.0, 1.0),
    "frequency_penalty": (-2.0, 2.0),
    "repetition_penalty": (1.0, 2.0),
}

check, advice = build_decorators(__name__, Target.skip_without_recognition)


def recognize_silence(t: Target, **fields: Any) -> Exchange:
    """Have a second of silence recognized."""
    return t.recognize(build_silence(), **fields)


def _build_refusal_message_step(message: str, *sounds: object, **fields: Any) -> Step:
    """Each of these recordings is refused with 400 and exactly this message."""

    def require_messages(t: Target) -> None:
        for sound in sounds:
            _require_error_message(t, t.recognize(sound, **fields), message)

    return require_messages


def _require_error_message(t: Target, reply: Exchange, message: str) -> None:
    if t.require_status(reply, 400, f"400 with error {message!r}"):
        body = reply.parse_json()
        t.require_that(isinstance(body, dict) and body.get("error") == message, f"error {message!r}", reply)


def require_fields_accepted(t: Target, **fields: Any) -> None:
    """Record a finding if the fields are refused. The audio is invalid on purpose, so that nothing is metered."""
    _require_error_message(t, t.recognize(NOT_AUDIO, **fields), UNSUPPORTED_AUDIO)


def recognize_speech_once(t: Target) -> Exchange:
    """Recognize speech that the service itself has made; one call in a run."""
    return t.get_or_make("recognized", lambda: t.recognize(request_speech_once(t).encode("wav")))


def require_language_and_confidence(t: Target, body: dict[str, Any], reply: Exchange) -> None:
    """Record findings about the two fields of both forms of a reply."""
    t.require_that(isinstance(body.get("language"), str), "language is a string", reply)
    sure = body.get("confidence")
    t.require_that(type(sure) in {int, float} and 0 <= float(sure or 0) <= 1, "confidence is 0 to 1", reply)


def require_default_form(t: Target, reply: Exchange) -> dict[str, Any]:
    """Check the default form of a reply and return it."""
    body = insist_json_object(t, reply)
    t.require_that(isinstance(body.get("text"), str), "text is a string", reply)
    require_language_and_confidence(t, body, reply)
    t.require_that("segments" not in body, "no segments", reply)
    return body


@check("54-happy", "recognition takes JSON and returns text, language and confidence", also=(78,), metered=2)
def _check_reply_form(t: Target) -> None:
    require_default_form(t, recognize_speech_once(t))


_GOOD = base64.b64encode(NOT_AUDIO).decode()
_AIFF = b"FORM" + struct.pack(">I", 100) + b"AIFFCOMM" + bytes(100)
_AVI = b"RIFF" + struct.pack("<I", 100) + b"AVI LIST" + bytes(100)
_W64, _RF64 = b"riff\x2e\x91\xcf\x11" + bytes(200), b"RF64\xff\xff\xff\xffWAVE" + bytes(200)
_ADTS = b"\xff\xf1P\x80" * 50

check("55-no-audio", "audio missing or empty: No audio data provided")(
    _build_refusal_message_step(NO_AUDIO, ..., "")
)
advice("55-null-audio", "null audio is no audio")(_build_refusal_message_step(NO_AUDIO, None))
check("56-no-base64", "audio that is not base64: Invalid base64 audio data")(
    _build_refusal_message_step(INVALID_BASE64, "@@@@", "not base64!", "あいう")
)
advice("56-no-string", "audio that is not a string is not base64")(
    _build_refusal_message_step(INVALID_BASE64, 5, ["QUJD"], {"a": 1}, True)
)
advice("57-raw-base64", "no data URI, URL-safe alphabet, line ends or missing padding")(
    _build_refusal_message_step(
        INVALID_BASE64,
        f"data:audio/wav;base64,{_GOOD}",
        "--__",
        _GOOD[:40] + "\n" + _GOOD[40:],
        " " + _GOOD,
        "QUI",
    )
)
check("58-no-format", "neither WAV nor OGG, MP3 or FLAC by its header: Unsupported audio format")(
    _build_refusal_message_step(UNSUPPORTED_AUDIO, NOT_AUDIO, _AIFF, _AVI, b".snd" + bytes(100), bytes(200))
)
advice("58-no-cousin", "W64, RF64 and ADTS are refused as well", also=(59,))(
    _build_refusal_message_step(UNSUPPORTED_AUDIO, _W64, _RF64, _ADTS)
)


@check("59-formats", "OGG, FLAC and MP3 are detected by their header", also=(60,), metered=4, quick=False)
def _check_audio_formats(t: Target) -> None:
    clip = request_speech_once(t)
    for name in ("ogg", "flac", "mp3"):
        data = clip.encode(name)
        if sniff_container(data) == name:
            require_default_form(t, t.recognize(data))


advice("61-damaged", "a valid header without decodable audio is 400")(
    _build_refusal_message_step(UNSUPPORTED_AUDIO, b"fLaC" + b"\x81" * 60, b"OggS" + b"\xa5" * 60)
)
advice("62-no-samples", "a file without samples is no audio")(
    _build_refusal_message_step(NO_AUDIO, build_silence(0.0))
)


def _check_invalid_json(t: Target) -> None:
    for body in (b"{", b"[]", b"", b"null", b"\xff", b"[" * 20_000):
        require_refusal(t, t.post_json(RECOGNITION_PATH, body, shown=repr(body[:60])), "invalid JSON")


check("64-invalid", "invalid JSON, language and VAD settings are 400")(
    _check_invalid_json,
    build_refusal_step(recognize_silence, "an invalid field", language=(5, ["ja"]), vad=("loud", 7, [])),
)
advice("64-session-id", "session_id is a string", metered=2)(
    build_refusal_step(recognize_silence, "session_id is not a string", session_id=(5, {"a": 1}))
)


@advice("65-order", "JSON, audio, other fields, base64, header: in this order")
def _check_error_order(t: Target) -> None:
    _require_error_message(t, t.recognize("", top_p=7), NO_AUDIO)
    reply = t.recognize("@@@@", top_p=7)
    right = reply.status == 400 and INVALID_BASE64.encode() not in reply.body
    t.require_that(right, "top_p is reported first", reply)


@check("66-language", "a given language is echoed; otherwise ja, en or zh is identified", metered=5)
def _check_language(t: Target) -> None:
    codes = {str(each) for each in Language}
    body = require_default_form(t, recognize_speech_once(t))
    t.require_that(body.get("language") in codes, "ja, en or zh is identified", recognize_speech_once(t))
    for code in sorted(codes):  # only one of them can be the language of the audio
        reply = t.recognize(request_speech_once(t).encode("wav"), language=code)
        t.require_that(
            require_default_form(t, reply).get("language") == code, f"the given language, {code}", reply
        )


advice("67-odd-language", "unsupported languages are 400; JA and ja-JP mean ja", metered=1)(
    build_refusal_step(recognize_silence, "an unsupported language", language=("tlh",)),
    build_step_for_each_value(require_fields_accepted, language=("JA", "ja-JP", "")),
)
check("68-hotwords", "hotwords is an array of strings, which may be empty")(
    build_refusal_step(
        recognize_silence, "hotwords is not an array of strings", hotwords=("word", [5], {"a": 1}, [["a"]])
    ),
    build_step_for_each_value(require_fields_accepted, hotwords=([], ["word", "言葉"])),
)


@check("69-ranges", "temperature, top_p and the penalties have ranges that include their ends")
def _check_option_ranges(t: Target) -> None:
    for name, (low, high) in _RANGES.items():
        build_refusal_step(
            recognize_silence, f"{name} is {low:g} to {high:g}", **{name: (low - 0.01, high + 0.01)}
        )(t)
        build_step_for_each_value(require_fields_accepted, **{name: (low, high)})(t)


@check("69-ends", "recognition works at the ends of all ranges", metered=3, quick=False)
def _check_range_ends(t: Target) -> None:
    clip = request_speech_once(t).encode("wav")
    for end in (0, 1):
        require_default_form(t, t.recognize(clip, **{name: limits[end] for name, limits in _RANGES.items()}))


@check("70-numbers", "integers are numbers; booleans, strings and NaN are not")
def _check_number_types(t: Target) -> None:
    for name in _RANGES:
        build_refusal_step(recognize_silence, f"{name} is not a number", **{name: (True, "1.0", [1])})(t)
        require_fields_accepted(t, **{name: 1})
    body = b'{"audio": "' + base64.b64encode(build_silence()) + b'", "top_p": NaN}'
    require_refusal(
        t, t.post_json(RECOGNITION_PATH, body, shown='{"audio": …, "top_p": NaN}'), "NaN is not a number"
    )


_build_vad_refusal_step = partial(build_refusal_step, recognize_silence, "not a setting of vad")
check("71-vad", "vad is 0, 1, off, on or segments")(
    build_step_for_each_value(require_fields_accepted, vad=(0, 1, "off", "on", "segments")),
    _build_vad_refusal_step(vad=(2, -1, "yes", 0.5)),
)
advice("71-vad-case", '"0" and "1" are settings of vad; true and Segments are not', metered=2)(
    build_step_for_each_value(require_fields_accepted, vad=("0", "1")),
    _build_vad_refusal_step(vad=(True, "Segments")),
)


@advice("73-vad-filter", "vad_filter is not an alias of vad, and is ignored", metered=2, quick=False)
def _check_vad_filter_ignored(t: Target) -> None:
    require_default_form(t, t.recognize(request_speech_once(t).encode("wav"), vad_filter="segments"))


@advice("82-silence", "silence is 200 with an empty text and confidence 0", metered=1)
def _check_silence_has_no_text(t: Target) -> None:
    reply = recognize_silence(t)
    body = require_default_form(t, reply)
    t.require_that(body.get("text") == "" and body.get("confidence") == 0, "no text for silence", reply)


def _build_legacy_messages(data: bytes, kind: str) -> list[dict[str, Any]]:
    audio = {"data": base64.b64encode(data).decode(), "format": kind}
    return [{"role": "user", "content": [{"type": "input_audio", "input_audio": audio}]}]


@advice("83-legacy", "the messages form is accepted; model is ignored", also=(84,), metered=2, quick=False)
def _check_legacy_messages(t: Target) -> None:
    fields = {
        "messages": _build_legacy_messages(request_speech_once(t).encode("wav"), "mp3"),
        "model": "any/model",
    }
    shown = '{"messages": [… input_audio …], "model": "any/model"}'
    require_default_form(t, t.post_json(RECOGNITION_PATH, fields, shown=shown))


advice("84-legacy-empty", "messages without audio: No audio data provided")(
    _build_refusal_message_step(
        NO_AUDIO, ..., messages=[{"role": "user", "content": [{"type": "text", "text": "a"}]}]
    )
)


@advice("85-legacy-both", "audio takes precedence over messages")
def _check_audio_precedence(t: Target) -> None:
    fields = {"audio": "@@@@", "messages": _build_legacy_messages(build_silence(), "wav")}
    reply = t.post_json(RECOGNITION_PATH, fields, shown='{"audio": "@@@@", "messages": […]}')
    _require_error_message(t, reply, INVALID_BASE64)
