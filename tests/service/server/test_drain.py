"""A service that stops: what runs is finished, what is new is told to come back, and the process exits with 0."""

import contextlib
import json
import os
import signal
import socket
import threading
import time

import pytest
from websockets.exceptions import InvalidStatus

from speechlab.contract import ERRORS
from speechlab.service import voice_uuid
from support.clients import KEY, talking
from support.clock import ends_within, eventually
from support.sockets import dechunked, read_all, read_until
from support.staged import used


def refused_503(reply):
    told = reply.json()
    expected = (503, "ErrOverloaded", ERRORS["ErrOverloaded"].code)
    assert (reply.status, told["name"], told["code"]) == expected
    assert int(reply.headers["retry-after"]) > 0


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_s123_a_process_finishes_what_runs_and_refuses_others(start):
    names = ("SPEECHLAB_SERVICE_API_KEY", "SPEECHLAB_SERVICE_OPERATOR_KEY")
    process = start(**dict.fromkeys(names, KEY), SPEECHLAB_SERVICE_DRAIN_S="60")
    http, child = process.http, process.child
    text = "This is one of the many sentences that are spoken here. " * 28
    hibari = voice_uuid("hibari", "heart")
    fields = {"voice_id": hibari, "format": "wav", "stream": True, "sample_rate": 48_000}
    with (
        http.raw_json("/tts", {**fields, "text": text}) as slow,
        talking(http) as busy,
        talking(http) as idle,
    ):
        busy.configure(voice_id=hibari, format="pcm")
        busy.begin("One sentence. Another sentence. And a third one.")
        # Nobody reads on, so that it runs for as long as this test wants it to: sockets hold less than 3 MB.
        head, _, begun = read_until(slow, b"\r\n\r\n").partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        # As a terminal or systemd sends it: to the processes that read texts, too.
        os.killpg(child.pid, signal.SIGTERM)
        assert eventually(lambda: http.request("GET", "/tts/voices").status == 503)
        for reply in (
            http.request("GET", "/tts/voices"),
            http.speak(voice_id="whatever", text="Hello.", format="wav"),
            http.recognize(b"RIFF"),
            http.translate(text="Hello.", source_lang="en", target_lang="ja"),
        ):
            refused_503(reply)
            assert reply.headers["connection"] == "close"
        with pytest.raises(InvalidStatus) as caught, talking(http):
            pass
        response = caught.value.response
        assert (response.status_code, json.loads(response.body)["name"]) == (503, "websocket_draining")
        assert response.headers["Retry-After"]
        # Strangers are not told, and machines still look after it.
        assert http.request("GET", "/tts/voices", key="sl:key-of-nobody").status == 401
        assert http.request("GET", "/healthz").status == 200
        assert http.request("GET", "/metrics").status == 200
        assert http.request("GET", "/readyz").status == 503
        assert child.poll() is None
        assert (idle.closed(), busy.until_usage()[-1]["usage"]["status"]) == (1012, "completed")
        assert busy.closed() == 1012
        sound = begun + read_all(slow)
    assert sound.endswith(b"\r\n0\r\n\r\n")
    assert len(dechunked(sound)) > 4_500_000
    code, _, errors = process.end()
    assert code == 0
    events = [json.loads(line) for line in errors.splitlines()]
    assert [event["event"] for event in events if event["event"].startswith("drain")] == [
        "draining",
        "drained",
    ]
    assert events[-1]["event"] == "stopped"
    assert KEY not in errors
    assert "sentence" not in errors


@pytest.mark.slow
def test_a_request_that_outlasts_the_drain_is_told(stage, tmp_path):
    replies = []
    with contextlib.ExitStack() as stack:
        service = stack.enter_context(stage(data_dir=tmp_path, drain_s=0.3))
        gate, service.speaker.gate = service.speaker.gate, threading.Event()
        held, service.speaker.gate.set = service.speaker.gate.set, lambda: None
        asking = threading.Thread(target=lambda: replies.append(service.speak("gated")))
        asking.start()
        assert eventually(lambda: service.speaker.calls)
        stack.close()
        asking.join(20)
        held()
        gate.set()
    (reply,) = replies
    refused_503(reply)
    assert [row.status for row in used(tmp_path)] == ["cancelled"]


def test_an_idle_service_stops_at_once_with_its_connections(stage):
    with stage(drain_s=60) as service:
        idle = socket.create_connection(service.http.address, timeout=20)
        idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert read_until(idle, b'"ok"}').startswith(b"HTTP/1.1 200 ")
    with idle:
        assert idle.recv(100) == b""


def test_a_service_that_overslept_stops_at_once(stage, monkeypatch):
    """An event loop that saw a wrong clock, as another test may give it, sleeps until something wakes it."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(stage())
        monkeypatch.setattr(time, "monotonic", lambda: 0.0)
        time.sleep(0.3)  # it looks at the clock every tenth of a second
        monkeypatch.undo()
        with ends_within(20):  # of the thirty that a stop may take
            stack.close()
