"""How conversations end: clients that leave or do not read, limits that cannot be told, and a service that stops."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time

import numpy as np
import pytest
from websockets.exceptions import InvalidStatus

from speechlab.engines import EngineVoice
from speechlab.service import Provider, ServedEngine, run_service, voice_uuid
from support.clients import Http
from support.clock import eventually
from support.staged import staged_config, used

PIECE_S = 0.5


class Paced:
    """A voice that gives a piece for each permission."""

    model = "paced-1"
    sample_rate = 24_000
    voices = (EngineVoice("paced", ("en",), "Neutral", "gives a piece for each permission"),)

    def __init__(self) -> None:
        self.permits = threading.Semaphore(0)
        self.begun = self.given = self.closed = 0

    def synthesize(self, text, voice, *, temperature=None):
        self.begun += 1
        try:
            for _ in text.split():
                assert self.permits.acquire(timeout=20)
                self.given += 1
                yield np.full(round(self.sample_rate * PIECE_S), 0.1, dtype=np.float32)
        finally:
            self.closed += 1


@contextlib.contextmanager
def paced(**settings):
    engine = Paced()
    served = ServedEngine("paced", "synthesizer", lambda: engine, Provider("paced", heavy=False))
    with run_service(staged_config(served, **settings)) as service:
        yield Http(service.base_url), engine
        engine.permits.release(1_000)


VOICE = voice_uuid("paced", "paced")


@pytest.mark.parametrize("how", ["close", "reset", "binary", "too large"])
def test_153_158_a_client_that_leaves_ends_its_synthesis(talk, tmp_path, how):
    with paced(data_dir=tmp_path) as (http, engine), talk(http) as client:
        client.configure(voice_id=VOICE, format="pcm")
        client.begin("a b c d")
        engine.permits.release()
        assert isinstance(client.event(), bytes)
        if how == "close":
            client.socket.close()
        elif how == "reset":
            client.socket.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            client.socket.socket.close()
        else:
            client.raw(b"x" if how == "binary" else " " * 300_000)
            assert client.closed() == (1003 if how == "binary" else 1009)
        assert eventually(lambda: len(used(tmp_path)) == 1)
        engine.permits.release()  # the piece that was being made cannot be interrupted
        assert eventually(lambda: engine.closed == 1)
        assert engine.given <= 2
    (row,) = used(tmp_path)
    told = (row.status, row.transport, row.provider, row.model)
    assert told == ("cancelled", "websocket", "paced", "paced-1")
    assert (row.characters, row.audio_bytes) == (7, 24_000)


@pytest.mark.slow
def test_153_a_client_that_leaves_the_queue_costs_nothing(talk, tmp_path):
    settings = {"data_dir": tmp_path, "tts_concurrency": 1, "key_concurrent": 2}
    with paced(**settings) as (http, engine), talk(http) as busy:
        busy.configure(voice_id=VOICE, format="pcm")
        busy.begin("a")

        def waits_in_the_queue() -> bool:
            with talk(http) as client:
                client.configure(voice_id=VOICE, format="pcm")
                client.send(type="tts.speak", text="a")
                return client.silent(0.1)

        for _ in range(3):
            # Were the place not given back, the second and the third would be over the limit of the key.
            assert eventually(waits_in_the_queue)
        engine.permits.release()
        assert busy.until_usage()[-1]["usage"]["status"] == "completed"
        assert engine.given == 1
    assert len(used(tmp_path)) == 1


@pytest.mark.slow
def test_163_a_reader_that_stops_is_dropped(stage, talk, tmp_path):
    with stage(data_dir=tmp_path, send_timeout_s=1.0) as service, contextlib.ExitStack() as stack:
        # The library reads ahead by a few frames only; "endless" never ends by itself.
        client = stack.enter_context(talk(service.http, max_queue=4))
        other = stack.enter_context(talk(service.http))
        client.configure(voice_id=service.voice("endless"), format="pcm")
        client.send(type="tts.speak", text="a")
        assert eventually(lambda: service.speaker.closed == 1, 30)
        assert eventually(lambda: len(used(tmp_path)) == 1)
        # Nobody else was held up.
        other.configure(voice_id=service.voice("plain"), format="pcm")
        assert other.speak("b")[-1]["usage"]["status"] == "completed"
        assert client.closed() == 1006
    row = used(tmp_path)[0]
    assert row.status == "cancelled"
    # Socket buffers of both sides, and not a minute of a synthesis that never ends.
    assert row.audio_bytes < 16_000_000


@pytest.mark.slow
def test_163_a_reader_that_is_merely_slow_gets_everything(stage, talk):
    with stage(send_timeout_s=2.0, ws_ping_s=0.3) as service, talk(service.http, max_queue=1) as client:
        client.configure(voice_id=service.voice("endless"), format="pcm")
        client.send(type="tts.speak", text="a")
        received, until = 0, time.monotonic() + 3
        while time.monotonic() < until:
            event = client.event()
            received += isinstance(event, bytes)
            time.sleep(0.01)
        assert received > 50


def test_123_a_service_that_stops_finishes_what_runs(talk, tmp_path):
    with contextlib.ExitStack() as clients, contextlib.ExitStack() as stack:
        http, engine = stack.enter_context(paced(data_dir=tmp_path, drain_s=15))
        busy, idle, fresh = (clients.enter_context(talk(http)) for _ in range(3))
        for client in (busy, idle):
            client.configure(voice_id=VOICE, format="pcm")
        busy.begin("a b c", id="s")
        release = engine.permits.release  # the end of the block would let everything go
        engine.permits.release = lambda _count=1: None
        stopping = threading.Thread(target=stack.close)
        stopping.start()
        assert (idle.closed(), fresh.closed()) == (1012, 1012)
        with pytest.raises(InvalidStatus) as caught, talk(http):
            pass
        response = caught.value.response
        assert (response.status_code, json.loads(response.body)["name"]) == (503, "websocket_draining")
        assert response.headers["Retry-After"]
        assert stopping.is_alive()
        release(3)
        *audio, done, usage = busy.until_usage()
        assert (len(audio), done["id"], usage["usage"]["status"]) == (3, "s", "completed")
        assert busy.closed() == 1012
        stopping.join(20)
        assert not stopping.is_alive()
    assert [row.status for row in used(tmp_path)] == ["completed"]


@pytest.mark.slow
def test_123_what_takes_too_long_is_broken_off_and_said(talk, tmp_path):
    with contextlib.ExitStack() as clients, contextlib.ExitStack() as stack:
        settings = {"data_dir": tmp_path, "drain_s": 0.5, "tts_concurrency": 1}
        http, engine = stack.enter_context(paced(**settings))
        busy, queued = (clients.enter_context(talk(http)) for _ in range(2))
        for client in (busy, queued):
            client.configure(voice_id=VOICE, format="pcm")
            client.send(type="tts.speak", id="s", text="a b c")
            assert eventually(lambda: engine.begun == 1)
        release = engine.permits.release
        release()
        assert busy.event()["type"] == "tts.audio.start"
        assert isinstance(busy.event(), bytes)
        engine.permits.release = lambda _count=1: None
        stopping = threading.Thread(target=stack.close)
        stopping.start()
        error, usage = busy.event(), busy.event()
        assert (error["code"], usage["usage"]["status"]) == (
            "backend_request_failed",
            "partial_backend_error",
        )
        assert queued.event()["code"] == "backend_unavailable"
        assert (busy.closed(), queued.closed()) == (1012, 1012)
        release(100)
        stopping.join(20)
        assert not stopping.is_alive()
    assert [row.status for row in used(tmp_path)] == ["partial_backend_error"]
