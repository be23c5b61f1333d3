"""POST /tts: what is accepted, what is refused, and what comes back. What no check of the contract sees."""

import io
import json

import pytest
import soundfile

from speechlab.audio import decode
from speechlab.service import voice_uuid
from support.sockets import read_until

TEXT = "Good morning, and welcome back. The trains are running on time today. Please mind the gap."
FORMATS = ("mp3", "wav", "ogg", "pcm", "flac")


def duration_s(data: bytes, kind: str, rate: int = 24_000) -> float:
    return len(data) / 2 / rate if kind == "pcm" else decode(data).duration_s


@pytest.mark.engines
def test_s42_s43_each_format_has_all_of_the_sound(live, hibari):
    wav = live.speak(voice_id=hibari, text=TEXT, format="wav").body
    info = soundfile.info(io.BytesIO(wav))
    assert (info.samplerate, info.channels, info.subtype) == (24_000, 1, "PCM_16")
    assert 3 < info.duration < 10
    for kind in FORMATS:
        for stream in (False, True)[: 1 + (kind != "flac")]:
            reply = live.speak(voice_id=hibari, text=TEXT, format=kind, stream=stream)
            assert duration_s(reply.body, kind) == pytest.approx(info.duration, abs=0.1), (kind, stream)
            assert reply.headers["x-speechlab-model"] == "hibari-heart"
            if not stream:
                seconds = float(reply.headers["x-speechlab-audio-seconds"])
                assert seconds == pytest.approx(info.duration, abs=0.01), kind
                assert "engine;dur=" in reply.headers["server-timing"]
            elif kind == "wav":
                assert reply.body[4:8] == reply.body[40:44] == b"\xff\xff\xff\xff"


@pytest.mark.slow
def test_s36_s49_each_advertised_rate_is_real(staged):
    fields = {"voice_id": staged.voice("plain"), "text": "One."}
    for rate in (8_000, 16_000, 22_050, 24_000, 44_100, 48_000):
        for kind in FORMATS:
            for stream in (False, True)[: 1 + (kind != "flac")]:
                reply = staged.http.speak(**fields, format=kind, sample_rate=rate, stream=stream)
                where = kind, rate, stream
                assert reply.status == 200, where
                assert reply.headers["x-speechlab-sample-rate"] == str(rate), where
                # a stream of MP3 at 8 kHz has 138 ms of its encoder, and its last frame up to 72 ms
                assert duration_s(reply.body, kind, rate) == pytest.approx(1.0, abs=0.22), where
                if kind in {"wav", "flac", "mp3"}:
                    assert decode(reply.body).sample_rate == rate, where


@pytest.mark.engines
def test_s34_no_rate_means_24000_whatever_the_engine_has(live):
    for rate in ({}, {"sample_rate": 0}, {"sample_rate": None}):
        voice = voice_uuid("openjtalk", "mei")  # speaks at 48 kHz
        reply = live.speak(voice_id=voice, text="はい。", format="wav", **rate)
        assert soundfile.info(io.BytesIO(reply.body)).samplerate == 24_000, rate


def test_s30_s35_limits_and_readings_are_settings(stage, error_body):
    with stage(tts_text_limit=10, single_rate_override=True) as service:
        fields = {"voice_id": service.voice("plain", "mono-rate"), "format": "wav"}
        assert service.http.speak(**fields, text="x" * 10, sample_rate=24_000).status == 200
        error_body(service.http.speak(**fields, text="x" * 11), 400, "ErrTextTooLong")


def test_s38_s134_temperature_reaches_provider_q_alone(staged):
    voice = staged.voice("plain", "q")
    for given, used in (({}, 0.5), ({"temperature": 0}, 0.0), ({"temperature": 1.3}, 1.3)):
        assert staged.http.speak(voice_id=voice, text="x", format="wav", **given).status == 200
        assert staged.q.calls[-1]["temperature"] == used
        with staged.talk(voice_id=voice, **given) as client:
            client.speak("x")
        assert staged.q.calls[-1]["temperature"] == used
    assert staged.speak(temperature=0.7).status == 200
    assert staged.speaker.calls[-1]["temperature"] is None


def test_s87_bodies_are_counted_while_they_come(staged, error_body, hibari):
    text = json.dumps({"voice_id": hibari, "text": "x", "format": "wav", "pad": "x" * 300_000}).encode()
    error_body(staged.http.post_json("/tts", text), 413, "ErrTooLarge")
    head = "POST /tts HTTP/1.1\nHost: 127.0.0.1\nAuthorization: Bearer {key}\nTransfer-Encoding: chunked\n"
    chunk = b"8000\r\n" + b" " * 0x8000 + b"\r\n"
    with staged.http.raw(head, chunk * 12) as connection:
        assert read_until(connection, b"\r\n").startswith(b"HTTP/1.1 413 ")


def test_compressed_bodies_are_refused(staged, error_body):
    reply = staged.http.request("POST", "/tts", b"{}", {"Content-Encoding": "gzip"})
    assert "gzip" in error_body(reply, 400, "ErrInvalidRequest")["error"]


@pytest.mark.engines
def test_the_english_voice_says_that_it_cannot_read_japanese(live, hibari):
    reply = live.speak(voice_id=hibari, text="おはようございます。", format="wav")
    assert reply.status == 400
    assert "Latin" in reply.json()["error"]


@pytest.mark.engines
def test_odd_texts_are_spoken_or_refused(live, hibari):
    for text in ("🙂", "...", "\x00", "a\x00b", "\u200b", "—", "1", "\U0010ffff", "a" * 3_000):
        reply = live.speak(voice_id=hibari, text=text, format="wav")
        assert reply.status in {200, 400}, (text, reply.body)


@pytest.mark.engines
@pytest.mark.parametrize(
    ("provider", "voice"), [("kokoro", "jm_kumo"), ("q", "q_kumo"), ("openjtalk", "mei")]
)
def test_the_other_engines_speak_too(live, provider, voice):
    reply = live.speak(voice_id=voice_uuid(provider, voice), text="はい。", format="ogg", stream=True)
    assert reply.status == 200
    assert 0.2 < decode(reply.body).duration_s < 4
    assert reply.headers["x-speechlab-provider"] == provider
