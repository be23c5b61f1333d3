"""Checks of the request of ``POST /tts`` (section 2.2)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from speechlab.conform._model import build_decorators
from speechlab.conform._probe.findings import CheckSkipped
from speechlab.conform._probe.sounds import decode_clip
from speechlab.conform._probe.target import (
    Target,
    build_refusal_step,
    choose_unlisted_rate,
    find_other_rate,
    has_one_rate,
    list_formats,
    list_rates,
    require_refusal,
)
from speechlab.contract import DEFAULT_SAMPLE_RATE, SPEECH_PATH, AudioFormat

if TYPE_CHECKING:
    from speechlab.conform._probe.http import Exchange

_ODD_RATE = 12_345
# Text for a request in which the language of the voice does not matter.
_BILINGUAL = "Hello. こんにちは。"

check, advice = build_decorators(__name__)
_build_speech_refusal_step = partial(build_refusal_step, Target.speak)


def _require_wav_rate(t: Target, reply: Exchange, wanted: int) -> None:
    clip = decode_clip(t.insist_success(reply).body, "wav", wanted)
    t.insist_that(clip is not None, "the audio decodes", reply)
    assert clip is not None
    t.require_that(
        clip.sample_rate == wanted, f"the audio has {wanted:,} Hz, not {clip.sample_rate:,}", reply
    )


def _skip_without_wav(t: Target) -> None:
    if "wav" not in list_formats(t.voice):
        raise CheckSkipped("rates are read from WAV headers, but the voice has no WAV")


check("27-voice-id", "a voice_id that is missing, null, not a string or not a UUID is 400")(
    _build_speech_refusal_step("voice_id is missing or invalid", voice_id=(..., None, 5, [], "", "no-uuid"))
)


@advice("27-unknown-voice", "an unknown voice is 400")
def _check_unknown_voice(t: Target) -> None:
    require_refusal(t, t.speak(voice_id=t.build_unknown_id()), "voice_id is not in the catalogue")


@advice("27-id-case", "voice ids are accepted in any case", metered=1, quick=False)
def _check_voice_id_case(t: Target) -> None:
    t.require_status(t.speak(voice_id=t.voice["id"].upper()), 200)


check("28-text", "a text that is missing, null or not a string is 400")(
    _build_speech_refusal_step("text is missing or invalid", text=(..., None, 5, ["a"], {}))
)
advice("28-blank", "an empty or blank text is 400")(
    _build_speech_refusal_step("text is blank", text=("", "  \n", "　"))
)


@check("29-too-long", "a text over the limit is 400", also=(30,))
def _check_text_too_long(t: Target) -> None:
    over = ("a " * t.options.text_limit)[: t.options.text_limit + 1]
    require_refusal(t, t.speak(text=over), "one code point over the limit")


@check("29-code-points", "the limit counts code points, not UTF-16 units or bytes", metered=2, quick=False)
def _check_longest_text(t: Target) -> None:
    reply = t.speak(text=t.longest_text, stream=True, format=t.stream_format, first_only=True)
    t.require_status(reply, 200, "a text of exactly the maximum of code points is spoken")


check("31-format", "a format that is missing or unknown is 400")(
    _build_speech_refusal_step("format is missing or unknown", format=(..., None, "", "aac", 5, ["wav"]))
)


@advice("31-format-case", "formats are case-sensitive", metered=1)
def _check_format_case(t: Target) -> None:
    require_refusal(t, t.speak(format=t.format.upper()), "formats are lower case")


@check("31-format-lacking", "a format that the voice lacks is 400", needs="a voice that lacks a format")
def _check_unlisted_format(t: Target) -> None:
    every = {str(each) for each in AudioFormat}
    voice = t.choose_voice_or_skip(lambda each: bool(every - set(list_formats(each))), "that lacks a format")
    for name in sorted(every - set(list_formats(voice))):
        require_refusal(t, t.speak(voice_id=voice["id"], format=name), "the voice does not list it")


def _check_null_stream(t: Target) -> None:
    reply = t.speak(stream=None)
    t.require_that(reply.status == 200 and reply.framing != "chunked", "null is false", reply)


advice("32-stream-type", "stream must be a boolean; null counts as absent", metered=5)(
    _build_speech_refusal_step("stream is not a boolean", stream=("true", 1, 0, [])), _check_null_stream
)


@check("33-mute-stream", "stream=true on a voice that does not stream is 400", needs="such a voice")
def _check_unstreamable_voice(t: Target) -> None:
    voice = t.choose_voice_or_skip(lambda each: each.get("streaming") is False, "with streaming false")
    for name in list_formats(voice):
        require_refusal(
            t, t.speak(voice_id=voice["id"], format=name, stream=True), "the voice does not stream"
        )


@check("33-unstreamable", "a format that cannot stream is 400 with stream=true, and valid without", metered=6)
def _check_unstreamable_formats(t: Target) -> None:
    for name in t.probe_unstreamable_formats(lambda status: status != 200):
        require_refusal(t, t.speak(format=name, stream=True), "the provider cannot stream it")
        t.require_status(t.speak(format=name), 200, "200 without stream, because the voice lists the format")


@check("34-default-rate", "without a sample_rate, or with 0, the audio has 24,000 Hz", metered=2)
def _check_default_rate(t: Target) -> None:
    _skip_without_wav(t)
    for value in (..., 0):
        _require_wav_rate(t, t.speak(format="wav", sample_rate=value), DEFAULT_SAMPLE_RATE)


@advice("34-null-rate", "sample_rate null counts as omitted", metered=1, quick=False)
def _check_null_rate(t: Target) -> None:
    _skip_without_wav(t)
    _require_wav_rate(t, t.speak(format="wav", sample_rate=None), DEFAULT_SAMPLE_RATE)


def _check_single_rate_override(t: Target, *, same: bool) -> None:
    voice = t.choose_voice_or_skip(has_one_rate, "with one sample rate")
    rate = list_rates(voice)[0] if same else choose_unlisted_rate(voice)
    reply = t.speak(voice_id=voice["id"], format=list_formats(voice)[0], sample_rate=rate)
    require_refusal(t, reply, "an override is only for voices with several rates")


check("35-single-rate", "a voice with one rate accepts no other", needs="a voice with one rate")(
    partial(_check_single_rate_override, same=False)
)
advice(
    "35-single-rate-same",
    "a voice with one rate refuses even this rate, if it is given",
    metered=1,
    needs="a voice with one rate",
)(partial(_check_single_rate_override, same=True))
check("36-odd-rate", "a rate that is not listed, negative or not an integer is 400")(
    _build_speech_refusal_step(
        "not a rate of the voice", sample_rate=(_ODD_RATE, -1, -24_000, 22_050.5, True, "16000")
    )
)


@check(
    "36-override",
    "the audio has the requested rate",
    also=(37,),
    metered=1,
    needs="a voice with several rates",
)
def _check_rate_override(t: Target) -> None:
    voice = t.choose_voice_or_skip(
        lambda each: len(list_rates(each)) > 1 and "wav" in list_formats(each), "with several rates and WAV"
    )
    rate_hz = find_other_rate(voice) or 0
    text = t.text if voice is t.voice else _BILINGUAL
    _require_wav_rate(t, t.speak(voice_id=voice["id"], text=text, format="wav", sample_rate=rate_hz), rate_hz)


@check("37-q-ogg", "provider Q accepts a rate, but not with ogg", metered=2, needs="--q-voice")
def _check_provider_q_ogg_rate(t: Target) -> None:
    voice = t.q_voice
    rate = find_other_rate(voice)
    if rate is None or not {"ogg", "wav"} <= set(list_formats(voice)):
        raise CheckSkipped("needs a voice of provider Q with ogg, WAV and several rates")
    fields = {"voice_id": voice["id"], "text": _BILINGUAL}
    require_refusal(
        t, t.speak(**fields, format="ogg", sample_rate=rate), "provider Q rejects an override with ogg"
    )
    t.require_status(t.speak(**fields, format="ogg", sample_rate=0), 200, "0 is not an override")
    _require_wav_rate(t, t.speak(**fields, format="wav", sample_rate=rate), rate)


@advice("37-q-ogg-24000", "provider Q rejects 24,000 with ogg", metered=1, needs="--q-voice")
def _check_provider_q_default_rate(t: Target) -> None:
    reply = t.speak(voice_id=t.q_voice["id"], text=_BILINGUAL, format="ogg", sample_rate=24_000)
    require_refusal(t, reply, "24,000 is an override, too")


@check("38-q-temperature", "provider Q accepts temperature, also 0.0", metered=2, needs="--q-voice")
def _check_provider_q_accepts_temperature(t: Target) -> None:
    voice = t.q_voice
    fields = {"voice_id": voice["id"], "text": _BILINGUAL, "format": list_formats(voice)[0]}
    for value in (0.0, 0.7):
        t.require_status(t.speak(**fields, temperature=value), 200)


advice("39-temperature", "temperature is a finite number; other voices ignore it", metered=4)(
    _build_speech_refusal_step("temperature is not a number", temperature=("hot", True, [0.5])),
    lambda t: t.require_status(t.speak(temperature=0.5), 200, "a number is accepted"),
)


@advice("40-unknown-field", "unknown fields are ignored", metered=1, quick=False)
def _check_unknown_field(t: Target) -> None:
    t.require_status(t.speak(conform_unknown={"a": 1}), 200)


@check("41-hostile", "bodies that are not a JSON object are 400, and never 500", also=(13,))
def _check_hostile_bodies(t: Target) -> None:
    start = f'{{"voice_id": "{t.voice["id"]}", "format": "wav", "text": '.encode()
    not_objects = (b"", b"null", b"[]", b'"text"', b"5", b"{", b"\xff\xfe\x00", b"\x00" * 16)
    nested = (b"[" * 20_000, b'{"a":' * 20_000)
    for body in (*not_objects, *nested, start + b'"\xc3\x28"}', start + b"9" * 5_000 + b"}"):
        reply = t.post_json(SPEECH_PATH, body, shown=repr(body[:60]))
        require_refusal(t, reply, "the body is not a JSON object")
        t.require_that(b"Traceback" not in reply.body, "no traceback", reply)


@advice("41-odd-json", "a byte-order mark, NaN and lone surrogates are 400", metered=3)
def _check_invalid_json(t: Target) -> None:
    start = f'{{"voice_id": "{t.voice["id"]}", "format": "{t.format}", "text": "{t.text}'.encode()
    for body in (b"\xef\xbb\xbf" + start + b'"}', start + b'", "sample_rate": NaN}', start + b'\\ud800"}'):
        require_refusal(t, t.post_json(SPEECH_PATH, body), "not valid JSON by RFC 8259")


@check("45-refused-first", "with stream=true, refusals come before the first byte of audio")
def _check_refusal_before_audio(t: Target) -> None:
    wrong: dict[str, Any] = {"format": "aac", "sample_rate": _ODD_RATE, "voice_id": "no-uuid"}
    for name, value in wrong.items():
        reply = t.speak(stream=True, **{name: value})
        require_refusal(t, reply, "refused before the stream begins")
        t.require_that(reply.media_type == "application/json", "an error body instead of audio", reply)
