"""``/ws/tts/realtime`` over real sockets: what a session says, in which order, with which figures."""

import contextlib
import time

import numpy as np
import pytest

from speechlab.service import Provider, ServedEngine, run_service, voice_uuid
from support.clients import Http
from support.staged import StagedVoice, staged_config, used


def joined(events) -> bytes:
    return b"".join(event for event in events if isinstance(event, bytes))


def kinds(events) -> list[str]:
    return ["audio" if isinstance(event, bytes) else event["type"] for event in events]


def test_044_audio_comes_before_the_synthesis_ends(staged):
    with staged.talk("gated") as client:
        client.begin("a")
        assert len(client.event()) == 24_000
        assert client.silent(0.2)
        staged.speaker.gate.set()
        assert kinds(client.until_usage()) == ["audio", "tts.audio.done", "tts.usage"]


def test_135_without_an_engine_there_is_no_tts_service(stage, talk):
    with stage(with_engines=False) as service, talk(service.http) as client:
        client.send(type="session.update", session={"voice_id": service.voice("plain"), "format": "wav"})
        assert client.event()["code"] == "tts_service_unavailable"


def test_147_148_failures_are_told_and_the_session_goes_on(stage, tmp_path):
    with stage(data_dir=tmp_path) as service:
        for voice, status in (
            ("broken", "backend_error"),
            ("no-model", "backend_error"),
            ("breaks-later", "partial_backend_error"),
        ):
            with service.talk(voice) as client:
                for _ in range(2):
                    _, *audio, error, usage = client.speak("a", id="s")
                    assert (error["code"], error["id"]) == ("backend_request_failed", "s")
                    assert "/home" not in error["message"]
                    sent = len(b"".join(audio))
                    assert bool(sent) == (status == "partial_backend_error")
                    assert (usage["usage"]["status"], usage["usage"]["audio_bytes"]) == (status, sent)
    rows = used(tmp_path)
    assert [row.status for row in rows] == ["backend_error"] * 4 + ["partial_backend_error"] * 2
    assert {row.transport for row in rows} == {"websocket"}


def test_017_150_rejected_texts_cost_nothing_and_spoken_ones_do(stage, tmp_path):
    with stage(data_dir=tmp_path, tts_text_limit=10) as service, service.talk() as client:
        for text in (" \u3000", 5, "a" * 11):
            client.refusal(text, id="s")
        audio = joined(client.speak("𠮷" * 10))
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


class Levels(StagedVoice):
    """Speaks at the level that the text says."""

    def synthesize(self, text, voice, *, temperature=None):
        return (np.full(2_400, float(text), dtype=np.float32) for _ in range(20))


def test_164_sessions_at_once_get_each_their_own_audio(talk):
    served = ServedEngine("levels", "synthesizer", Levels, Provider("levels", heavy=False))
    voice, levels = voice_uuid("levels", "plain"), ("0.1", "0.2", "0.3")
    with run_service(staged_config(served)) as service, contextlib.ExitStack() as stack:
        http = Http(service.base_url)
        expected = [http.speak(voice_id=voice, text=level, format="pcm").body for level in levels]
        clients = [stack.enter_context(talk(http)) for _ in levels]
        for client in clients:
            client.configure(voice_id=voice, format="pcm")
        for client, level in zip(clients, levels, strict=True):
            client.send(type="tts.speak", text=level)
        got = [joined(client.until_usage()) for client in clients]
    assert got == expected
    assert len(set(got)) == 3


@pytest.mark.slow
def test_a_session_left_unconfigured_is_closed(stage, talk):
    with stage(ws_idle_s=0.4) as service, talk(service.http) as client, service.talk() as other:
        client.raw("{}")
        client.event()
        assert client.closed() == 1008
        time.sleep(0.5)
        assert kinds(other.speak("a"))[-1] == "tts.usage"
