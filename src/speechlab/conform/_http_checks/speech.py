"""Checks of the request of ``POST /tts`` (section 2.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab.conform._model import check
from speechlab.conform._probe.findings import Untried
from speechlab.conform._probe.sounds import clip_of
from speechlab.conform._probe.target import (
    another_rate,
    formats_of,
    has_one_rate,
    rates_of,
    refused,
    unlisted_rate,
)
from speechlab.contract import DEFAULT_SAMPLE_RATE, SPEECH_PATH, AudioFormat

if TYPE_CHECKING:
    from speechlab.conform._probe.http import Exchange
    from speechlab.conform._probe.target import Target

_ODD_RATE = 12_345
_BILINGUAL = "Hello. こんにちは。"
"""Text for a request in which the language of the voice does not matter."""


def _rate(t: Target, reply: Exchange, wanted: int) -> None:
    t.insist(reply.status == 200, "200", reply)
    clip = clip_of(reply.body, "wav", wanted)
    t.insist(clip is not None, "the audio decodes", reply)
    assert clip is not None
    t.require(clip.sample_rate == wanted, f"the audio has {wanted:,} Hz, not {clip.sample_rate:,}", reply)


def _needs_wav(voice: dict[str, Any]) -> None:
    if "wav" not in formats_of(voice):
        raise Untried("rates are read from WAV headers, but the voice has no WAV")


@check("voice-id", 27, title="a voice_id that is missing, null, not a string or not a UUID is 400")
def _voice_id(t: Target) -> None:
    values: tuple[Any, ...] = (..., None, 5, [], "", "no-uuid")
    for value in values:
        refused(t, t.speak(voice_id=value), "voice_id is missing or invalid")


@check("unknown-voice", 27, title="an unknown voice is 400", advisory=True)
def _unknown_voice(t: Target) -> None:
    refused(t, t.speak(voice_id=t.unknown_id()), "voice_id is not in the catalogue")


@check("id-case", 27, title="voice ids are accepted in any case", advisory=True, metered=1, quick=False)
def _id_case(t: Target) -> None:
    reply = t.speak(voice_id=t.voice["id"].upper())
    t.require(reply.status == 200, "200", reply)


@check("text", 28, title="a text that is missing, null or not a string is 400")
def _text(t: Target) -> None:
    values: tuple[Any, ...] = (..., None, 5, ["a"], {})
    for value in values:
        refused(t, t.speak(text=value), "text is missing or invalid")


@check("blank", 28, title="an empty or blank text is 400", advisory=True)
def _blank(t: Target) -> None:
    for value in ("", "  \n", "　"):
        refused(t, t.speak(text=value), "text is blank")


@check("too-long", 29, 30, title="a text over the limit is 400")
def _too_long(t: Target) -> None:
    over = ("a " * t.options.text_limit)[: t.options.text_limit + 1]
    refused(t, t.speak(text=over), "one code point over the limit")


@check(
    "code-points", 29, title="the limit counts code points, not UTF-16 units or bytes", metered=2, quick=False
)
def _code_points(t: Target) -> None:
    reply = t.speak(text=t.longest_text, stream=True, format=t.stream_format, first_only=True)
    t.require(reply.status == 200, "a text of exactly the maximum of code points is spoken", reply)


@check("format", 31, title="a format that is missing or unknown is 400")
def _format(t: Target) -> None:
    for value in (..., None, "", "aac", 5, ["wav"]):
        refused(t, t.speak(format=value), "format is missing or unknown")


@check("format-case", 31, title="formats are case-sensitive", advisory=True, metered=1)
def _format_case(t: Target) -> None:
    refused(t, t.speak(format=t.format.upper()), "formats are lower case")


@check(
    "format-lacking", 31, title="a format that the voice lacks is 400", needs="a voice that lacks a format"
)
def _format_lacking(t: Target) -> None:
    every = {str(each) for each in AudioFormat}
    voice = t.voice_where(lambda each: bool(every - set(formats_of(each))), "that lacks a format")
    for name in sorted(every - set(formats_of(voice))):
        refused(t, t.speak(voice_id=voice["id"], format=name), "the voice does not list it")


@check("stream-type", 32, title="stream must be a boolean; null counts as absent", advisory=True, metered=5)
def _stream_type(t: Target) -> None:
    values: tuple[Any, ...] = ("true", 1, 0, [])
    for value in values:
        refused(t, t.speak(stream=value), "stream is not a boolean")
    reply = t.speak(stream=None)
    t.require(reply.status == 200 and reply.framing != "chunked", "null is false", reply)


@check("mute-stream", 33, title="stream=true on a voice that does not stream is 400", needs="such a voice")
def _mute_stream(t: Target) -> None:
    voice = t.voice_where(lambda each: each.get("streaming") is False, "with streaming false")
    for name in formats_of(voice):
        refused(t, t.speak(voice_id=voice["id"], format=name, stream=True), "the voice does not stream")


@check(
    "unstreamable",
    33,
    title="a format that cannot stream is 400 with stream=true, and valid without",
    metered=6,
)
def _unstreamable(t: Target) -> None:
    assert t.stream_format
    formats = [name for name in formats_of(t.voice) if t.speak(format=name, stream=True).status != 200]
    if not formats:
        raise Untried("the voice streams in each of its formats")
    for name in formats:
        refused(t, t.speak(format=name, stream=True), "the provider cannot stream it")
        reply = t.speak(format=name)
        t.require(reply.status == 200, "200 without stream, because the voice lists the format", reply)


@check("default-rate", 34, title="without a sample_rate, or with 0, the audio has 24,000 Hz", metered=2)
def _default_rate(t: Target) -> None:
    _needs_wav(t.voice)
    for value in (..., 0):
        _rate(t, t.speak(format="wav", sample_rate=value), DEFAULT_SAMPLE_RATE)


@check("null-rate", 34, title="sample_rate null counts as omitted", advisory=True, metered=1, quick=False)
def _null_rate(t: Target) -> None:
    _needs_wav(t.voice)
    _rate(t, t.speak(format="wav", sample_rate=None), DEFAULT_SAMPLE_RATE)


@check("single-rate", 35, title="a voice with one rate accepts no other", needs="a voice with one rate")
def _single_rate(t: Target) -> None:
    voice = t.voice_where(has_one_rate, "with one sample rate")
    reply = t.speak(voice_id=voice["id"], format=formats_of(voice)[0], sample_rate=unlisted_rate(voice))
    refused(t, reply, "an override is only for voices with several rates")


@check(
    "single-rate-same",
    35,
    title="a voice with one rate refuses even this rate, if it is given",
    advisory=True,
    metered=1,
    needs="a voice with one rate",
)
def _single_rate_same(t: Target) -> None:
    voice = t.voice_where(has_one_rate, "with one sample rate")
    reply = t.speak(voice_id=voice["id"], format=formats_of(voice)[0], sample_rate=rates_of(voice)[0])
    refused(t, reply, "an override is only for voices with several rates")


@check("odd-rate", 36, title="a rate that is not listed, negative or not an integer is 400")
def _odd_rate(t: Target) -> None:
    for value in (_ODD_RATE, -1, -24_000, 22_050.5, True, "16000"):
        refused(t, t.speak(sample_rate=value), "not a rate of the voice")


@check(
    "override",
    36,
    37,
    title="the audio has the requested rate",
    metered=1,
    needs="a voice with several rates",
)
def _override(t: Target) -> None:
    voice = t.voice_where(
        lambda each: len(rates_of(each)) > 1 and "wav" in formats_of(each), "with several rates and WAV"
    )
    rate_hz = next(rate for rate in rates_of(voice) if rate != DEFAULT_SAMPLE_RATE)
    text = t.text if voice is t.voice else _BILINGUAL
    _rate(t, t.speak(voice_id=voice["id"], text=text, format="wav", sample_rate=rate_hz), rate_hz)


@check("q-ogg", 37, title="provider Q accepts a rate, but not with ogg", metered=2, needs="--q-voice")
def _q_ogg(t: Target) -> None:
    voice = t.q_voice
    rate = another_rate(voice)
    if rate is None or not {"ogg", "wav"} <= set(formats_of(voice)):
        raise Untried("needs a voice of provider Q with ogg, WAV and several rates")
    fields = {"voice_id": voice["id"], "text": _BILINGUAL}
    refused(t, t.speak(**fields, format="ogg", sample_rate=rate), "provider Q rejects an override with ogg")
    reply = t.speak(**fields, format="ogg", sample_rate=0)
    t.require(reply.status == 200, "0 is not an override", reply)
    _rate(t, t.speak(**fields, format="wav", sample_rate=rate), rate)


@check(
    "q-ogg-24000", 37, title="provider Q rejects 24,000 with ogg", advisory=True, metered=1, needs="--q-voice"
)
def _q_ogg_default(t: Target) -> None:
    reply = t.speak(voice_id=t.q_voice["id"], text=_BILINGUAL, format="ogg", sample_rate=24_000)
    refused(t, reply, "24,000 is an override, too")


@check("q-temperature", 38, title="provider Q accepts temperature, also 0.0", metered=2, needs="--q-voice")
def _q_temperature(t: Target) -> None:
    for value in (0.0, 0.7):
        voice = t.q_voice
        fields = {"voice_id": voice["id"], "text": _BILINGUAL, "format": formats_of(voice)[0]}
        reply = t.speak(**fields, temperature=value)
        t.require(reply.status == 200, "200", reply)


@check(
    "temperature",
    39,
    title="temperature is a finite number; other voices ignore it",
    advisory=True,
    metered=4,
)
def _temperature(t: Target) -> None:
    for value in ("hot", True, [0.5]):
        refused(t, t.speak(temperature=value), "temperature is not a number")
    reply = t.speak(temperature=0.5)
    t.require(reply.status == 200, "a number is accepted", reply)


@check("unknown-field", 40, title="unknown fields are ignored", advisory=True, metered=1, quick=False)
def _unknown_field(t: Target) -> None:
    reply = t.speak(conform_unknown={"a": 1})
    t.require(reply.status == 200, "200", reply)


def _hostile(t: Target) -> list[bytes]:
    start = f'{{"voice_id": "{t.voice["id"]}", "format": "wav", "text": '.encode()
    return [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"5",
        b"{",
        b"\xff\xfe\x00",
        b"\x00" * 16,
        b"[" * 20_000,
        b'{"a":' * 20_000,
        start + b'"\xc3\x28"}',
        start + b"9" * 5_000 + b"}",
    ]


@check("hostile", 41, 13, title="bodies that are not a JSON object are 400, and never 500")
def _hostile_bodies(t: Target) -> None:
    for body in _hostile(t):
        reply = t.post(SPEECH_PATH, body, shown=repr(body[:60]))
        refused(t, reply, "the body is not a JSON object")
        t.require(b"Traceback" not in reply.body, "no traceback", reply)


@check("odd-json", 41, title="a byte-order mark, NaN and lone surrogates are 400", advisory=True, metered=3)
def _odd_json(t: Target) -> None:
    start = f'{{"voice_id": "{t.voice["id"]}", "format": "{t.format}", "text": "{t.text}'.encode()
    for body in (b"\xef\xbb\xbf" + start + b'"}', start + b'", "sample_rate": NaN}', start + b'\\ud800"}'):
        refused(t, t.post(SPEECH_PATH, body), "not valid JSON by RFC 8259")


@check("refused-first", 45, title="with stream=true, refusals come before the first byte of audio")
def _refused_first(t: Target) -> None:
    for fields in ({"format": "aac"}, {"sample_rate": _ODD_RATE}, {"voice_id": "no-uuid"}):
        reply = t.speak(stream=True, **fields)
        refused(t, reply, "refused before the stream begins")
        t.require(reply.media_type == "application/json", "an error body instead of audio", reply)
