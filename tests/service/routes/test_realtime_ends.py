"""How conversations end: clients that leave or do not read, and a service that stops."""

import contextlib
import socket
import threading
import time

import pytest

from support.clock import eventually
from support.staged import used


@pytest.mark.parametrize("how", ["close", "reset", "binary", "too large"])
def test_153_158_a_client_that_leaves_ends_its_synthesis(stage, tmp_path, how):
    with stage(data_dir=tmp_path) as service, service.talk("gated") as client:
        client.begin("a b c d")
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
        service.speaker.gate.set()  # the piece that is being made cannot be interrupted
        assert eventually(lambda: service.speaker.closed == 1)
    (row,) = used(tmp_path)
    told = (row.status, row.transport, row.provider, row.model)
    assert told == ("cancelled", "websocket", "staged", "staged-1")
    assert (row.characters, row.audio_bytes) == (7, 24_000)


@pytest.mark.slow
def test_153_a_client_that_leaves_the_queue_costs_nothing(stage, tmp_path):
    settings = {"data_dir": tmp_path, "tts_concurrency": 1, "key_concurrent": 2}
    with stage(**settings) as service, service.talk("gated") as busy:
        busy.begin("a")

        def waits_in_the_queue() -> bool:
            with service.talk() as client:
                client.send(type="tts.speak", text="a")
                return client.silent(0.1)

        for _ in range(3):
            # Were the place not given back, the second and the third would be over the limit of the key.
            assert eventually(waits_in_the_queue)
        service.speaker.gate.set()
        assert busy.until_usage()[-1]["usage"]["status"] == "completed"
        assert len(service.speaker.calls) == 1
    assert len(used(tmp_path)) == 1


@pytest.mark.slow
def test_163_a_reader_that_stops_is_dropped(stage, talk, tmp_path):
    with stage(data_dir=tmp_path, send_timeout_s=1.0) as service, contextlib.ExitStack() as stack:
        # The library reads ahead by a few frames only; "endless" never ends by itself.
        client = stack.enter_context(talk(service.http, max_queue=4))
        other = stack.enter_context(service.talk())
        client.configure(voice_id=service.voice("endless"), format="pcm")
        client.send(type="tts.speak", text="a")
        assert eventually(lambda: service.speaker.closed == 1, 30)
        assert eventually(lambda: len(used(tmp_path)) == 1)
        # Nobody else was held up.
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


@pytest.mark.slow
def test_123_what_takes_too_long_is_broken_off_and_said(stage, tmp_path):
    with contextlib.ExitStack() as clients, contextlib.ExitStack() as stack:
        service = stack.enter_context(stage(data_dir=tmp_path, drain_s=0.5, tts_concurrency=1))
        busy, queued = (clients.enter_context(service.talk("gated")) for _ in range(2))
        busy.begin("a b c", id="s")
        assert isinstance(busy.event(), bytes)
        queued.send(type="tts.speak", text="a b c")
        assert queued.silent(0.1)
        # The end of the block would let everything go.
        gate, service.speaker.gate.set = service.speaker.gate.set, lambda: None
        stopping = threading.Thread(target=stack.close)
        stopping.start()
        error, usage = busy.event(), busy.event()
        told = (error["code"], usage["usage"]["status"])
        assert told == ("backend_request_failed", "partial_backend_error")
        assert queued.event()["code"] == "backend_unavailable"
        assert (busy.closed(), queued.closed()) == (1012, 1012)
        gate()
        stopping.join(20)
        assert not stopping.is_alive()
    assert [row.status for row in used(tmp_path)] == ["partial_backend_error"]
