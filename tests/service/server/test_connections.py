"""Connections of strangers: silent ones, too many of them, and readers that do not read."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time

import psutil
import pytest

from support.clients import KEY, Http
from support.clock import ends_within, eventually
from support.sockets import read_until


def seconds_until_the_end(connection: socket.socket, within_s: float = 15.0) -> float:
    """Wait for the other side to close, or to reset."""
    connection.settimeout(within_s)
    began = time.monotonic()
    with contextlib.suppress(ConnectionError):
        while connection.recv(65_536):
            pass
    return time.monotonic() - began


UNREAD = {
    "no key, and a byte": (
        b"POST /tts HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n",
        b"{",
        b" 401 ",
    ),
    "no key, and nothing": (
        b"POST /tts HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n",
        b"",
        b" 401 ",
    ),
    "no key, and a chunk": (
        b"POST /tts HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"5\r\nhello\r\n",
        b" 401 ",
    ),
    "liveness with a body": (
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n",
        b"{",
        b" 200 ",
    ),
}


@pytest.mark.parametrize(("head", "more", "status"), UNREAD.values(), ids=UNREAD)
def test_a_body_that_was_not_read_ends_the_connection(staged, monkeypatch, head, more, status):
    monkeypatch.setattr("speechlab.service._server.http._LINGER_PAUSE_S", 0.5)
    with socket.create_connection(staged.http.address, timeout=20) as connection:
        connection.sendall(head)
        reply = read_until(connection, b"}").lower()
        assert status in reply
        assert b"connection: close" in reply
        connection.sendall(more)
        assert seconds_until_the_end(connection) < 10


def test_s6_a_refusal_is_read_by_a_client_that_is_still_sending(staged):
    """A reset would overtake the reply."""
    reply = staged.http.request("POST", "/tts", b"x" * 20_000_000, key=None)
    assert reply.status == 401
    assert json.loads(reply.body)["code"] == 104


@pytest.mark.slow
def test_what_goes_on_sending_after_a_refusal_is_cut_off(staged, monkeypatch):
    monkeypatch.setattr("speechlab.service._server.http._LINGER_S", 1.0)
    with socket.create_connection(staged.http.address, timeout=20) as connection:
        connection.sendall(b"POST /tts HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n")
        assert b" 401 " in read_until(connection, b"}")
        with ends_within(15), contextlib.suppress(ConnectionError):
            for _ in range(300):
                connection.sendall(b"x")
                time.sleep(0.05)


def test_a_refused_client_that_resets_leaves_no_connection(staged, monkeypatch):
    def fail(_transport):
        raise OSError("as if the client had reset the connection")

    monkeypatch.setattr("asyncio.selector_events._SelectorSocketTransport.write_eof", fail)
    monkeypatch.setattr("speechlab.service._server.http._LINGER_PAUSE_S", 0.1)
    with socket.create_connection(staged.http.address, timeout=20) as connection:
        connection.sendall(b"POST /tts HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n")
        assert b" 401 " in read_until(connection, b"}")
        assert seconds_until_the_end(connection) < 10


@pytest.mark.slow
def test_an_empty_line_after_a_reply_keeps_no_connection(stage):
    with (
        stage(header_timeout_s=1) as service,
        socket.create_connection(service.http.address, timeout=20) as connection,
    ):
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        read_until(connection, b'"ok"}')
        connection.sendall(b"\r\n")
        assert seconds_until_the_end(connection) < 10


def test_a_connection_that_asks_again_is_kept(staged):
    body = json.dumps({"voice_id": staged.voice("plain"), "text": "Hi.", "format": "wav"}).encode()
    lines = (
        "POST /tts HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {KEY}",
        f"Content-Length: {len(body)}",
    )
    head = "\r\n".join((*lines, "", ""))
    with socket.create_connection(staged.http.address, timeout=20) as connection:
        for _ in range(3):
            connection.sendall(head.encode() + body)
            got = read_until(connection, b"\r\n\r\n")
            assert got.startswith(b"HTTP/1.1 200 ")
            length = int(got.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            rest = got.partition(b"\r\n\r\n")[2]
            while len(rest) < length:
                rest += connection.recv(65_536)


@pytest.mark.parametrize("limit", ["max_connections", "address_connections"])
def test_silent_connections_make_room_for_those_that_ask(stage, limit):
    with stage(**{limit: 20}) as service, contextlib.ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection(service.http.address)) for _ in range(60)]
        for connection in silent[:30]:
            with contextlib.suppress(OSError):
                connection.sendall(b"GET /healthz HT")
        for _ in range(5):
            assert service.http.request("GET", "/tts/voices").status == 200
        silent[0].settimeout(10)
        with contextlib.suppress(ConnectionError):
            assert silent[0].recv(10) == b""


def test_those_that_are_served_are_not_thrown_out(stage):
    with stage(max_connections=3, address_connections=3) as service, contextlib.ExitStack() as stack:
        fields = {"voice_id": service.voice("endless"), "text": "Hi.", "format": "pcm", "stream": True}
        for _ in range(3):
            connection = stack.enter_context(service.http.raw_json("/tts", fields))
            read_until(connection, b"200 OK")
        with service.http.raw("GET /healthz HTTP/1.1\nHost: localhost\n") as one_more:
            assert read_until(one_more, b"}").startswith(b"HTTP/1.1 503 ")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="limits of open files are POSIX")
def test_the_limit_of_open_files_is_never_reached(tmp_path):
    """Two hundred files, three hundred silent connections: others are served, and the log stays short."""

    command = [
        "bash",
        "-c",
        'ulimit -n 200; exec "$@"',
        "few",
        sys.executable,
        "-m",
        "speechlab.service",
        "--port",
        "0",
        "--recognizer",
        "",
        "--translator",
        "",
    ]
    with (tmp_path / "log").open("w+b") as log:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert child.stdout is not None
            ready = json.loads(child.stdout.readline().removeprefix("ready "))
            http = Http(ready["base_url"], ready["api_key"])
            with contextlib.ExitStack() as stack:
                for _ in range(300):
                    connection = stack.enter_context(socket.create_connection(http.address, timeout=20))
                    connection.sendall(b"POST /tts HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
                for _ in range(5):
                    assert http.request("GET", "/tts/voices").status == 200
        finally:
            child.terminate()
            child.communicate(timeout=20)
        log.seek(0)
        lines = log.read().decode().splitlines()
    assert not [line for line in lines if "Traceback" in line or not line.startswith("{")]
    assert sum("too many connections" in line for line in lines) <= 2
    # Each refused request is one line of the log.
    assert len(lines) < 400


def masked(opcode: int, payload: bytes) -> bytes:
    return bytes([0x80 | opcode, 0x80 | len(payload)]) + b"\0\0\0\0" + payload


HANDSHAKE = (
    "GET /ws/tts/realtime HTTP/1.1\nHost: localhost\nAuthorization: Bearer {key}\nConnection: Upgrade\n"
    "Upgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\n"
)


@pytest.mark.slow
def test_s160_answers_to_pings_that_nobody_reads_take_no_memory(staged, monkeypatch):
    monkeypatch.setattr("speechlab.service._server.websocket._MAX_FRAMES_S", 10**9)
    with staged.http.raw(HANDSHAKE) as connection:
        connection.setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVBUF, 4096
        )  # so that nothing is left to the kernel
        assert read_until(connection, b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
        before = psutil.Process().memory_info().rss
        pings = masked(0x9, b"p" * 100) * 1_000
        for _ in range(100):  # 10 MB, each of which would wait to be written
            connection.sendall(pings)
        assert psutil.Process().memory_info().rss - before < 5_000_000
        # The last one is answered as soon as there is room, though it comes together with others.
        connection.sendall(pings + masked(0x9, b"the last"))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1_000_000)
        connection.settimeout(20)
        got = b""
        while b"the last" not in got[-2_000:]:
            more = connection.recv(65_536)
            assert more, got[-300:]
            got = got[-2_000:] + more


@pytest.mark.slow
def test_s163_a_whole_reply_that_nobody_reads_is_dropped(stage, caplog):
    caplog.set_level("INFO", logger="speechlab")
    with stage(send_timeout_s=1.0) as service:
        service.speaker.piece_s = 200.0  # 19 MB of PCM
        fields = {"voice_id": service.voice("plain"), "text": "Hi.", "format": "pcm"}
        with service.http.raw_json("/tts", fields) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            assert read_until(connection, b"\r\n\r\n").startswith(b"HTTP/1.1 200 ")
            assert eventually(lambda: requests_of(caplog))
            (fields,) = requests_of(caplog)
            assert (fields["status"], fields["sent"]) == (499, 200)
            assert "too slow" in fields["ended"]


def requests_of(caplog) -> list[dict]:
    return [record.fields for record in caplog.records if record.getMessage() == "request"]


@pytest.mark.slow
def test_s163_a_stream_with_a_slow_reader_is_logged_as_499(stage, caplog):
    caplog.set_level("INFO", logger="speechlab")
    with stage(send_timeout_s=1.0) as service:
        fields = {"voice_id": service.voice("endless"), "text": "Hi.", "format": "pcm", "stream": True}
        with service.http.raw_json("/tts", fields) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            assert eventually(lambda: requests_of(caplog), 30)
        metrics = service.http.request("GET", "/metrics").body.decode()
    (fields,) = requests_of(caplog)
    assert (fields["status"], fields["sent"], fields["ended"]) == (
        499,
        200,
        "the reader was too slow",
    )
    assert 'method="POST",route="/tts",status="499"' in metrics


@pytest.mark.slow
def test_the_time_for_a_head_ends_no_realtime_connection(stage, talk):
    with stage(header_timeout_s=0.3) as service, talk(service.http) as client:
        client.configure(voice_id=service.voice("gated"), format="pcm")
        client.send(type="tts.speak", text="Hello.")
        assert client.event()["type"] == "tts.audio.start"
        time.sleep(1.0)
        service.speaker.gate.set()
        assert client.until_usage()[-1]["usage"]["status"] == "completed"
