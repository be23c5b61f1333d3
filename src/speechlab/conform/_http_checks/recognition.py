"""Checks of recognition: its requests and replies (sections 2.3, 2.4, 4.4 and 7.1)."""

from __future__ import annotations

import base64
import struct
from functools import partial
from typing import TYPE_CHECKING, Any

from speechlab.conform._model import Step, checks_of
from speechlab.conform._probe.sounds import NOT_AUDIO, silence, sniffs, speech
from speechlab.conform._probe.target import Target, json_object, refused, refuses, with_each
from speechlab.contract import INVALID_BASE64, NO_AUDIO, RECOGNITION_PATH, UNSUPPORTED_AUDIO, Language

if TYPE_CHECKING:
    from speechlab.conform._probe.http import Exchange

_RANGES = {
    "temperature": (0.0, 2.0),
    "top_p": (0.0, 1.0),
    "frequency_penalty": (-2.0, 2.0),
    "repetition_penalty": (1.0, 2.0),
}

check, advice = checks_of(__name__, Target.need_recognition)


def of_silence(t: Target, **fields: Any) -> Exchange:
    """Have a second of silence recognised."""
    return t.recognize(silence(), **fields)


def _refused_with(message: str, *sounds: object, **fields: Any) -> Step:
    """Each of these recordings is refused with 400 and exactly this message."""

    def step(t: Target) -> None:
        for sound in sounds:
            _has_message(t, t.recognize(sound, **fields), message)

    return step


def _has_message(t: Target, reply: Exchange, message: str) -> None:
    if t.answers(reply, 400, f"400 with error {message!r}"):
        body = reply.json()
        t.require(isinstance(body, dict) and body.get("error") == message, f"error {message!r}", reply)


def accepted(t: Target, **fields: Any) -> None:
    """Record a finding if the fields are refused. The audio is invalid on purpose, so that nothing is metered."""
    _has_message(t, t.recognize(NOT_AUDIO, **fields), UNSUPPORTED_AUDIO)


def recognized(t: Target) -> Exchange:
    """Recognise speech that the service itself has made; one call in a run."""
    return t.kept("heard", lambda: t.recognize(speech(t).encode("wav")))


def language_and_confidence(t: Target, body: dict[str, Any], reply: Exchange) -> None:
    """Record findings about the two fields of both forms of a reply."""
    t.require(isinstance(body.get("language"), str), "language is a string", reply)
    sure = body.get("confidence")
    t.require(type(sure) in {int, float} and 0 <= float(sure or 0) <= 1, "confidence is 0 to 1", reply)


def default_form(t: Target, reply: Exchange) -> dict[str, Any]:
    """Check the default form of a reply and return it."""
    body = json_object(t, reply)
    t.require(isinstance(body.get("text"), str), "text is a string", reply)
    language_and_confidence(t, body, reply)
    t.require("segments" not in body, "no segments", reply)
    return body


@check("54-happy", "recognition takes JSON and returns text, language and confidence", also=(78,), metered=2)
def _happy(t: Target) -> None:
    default_form(t, recognized(t))


_GOOD = base64.b64encode(NOT_AUDIO).decode()
_AIFF = b"FORM" + struct.pack(">I", 100) + b"AIFFCOMM" + bytes(100)
_AVI = b"RIFF" + struct.pack("<I", 100) + b"AVI LIST" + bytes(100)
_W64, _RF64 = b"riff\x2e\x91\xcf\x11" + bytes(200), b"RF64\xff\xff\xff\xffWAVE" + bytes(200)
_ADTS = b"\xff\xf1P\x80" * 50

check("55-no-audio", "audio missing or empty: No audio data provided")(_refused_with(NO_AUDIO, ..., ""))
advice("55-null-audio", "null audio is no audio")(_refused_with(NO_AUDIO, None))
check("56-no-base64", "audio that is not base64: Invalid base64 audio data")(
    _refused_with(INVALID_BASE64, "@@@@", "not base64!", "あいう")
)
advice("56-no-string", "audio that is not a string is not base64")(
    _refused_with(INVALID_BASE64, 5, ["QUJD"], {"a": 1}, True)
)
advice("57-raw-base64", "no data URI, URL-safe alphabet, line ends or missing padding")(
    _refused_with(
        INVALID_BASE64,
        f"data:audio/wav;base64,{_GOOD}",
        "--__",
        _GOOD[:40] + "\n" + _GOOD[40:],
        " " + _GOOD,
        "QUI",
    )
)
check("58-no-format", "neither WAV nor OGG, MP3 or FLAC by its header: Unsupported audio format")(
    _refused_with(UNSUPPORTED_AUDIO, NOT_AUDIO, _AIFF, _AVI, b".snd" + bytes(100), bytes(200))
)
advice("58-no-cousin", "W64, RF64 and ADTS are refused as well", also=(59,))(
    _refused_with(UNSUPPORTED_AUDIO, _W64, _RF64, _ADTS)
)


@check("59-formats", "OGG, FLAC and MP3 are detected by their header", also=(60,), metered=4, quick=False)
def _formats(t: Target) -> None:
    clip = speech(t)
    for name in ("ogg", "flac", "mp3"):
        data = clip.encode(name)
        if sniffs(data) == name:
            default_form(t, t.recognize(data))


advice("61-damaged", "a valid header without decodable audio is 400")(
    _refused_with(UNSUPPORTED_AUDIO, b"fLaC" + b"\x81" * 60, b"OggS" + b"\xa5" * 60)
)
advice("62-no-samples", "a file without samples is no audio")(_refused_with(NO_AUDIO, silence(0.0)))


