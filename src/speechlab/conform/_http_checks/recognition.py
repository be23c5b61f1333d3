"""Checks of recognition: its requests and replies (sections 2.3, 2.4, 4.4 and 7.1)."""

from __future__ import annotations

import base64
import struct
from functools import partial
from typing import TYPE_CHECKING, Any

from speechlab.conform._model import check as any_check
from speechlab.conform._probe.sounds import NOT_AUDIO, no_samples, silence, sniffs, speech
from speechlab.conform._probe.target import Target, json_object, refused
from speechlab.contract import INVALID_BASE64, NO_AUDIO, RECOGNITION_PATH, UNSUPPORTED_AUDIO, Language

if TYPE_CHECKING:
    from speechlab.conform._probe.http import Exchange

_RANGES = {
    "temperature": (0.0, 2.0),
    "top_p": (0.0, 1.0),
    "frequency_penalty": (-2.0, 2.0),
    "repetition_penalty": (1.0, 2.0),
}

check = partial(any_check, first=Target.need_recognition)
"""Decorator of checks that run only if the service has recognition."""


def refused_with(t: Target, reply: Exchange, message: str) -> None:
    """Record a finding unless the reply is a 400 with exactly this message."""
    if t.require(reply.status == 400, f"400 with error {message!r}", reply):
        body = reply.json()
        t.require(isinstance(body, dict) and body.get("error") == message, f"error {message!r}", reply)


def accepted(t: Target, **fields: Any) -> None:
    """Record a finding if the fields are refused. The audio is invalid on purpose, so that nothing is metered."""
    refused_with(t, t.recognize(NOT_AUDIO, **fields), UNSUPPORTED_AUDIO)


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


@check("happy", 54, 78, title="recognition takes JSON and returns text, language and confidence", metered=2)
def _happy(t: Target) -> None:
    default_form(t, recognized(t))


@check("no-audio", 55, title="audio missing or empty: No audio data provided")
def _no_audio(t: Target) -> None:
    refused_with(t, t.recognize(), NO_AUDIO)
    refused_with(t, t.recognize(""), NO_AUDIO)


@check("null-audio", 55, title="null audio is no audio", advisory=True)
def _null_audio(t: Target) -> None:
    refused_with(t, t.recognize(None), NO_AUDIO)


@check("no-base64", 56, title="audio that is not base64: Invalid base64 audio data")
def _no_base64(t: Target) -> None:
    for value in ("@@@@", "not base64!", "あいう"):
        refused_with(t, t.recognize(value), INVALID_BASE64)


@check("no-string", 56, title="audio that is not a string is not base64", advisory=True)
def _no_string(t: Target) -> None:
    for value in (5, ["QUJD"], {"a": 1}, True):
        refused_with(t, t.recognize(value), INVALID_BASE64)


@check("raw-base64", 57, title="no data URI, URL-safe alphabet, line ends or missing padding", advisory=True)
def _raw_base64(t: Target) -> None:
    good = base64.b64encode(NOT_AUDIO).decode()
    for value in (f"data:audio/wav;base64,{good}", "--__", good[:40] + "\n" + good[40:], " " + good, "QUI"):
        refused_with(t, t.recognize(value), INVALID_BASE64)


@check("no-format", 58, title="neither WAV nor OGG, MP3 or FLAC by its header: Unsupported audio format")
def _no_format(t: Target) -> None:
    aiff = b"FORM" + struct.pack(">I", 100) + b"AIFFCOMM" + bytes(100)
    avi = b"RIFF" + struct.pack("<I", 100) + b"AVI LIST" + bytes(100)
    for data in (NOT_AUDIO, aiff, avi, b".snd" + bytes(100), bytes(200)):
        refused_with(t, t.recognize(data), UNSUPPORTED_AUDIO)


@check("no-cousin", 58, 59, title="W64, RF64 and ADTS are refused as well", advisory=True)
def _no_cousin(t: Target) -> None:
    for data in (
        b"riff\x2e\x91\xcf\x11" + bytes(200),
        b"RF64\xff\xff\xff\xffWAVE" + bytes(200),
        b"\xff\xf1P\x80" * 50,
    ):
        refused_with(t, t.recognize(data), UNSUPPORTED_AUDIO)


@check("formats", 59, 60, title="OGG, FLAC and MP3 are detected by their header", metered=4, quick=False)
def _formats(t: Target) -> None:
    clip = speech(t)
    for name in ("ogg", "flac", "mp3"):
        data = clip.encode(name)
        if sniffs(data) == name:
            default_form(t, t.recognize(data))


@check("damaged", 61, title="a valid header without decodable audio is 400", advisory=True)
def _damaged(t: Target) -> None:
    for data in (b"fLaC" + b"\x81" * 60, b"OggS" + b"\xa5" * 60):
        refused_with(t, t.recognize(data), UNSUPPORTED_AUDIO)


@check("no-samples", 62, title="a file without samples is no audio", advisory=True)
def _no_samples(t: Target) -> None:
    refused_with(t, t.recognize(no_samples()), NO_AUDIO)


@check("invalid", 64, title="invalid JSON, language and VAD settings are 400")
def _invalid(t: Target) -> None:
    for body in (b"{", b"[]", b"", b"null", b"\xff", b"[" * 20_000):
        refused(t, t.post(RECOGNITION_PATH, body, shown=repr(body[:60])), "invalid JSON")
    rows: tuple[dict[str, Any], ...] = (
        {"language": 5},
        {"language": ["ja"]},
        {"vad": "loud"},
        {"vad": 7},
        {"vad": []},
    )
    for fields in rows:
        refused(t, t.recognize(silence(), **fields), "an invalid field")


