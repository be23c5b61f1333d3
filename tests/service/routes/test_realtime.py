"""``/ws/tts/realtime`` over real sockets: what a session says, in which order, with which figures."""

from __future__ import annotations

import base64
import contextlib
import time

import pytest

from speechlab.service import voice_uuid
from support.staged import used

TEXT = "A short sentence. And another one, to be heard after it."


def joined(events) -> bytes:
    return b"".join(
        event if isinstance(event, bytes) else base64.b64decode(event["audio"], validate=True)
        for event in events
        if isinstance(event, bytes) or event["type"] == "tts.audio.delta"
    )


def kinds(events) -> list[str]:
    return ["audio" if isinstance(event, bytes) else event["type"] for event in events]


def test_044_audio_comes_before_the_synthesis_ends(staged):
    with staged.talk("gated") as client:
        client.begin("a")
        assert len(client.event()) == 24_000
        assert client.silent(0.2)
        staged.speaker.gate.set()
        assert kinds(client.until_usage()) == ["audio", "tts.audio.done", "tts.usage"]


def test_038_134_temperature_reaches_provider_q_alone(staged, talk):
    for given, got in ((None, 0.5), (0.0, 0.0), (1.25, 1.25)):
        with talk(staged.http) as client:
            client.configure(voice_id=staged.voice("plain", "q"), format="pcm", temperature=given)
            client.speak("a")
            assert staged.q.calls[-1]["temperature"] == got
    with talk(staged.http) as client:
        client.configure(voice_id=staged.voice("plain"), format="pcm", temperature=1.0)
        client.speak("a")
        assert staged.speaker.calls[-1]["temperature"] is None


def test_135_without_an_engine_there_is_no_tts_service(stage, talk):
    with stage(with_engines=False) as service, talk(service.http) as client:
        client.send(type="session.update", session={"voice_id": service.voice("plain"), "format": "wav"})
        assert client.event()["code"] == "tts_service_unavailable"


def test_147_148_failures_are_told_and_the_session_goes_on(stage, talk, tmp_path):
    with stage(data_dir=tmp_path) as service:
        for voice, status in (
            ("broken", "backend_error"),
            ("no-model", "backend_error"),
            ("breaks-later", "partial_backend_error"),
        ):
            for transport in ("binary", "base64_json"):
                with talk(service.http) as client:
                    client.configure(voice_id=service.voice(voice), format="pcm", audio_transport=transport)
                    for _ in range(2):
                        start, *audio, error, usage = client.speak("a", id="s")
                        assert start["type"] == "tts.audio.start"
                        assert (error["code"], error["id"]) == ("backend_request_failed", "s")
                        assert "/home" not in error["message"]
                        assert usage["request_id"] == start["request_id"]
                        sent = len(joined(audio))
                        assert bool(sent) == (status == "partial_backend_error")
                        assert (usage["usage"]["status"], usage["usage"]["audio_bytes"]) == (status, sent)
    rows = used(tmp_path)
    assert [row.status for row in rows] == ["backend_error"] * 8 + ["partial_backend_error"] * 4
    assert {row.transport for row in rows} == {"websocket"}


def test_017_150_rejected_texts_cost_nothing_and_spoken_ones_do(stage, tmp_path):
    with stage(data_dir=tmp_path, tts_text_limit=10) as service, service.talk() as client:
        texts = {" \u3000": "empty_text", 5: "invalid_message", "a" * 11: "tts_text_too_long"}
        for text, code in texts.items():
            assert client.refusal(text, id="s")["code"] == code
        audio = joined(client.speak("𠮷" * 10))
        client.send(type="tts.speak", id=5, text="a")
        assert "id" not in client.event()
    (row,) = used(tmp_path)
    told = (row.operation, row.transport, row.provider, row.status)
    assert told == ("tts", "websocket", "staged", "completed")
    assert (row.characters, row.input_bytes, row.audio_bytes) == (10, 40, len(audio))
    assert row.audio_s == 1.0


def test_152_a_full_queue_is_backend_unavailable(stage, talk, tmp_path):
    with stage(queue_limit=1, data_dir=tmp_path) as service, contextlib.ExitStack() as stack:
        busy, client = (stack.enter_context(talk(service.http)) for _ in range(2))
        for one in (busy, client):
            one.configure(voice_id=service.voice("gated"), format="pcm")
        busy.begin("a")
        assert client.refusal("b", id="s")["code"] == "backend_unavailable"
        assert client.silent(0.1)
        service.speaker.gate.set()
        busy.until_usage()
        assert kinds(client.speak("c"))[-1] == "tts.usage"
    assert len(used(tmp_path)) == 2


@pytest.mark.slow
def test_164_two_sessions_at_once_get_each_their_own_audio(live, talk):
    voices = [voice_uuid("hibari", "heart")] * 3
    texts = [TEXT * (number + 1) for number in range(3)]
    expected = [live.speak(voice_id=v, text=t, format="pcm").body for v, t in zip(voices, texts, strict=True)]
    with talk(live) as one, talk(live) as two, talk(live) as three:
        clients = (one, two, three)
        for client, voice in zip(clients, voices, strict=True):
            client.configure(voice_id=voice, format="pcm")
        for client, text in zip(clients, texts, strict=True):
            client.send(type="tts.speak", text=text)
        got = [joined(client.until_usage()) for client in clients]
    assert got == expected


@pytest.mark.slow
def test_a_session_left_unconfigured_is_closed(stage, talk):
    with stage(ws_idle_s=0.4) as service, talk(service.http) as client, service.talk() as other:
        client.raw("{}")
        client.event()
        assert client.closed() == 1008
        time.sleep(0.5)
        assert kinds(other.speak("a"))[-1] == "tts.usage"
