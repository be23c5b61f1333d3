"""POST /tts: what is accepted, what is refused, and what comes back. Mostly on hibari, a real and fast engine."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
import soundfile

from speechlab.audio import decode, detect_format
from speechlab.service import voice_uuid
from support.sockets import read_until
from support.staged import staged_service

TEXT = "Good morning, and welcome back. The trains are running on time today. Please mind the gap."
FORMATS = {
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "ogg": "audio/ogg",
    "pcm": "audio/pcm",
    "flac": "audio/flac",
}
STREAMS = ("mp3", "wav", "ogg", "pcm")


@pytest.fixture(scope="module")
def shared():
    """One staged service for the whole file: starting one takes longer than a test."""
    with staged_service() as service:
        yield service


@pytest.fixture
def staged(shared):
    """It, as if nobody had used it."""
    for engine in (shared.speaker, shared.q):
        engine.calls.clear()
    return shared


def duration_s(data: bytes, kind: str, rate: int = 24_000) -> float:
    return len(data) / 2 / rate if kind == "pcm" else decode(data).duration_s


@pytest.fixture(scope="module")
def reference_s(live, hibari):
    data = live.speak(voice_id=hibari, text=TEXT, format="wav").body
    info = soundfile.info(io.BytesIO(data))
    assert (info.samplerate, info.channels, info.subtype) == (24_000, 1, "PCM_16")
    assert 3 < info.duration < 10
    return info.duration


@pytest.mark.parametrize("kind", FORMATS)
def test_s34_s42_s43_whole_audio_in_each_format(live, hibari, reference_s, kind):
    reply = live.speak(voice_id=hibari, text=TEXT, format=kind)
    assert reply.status == 200
    assert reply.headers["content-type"] == FORMATS[kind]
    assert int(reply.headers["content-length"]) == len(reply.body)
    assert "transfer-encoding" not in reply.headers
    assert kind == "pcm" or detect_format(reply.body) == kind
    assert kind == "pcm" or decode(reply.body).sample_rate in {24_000, 48_000}
    assert duration_s(reply.body, kind) == pytest.approx(reference_s, abs=0.06)
    assert float(reply.headers["x-speechlab-audio-seconds"]) == pytest.approx(reference_s, abs=0.01)
    assert "engine;dur=" in reply.headers["server-timing"]
    assert reply.headers["x-speechlab-model"] == "hibari-heart"


@pytest.mark.parametrize("kind", STREAMS)
def test_s43_s48_streamed_audio_in_each_format(live, hibari, reference_s, kind):
    reply = live.speak(voice_id=hibari, text=TEXT, format=kind, stream=True)
    assert reply.status == 200
    assert reply.headers["content-type"] == FORMATS[kind]
    assert reply.headers["transfer-encoding"] == "chunked"
    assert "content-length" not in reply.headers
    if kind == "wav":
        assert reply.body[4:8] == reply.body[40:44] == b"\xff\xff\xff\xff"
    assert duration_s(reply.body, kind) == pytest.approx(reference_s, abs=0.1)


@pytest.mark.engines
@pytest.mark.parametrize("text", ["!!!", "\U0001f389 \U0001f44d\U0001f3fd", "…", "\u200b"])
@pytest.mark.parametrize(
    ("provider", "voice"),
    [("hibari", "heart"), ("openjtalk", "mei"), ("kokoro", "jf_alpha"), ("q", "q_tebukuro")],
)
def test_s28_a_text_with_nothing_to_say_is_a_short_silence(live, provider, voice, text):
    for options in ({"format": "wav"}, {"format": "mp3", "stream": True}):
        reply = live.speak(voice_id=voice_uuid(provider, voice), text=text, **options)
        assert reply.status == 200
        clip = decode(reply.body)
        assert 0.25 < clip.duration_s < 0.45
        assert np.abs(clip.samples).max() < 1e-3


@pytest.fixture(scope="module")
def said(live, hibari):
    """Few words, which are spoken anew for each rate and format, and how long it takes to say them."""
    fields = {"voice_id": hibari, "text": "Good morning, and welcome back."}
    return fields, decode(live.speak(**fields, format="wav").body).duration_s


@pytest.mark.slow
@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 24_000, 44_100, 48_000])
@pytest.mark.parametrize("stream", [False, True])
def test_s23_s36_each_advertised_rate_is_real(live, said, rate, stream):
    fields, seconds = said
    for kind in STREAMS if stream else FORMATS:
        reply = live.speak(**fields, format=kind, sample_rate=rate, stream=stream)
        assert reply.status == 200, reply.body
        assert reply.headers["x-speechlab-sample-rate"] == str(rate)
        # a stream of MP3 at 8 kHz has 138 ms of its encoder, and its last frame up to 72 ms
        assert duration_s(reply.body, kind, rate) == pytest.approx(seconds, abs=0.22)
        if kind in {"wav", "flac", "mp3"}:
            assert decode(reply.body).sample_rate == rate


@pytest.mark.parametrize("rate", [{}, {"sample_rate": 0}, {"sample_rate": None}])
def test_s34_no_rate_zero_and_null_mean_24000(live, rate):
    # OpenJTalk speaks at 48 kHz: the default holds whatever the engine's own rate is.
    voice = voice_uuid("openjtalk", "mei")
    reply = live.speak(voice_id=voice, text="おはようございます。", format="wav", **rate)
    assert soundfile.info(io.BytesIO(reply.body)).samplerate == 24_000


REFUSED = {
    "s27 voice missing": ({"voice_id": ...}, "ErrInvalidRequest"),
    "s27 voice null": ({"voice_id": None}, "ErrInvalidRequest"),
    "s27 voice number": ({"voice_id": 5}, "ErrInvalidRequest"),
    "s27 voice malformed": ({"voice_id": "heart"}, "ErrUnknownVoice"),
    "s27 voice braces": ({"voice_id": "{53d1acf3-1ef1-5583-bcf8-dda6184fe486}"}, "ErrUnknownVoice"),
    "s27 voice unknown": ({"voice_id": "00000000-0000-4000-8000-000000000000"}, "ErrUnknownVoice"),
    "s28 text missing": ({"text": ...}, "ErrInvalidRequest"),
    "s28 text null": ({"text": None}, "ErrInvalidRequest"),
    "s28 text list": ({"text": ["a"]}, "ErrInvalidRequest"),
    "s28 text empty": ({"text": ""}, "ErrInvalidRequest"),
    "s28 text blank": ({"text": " \t\r\n\u3000\u00a0"}, "ErrInvalidRequest"),
    "s29 text 5,001": ({"text": "a" * 5_001}, "ErrTextTooLong"),
    "s29 text 5,001 astral": ({"text": "\U00020bb7" * 5_001}, "ErrTextTooLong"),
    "s31 format missing": ({"format": ...}, "ErrInvalidRequest"),
    "s31 format null": ({"format": None}, "ErrInvalidRequest"),
    "s31 format case": ({"format": "MP3"}, "ErrUnsupportedFormat"),
    "s31 format unknown": ({"format": "aac"}, "ErrUnsupportedFormat"),
    "s32 stream string": ({"stream": "true"}, "ErrInvalidRequest"),
    "s32 stream number": ({"stream": 1}, "ErrInvalidRequest"),
    "s33 flac streams nowhere": ({"stream": True, "format": "flac"}, "ErrUnsupportedStreaming"),
    "s36 rate not listed": ({"sample_rate": 11_025}, "ErrUnsupportedSampleRate"),
    "s36 rate negative": ({"sample_rate": -1}, "ErrInvalidRequest"),
    "s36 rate float": ({"sample_rate": 24_000.5}, "ErrInvalidRequest"),
    "s36 rate bool": ({"sample_rate": True}, "ErrInvalidRequest"),
    "s36 rate string": ({"sample_rate": "24000"}, "ErrInvalidRequest"),
    "s36 rate huge": ({"sample_rate": 10**30}, "ErrInvalidRequest"),
    "s39 temperature bool": ({"temperature": True}, "ErrInvalidRequest"),
    "s39 temperature string": ({"temperature": "0.5"}, "ErrInvalidRequest"),
    "s39 temperature negative": ({"temperature": -0.1}, "ErrInvalidRequest"),
}


@pytest.mark.parametrize(("change", "name"), REFUSED.values(), ids=list(REFUSED))
def test_refused_requests_are_400(live, hibari, error_body, change, name):
    fields = {"voice_id": hibari, "text": "Hello.", "format": "wav", **change}
    fields = {key: value for key, value in fields.items() if value is not ...}
    body = error_body(live.speak(**fields), 400, name)
    assert body["context"][:2] == [
        "tts",
        next(key for key in change if key != "stream" or len(change) == 1),
    ] or (body["context"] == ["tts", "stream"])


def test_s29_the_limit_counts_code_points(stage):
    with stage() as service:
        voice = service.voice("plain")
        for text in ("\U00020bb7" * 5_000, "e\u0301" * 2_500):
            assert service.http.speak(voice_id=voice, text=text, format="pcm").status == 200
        assert service.speaker.calls[0]["text"] == "\U00020bb7" * 5_000


def test_s30_the_limit_is_configurable(stage, error_body):
    with stage(tts_text_limit=10) as service:
        voice = service.voice("plain")
        assert service.http.speak(voice_id=voice, text="x" * 10, format="pcm").status == 200
        error_body(service.http.speak(voice_id=voice, text="x" * 11, format="pcm"), 400, "ErrTextTooLong")


def test_s27_ids_are_case_insensitive(live, hibari):
    assert live.speak(voice_id=hibari.upper(), text="Hello.", format="pcm").status == 200


def test_s33_a_voice_that_does_not_stream(staged, error_body):
    voice = staged.voice("plain", "silent")
    listed = staged.http.request("GET", "/tts/voices").json()["voices"]
    assert next(item for item in listed if item["id"] == voice)["streaming"] is False
    error_body(
        staged.http.speak(voice_id=voice, text="x", format="wav", stream=True), 400, "ErrUnsupportedStreaming"
    )
    assert staged.http.speak(voice_id=voice, text="x", format="wav").status == 200


@pytest.mark.parametrize("rate", [24_000, 48_000])
def test_s35_a_voice_with_one_rate_takes_no_rate_at_all(live, error_body, rate):
    fields = {
        "voice_id": voice_uuid("openjtalk", "mei"),
        "text": "はい。",
        "format": "wav",
        "sample_rate": rate,
    }
    error_body(live.speak(**fields), 400, "ErrUnsupportedSampleRate")


def test_s35_the_reading_can_be_switched(stage, error_body):
    with stage(single_rate_override=True) as service:
        voice = service.voice("plain", "mono-rate")
        assert service.http.speak(voice_id=voice, text="x", format="wav", sample_rate=24_000).status == 200
        error_body(
            service.http.speak(voice_id=voice, text="x", format="wav", sample_rate=16_000),
            400,
            "ErrUnsupportedSampleRate",
        )


@pytest.mark.parametrize("provider", ["q", "staged"])
@pytest.mark.parametrize("kind", ["ogg", "wav"])
@pytest.mark.parametrize("rate", [0, 24_000, 48_000])
def test_s37_only_provider_q_refuses_a_rate_with_ogg(staged, error_body, provider, kind, rate):
    fields = {"voice_id": staged.voice("plain", provider), "text": "x", "format": kind, "sample_rate": rate}
    reply = staged.http.speak(**fields)
    if provider == "q" and kind == "ogg" and rate:
        error_body(reply, 400, "ErrUnsupportedSampleRate")
    else:
        assert reply.status == 200


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ({}, 0.5),
        ({"temperature": None}, 0.5),
        ({"temperature": 0.0}, 0.0),
        ({"temperature": 0}, 0.0),
        ({"temperature": 1.3}, 1.3),
    ],
)
def test_s38_temperature_of_provider_q(staged, given, used):
    assert (
        staged.http.speak(voice_id=staged.voice("plain", "q"), text="x", format="wav", **given).status == 200
    )
    assert staged.q.calls[-1]["temperature"] == used


def test_s39_s40_temperature_elsewhere_and_unknown_fields_are_ignored(staged):
    voice = staged.voice("plain")
    reply = staged.http.speak(
        voice_id=voice, text="x", format="wav", temperature=0.7, speed=3, extra={"a": []}
    )
    assert reply.status == 200
    assert staged.speaker.calls[-1]["temperature"] is None


BODIES = {
    "empty": b"",
    "blank": b"  ",
    "not json": b"voice_id=1",
    "array": b"[]",
    "string": b'"x"',
    "number": b"5",
    "null": b"null",
    "cut": b'{"voice_id": "x"',
    "trailing": b"{} {}",
    "bom": b"\xef\xbb\xbf{}",
    "utf-16": "{}".encode("utf-16"),
    "bad utf-8": b'{"text": "\xff"}',
    "lone surrogate": b'{"text": "\\ud800"}',
    "deep": b'{"text": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "huge integer": b'{"sample_rate": ' + b"9" * 5_000 + b"}",
    "nan": b'{"temperature": NaN}',
    "infinity": b'{"temperature": -Infinity}',
    "1e999": b'{"temperature": 1e999}',
    "control character": b'{"text": "\x01"}',
    "single quotes": b"{'text': 'x'}",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=list(BODIES))
def test_s41_malformed_bodies_are_400(live, error_body, body):
    error_body(live.post_json("/tts", body), 400, "ErrInvalidRequest")


def test_s41_the_last_of_two_equal_keys_wins(live, hibari):
    body = json.dumps({"voice_id": hibari, "format": "wav"})[:-1] + ', "text": "", "text": "Hello."}'
    assert live.post_json("/tts", body.encode()).status == 200


def test_s87_bodies_are_counted_while_they_come(live, error_body, hibari):
    text = json.dumps({"voice_id": hibari, "text": "x", "format": "wav", "pad": "x" * 300_000}).encode()
    error_body(live.post_json("/tts", text), 413, "ErrTooLarge")
    head = "POST /tts HTTP/1.1\nHost: 127.0.0.1\nAuthorization: Bearer {key}\nTransfer-Encoding: chunked\n"
    chunk = b"8000\r\n" + b" " * 0x8000 + b"\r\n"
    with live.raw(head, chunk * 12) as connection:
        assert read_until(connection, b"\r\n").startswith(b"HTTP/1.1 413 ")


def test_compressed_bodies_are_refused(live, error_body):
    reply = live.request("POST", "/tts", b"{}", {"Content-Encoding": "gzip"})
    assert "gzip" in error_body(reply, 400, "ErrInvalidRequest")["error"]


def test_the_english_voice_says_that_it_cannot_read_japanese(live, hibari):
    reply = live.speak(voice_id=hibari, text="おはようございます。", format="wav")
    assert reply.status == 400
    assert "Latin" in reply.json()["error"]


@pytest.mark.parametrize(
    "text", ["🙂", "...", "\x00", "a\x00b", "\u200b", "—", "1", "\U0010ffff", "a" * 3_000]
)
def test_odd_texts_are_spoken_or_refused_but_never_break_anything(live, hibari, text):
    reply = live.speak(voice_id=hibari, text=text, format="wav")
    assert reply.status in {200, 400}, reply.body


@pytest.mark.engines
@pytest.mark.parametrize(
    ("provider", "voice", "text"),
    [
        ("kokoro", "jm_kumo", "はい、そうです。"),
        ("q", "q_kumo", "Yes, it is."),
        ("openjtalk", "mei", "はい、そうです。"),
    ],
)
def test_the_other_engines_speak_too(live, provider, voice, text):
    for stream in (False, True):
        reply = live.speak(voice_id=voice_uuid(provider, voice), text=text, format="ogg", stream=stream)
        assert reply.status == 200
        assert 0.4 < decode(reply.body).duration_s < 4
        assert reply.headers["x-speechlab-provider"] == provider