@check("session-id", 64, title="session_id is a string", advisory=True, metered=2)
def _session_id(t: Target) -> None:
    for value in (5, {"a": 1}):
        refused(t, t.recognize(silence(), session_id=value), "session_id is not a string")


@check("order", 65, title="JSON, audio, other fields, base64, header: in this order", advisory=True)
def _order(t: Target) -> None:
    refused_with(t, t.recognize("", top_p=7), NO_AUDIO)
    reply = t.recognize("@@@@", top_p=7)
    t.require(
        reply.status == 400 and INVALID_BASE64.encode() not in reply.body, "top_p is reported first", reply
    )


@check("language", 66, title="a given language is echoed; otherwise ja, en or zh is identified", metered=5)
def _language(t: Target) -> None:
    codes = {str(each) for each in Language}
    body = default_form(t, recognized(t))
    t.require(body.get("language") in codes, "ja, en or zh is identified", recognized(t))
    for code in sorted(codes):  # only one of them can be the language of the audio
        reply = t.recognize(speech(t).encode("wav"), language=code)
        t.require(default_form(t, reply).get("language") == code, f"the given language, {code}", reply)


@check(
    "odd-language", 67, title="unsupported languages are 400; JA and ja-JP mean ja", advisory=True, metered=1
)
def _odd_language(t: Target) -> None:
    refused(t, t.recognize(silence(), language="tlh"), "an unsupported language")
    for code in ("JA", "ja-JP", ""):
        accepted(t, language=code)


@check("hotwords", 68, title="hotwords is an array of strings, which may be empty")
def _hotwords(t: Target) -> None:
    invalid: tuple[Any, ...] = ("word", [5], {"a": 1}, [["a"]])
    for value in invalid:
        refused(t, t.recognize(silence(), hotwords=value), "hotwords is not an array of strings")
    for words in ([], ["word", "言葉"]):
        accepted(t, hotwords=words)


@check("ranges", 69, title="temperature, top_p and the penalties have ranges that include their ends")
def _ranges(t: Target) -> None:
    for name, (low, high) in _RANGES.items():
        for value in (low - 0.01, high + 0.01):
            refused(t, t.recognize(silence(), **{name: value}), f"{name} is {low:g} to {high:g}")
        for value in (low, high):
            accepted(t, **{name: value})


@check("ends", 69, title="recognition works at the ends of all ranges", metered=3, quick=False)
def _ends(t: Target) -> None:
    clip = speech(t).encode("wav")
    for end in (0, 1):
        default_form(t, t.recognize(clip, **{name: limits[end] for name, limits in _RANGES.items()}))


@check("numbers", 70, title="integers are numbers; booleans, strings and NaN are not")
def _numbers(t: Target) -> None:
    for name in _RANGES:
        for value in (True, "1.0", [1]):
            refused(t, t.recognize(silence(), **{name: value}), f"{name} is not a number")
        accepted(t, **{name: 1})
    body = b'{"audio": "' + base64.b64encode(silence()) + b'", "top_p": NaN}'
    refused(t, t.post(RECOGNITION_PATH, body, shown='{"audio": …, "top_p": NaN}'), "NaN is not a number")


@check("vad", 71, title="vad is 0, 1, off, on or segments")
def _vad(t: Target) -> None:
    for setting in (0, 1, "off", "on", "segments"):
        accepted(t, vad=setting)
    for value in (2, -1, "yes", 0.5):
        refused(t, t.recognize(silence(), vad=value), "not a setting of vad")


@check(
    "vad-case",
    71,
    title='"0" and "1" are settings of vad; true and Segments are not',
    advisory=True,
    metered=2,
)
def _vad_case(t: Target) -> None:
    for setting in ("0", "1"):
        accepted(t, vad=setting)
    for value in (True, "Segments"):
        refused(t, t.recognize(silence(), vad=value), "not a setting of vad")


@check(
    "vad-filter",
    73,
    title="vad_filter is not an alias of vad, and is ignored",
    advisory=True,
    metered=2,
    quick=False,
)
def _vad_filter(t: Target) -> None:
    default_form(t, t.recognize(speech(t).encode("wav"), vad_filter="segments"))


@check("silence", 82, title="silence is 200 with an empty text and confidence 0", advisory=True, metered=1)
def _silence(t: Target) -> None:
    reply = t.recognize(silence())
    body = default_form(t, reply)
    t.require(body.get("text") == "" and body.get("confidence") == 0, "no text for silence", reply)


def _messages(part: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [part]}]


@check(
    "legacy",
    83,
    84,
    title="the messages form is accepted; model is ignored",
    advisory=True,
    metered=2,
    quick=False,
)
def _legacy(t: Target) -> None:
    data = base64.b64encode(speech(t).encode("wav")).decode()
    content = {"type": "input_audio", "input_audio": {"data": data, "format": "mp3"}}
    fields = {"messages": _messages(content), "model": "any/model"}
    reply = t.post(RECOGNITION_PATH, fields, shown='{"messages": [… input_audio …], "model": "any/model"}')
    default_form(t, reply)


@check("legacy-empty", 84, title="messages without audio: No audio data provided", advisory=True)
def _legacy_empty(t: Target) -> None:
    refused_with(t, t.recognize(messages=_messages({"type": "text", "text": "a"})), NO_AUDIO)


@check("legacy-both", 85, title="audio takes precedence over messages", advisory=True)
def _legacy_both(t: Target) -> None:
    data = base64.b64encode(silence()).decode()
    content = {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}
    fields = {"audio": "@@@@", "messages": _messages(content)}
    refused_with(
        t, t.post(RECOGNITION_PATH, fields, shown='{"audio": "@@@@", "messages": […]}'), INVALID_BASE64
    )