def _invalid_json(t: Target) -> None:
    for body in (b"{", b"[]", b"", b"null", b"\xff", b"[" * 20_000):
        refused(t, t.post(RECOGNITION_PATH, body, shown=repr(body[:60])), "invalid JSON")


check("64-invalid", "invalid JSON, language and VAD settings are 400")(
    _invalid_json, refuses(of_silence, "an invalid field", language=(5, ["ja"]), vad=("loud", 7, []))
)
advice("64-session-id", "session_id is a string", metered=2)(
    refuses(of_silence, "session_id is not a string", session_id=(5, {"a": 1}))
)


@advice("65-order", "JSON, audio, other fields, base64, header: in this order")
def _order(t: Target) -> None:
    _has_message(t, t.recognize("", top_p=7), NO_AUDIO)
    reply = t.recognize("@@@@", top_p=7)
    right = reply.status == 400 and INVALID_BASE64.encode() not in reply.body
    t.require(right, "top_p is reported first", reply)


@check("66-language", "a given language is echoed; otherwise ja, en or zh is identified", metered=5)
def _language(t: Target) -> None:
    codes = {str(each) for each in Language}
    body = default_form(t, recognized(t))
    t.require(body.get("language") in codes, "ja, en or zh is identified", recognized(t))
    for code in sorted(codes):  # only one of them can be the language of the audio
        reply = t.recognize(speech(t).encode("wav"), language=code)
        t.require(default_form(t, reply).get("language") == code, f"the given language, {code}", reply)


advice("67-odd-language", "unsupported languages are 400; JA and ja-JP mean ja", metered=1)(
    refuses(of_silence, "an unsupported language", language=("tlh",)),
    with_each(accepted, language=("JA", "ja-JP", "")),
)
check("68-hotwords", "hotwords is an array of strings, which may be empty")(
    refuses(of_silence, "hotwords is not an array of strings", hotwords=("word", [5], {"a": 1}, [["a"]])),
    with_each(accepted, hotwords=([], ["word", "言葉"])),
)


@check("69-ranges", "temperature, top_p and the penalties have ranges that include their ends")
def _ranges(t: Target) -> None:
    for name, (low, high) in _RANGES.items():
        refuses(of_silence, f"{name} is {low:g} to {high:g}", **{name: (low - 0.01, high + 0.01)})(t)
        with_each(accepted, **{name: (low, high)})(t)


@check("69-ends", "recognition works at the ends of all ranges", metered=3, quick=False)
def _ends(t: Target) -> None:
    clip = speech(t).encode("wav")
    for end in (0, 1):
        default_form(t, t.recognize(clip, **{name: limits[end] for name, limits in _RANGES.items()}))


@check("70-numbers", "integers are numbers; booleans, strings and NaN are not")
def _numbers(t: Target) -> None:
    for name in _RANGES:
        refuses(of_silence, f"{name} is not a number", **{name: (True, "1.0", [1])})(t)
        accepted(t, **{name: 1})
    body = b'{"audio": "' + base64.b64encode(silence()) + b'", "top_p": NaN}'
    refused(t, t.post(RECOGNITION_PATH, body, shown='{"audio": …, "top_p": NaN}'), "NaN is not a number")


_no_setting = partial(refuses, of_silence, "not a setting of vad")
check("71-vad", "vad is 0, 1, off, on or segments")(
    with_each(accepted, vad=(0, 1, "off", "on", "segments")), _no_setting(vad=(2, -1, "yes", 0.5))
)
advice("71-vad-case", '"0" and "1" are settings of vad; true and Segments are not', metered=2)(
    with_each(accepted, vad=("0", "1")), _no_setting(vad=(True, "Segments"))
)


@advice("73-vad-filter", "vad_filter is not an alias of vad, and is ignored", metered=2, quick=False)
def _vad_filter(t: Target) -> None:
    default_form(t, t.recognize(speech(t).encode("wav"), vad_filter="segments"))


@advice("82-silence", "silence is 200 with an empty text and confidence 0", metered=1)
def _silence(t: Target) -> None:
    reply = of_silence(t)
    body = default_form(t, reply)
    t.require(body.get("text") == "" and body.get("confidence") == 0, "no text for silence", reply)


def _messages(data: bytes, kind: str) -> list[dict[str, Any]]:
    audio = {"data": base64.b64encode(data).decode(), "format": kind}
    return [{"role": "user", "content": [{"type": "input_audio", "input_audio": audio}]}]


@advice("83-legacy", "the messages form is accepted; model is ignored", also=(84,), metered=2, quick=False)
def _legacy(t: Target) -> None:
    fields = {"messages": _messages(speech(t).encode("wav"), "mp3"), "model": "any/model"}
    shown = '{"messages": [… input_audio …], "model": "any/model"}'
    default_form(t, t.post(RECOGNITION_PATH, fields, shown=shown))


advice("84-legacy-empty", "messages without audio: No audio data provided")(
    _refused_with(NO_AUDIO, ..., messages=[{"role": "user", "content": [{"type": "text", "text": "a"}]}])
)


@advice("85-legacy-both", "audio takes precedence over messages")
def _legacy_both(t: Target) -> None:
    fields = {"audio": "@@@@", "messages": _messages(silence(), "wav")}
    reply = t.post(RECOGNITION_PATH, fields, shown='{"audio": "@@@@", "messages": […]}')
    _has_message(t, reply, INVALID_BASE64)
