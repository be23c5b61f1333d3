"""Connections of strangers: silent ones, too many of them, and readers that do not read."""

import contextlib
import json
import os
import socket
import time

import psutil
import pytest

from support.clients import HANDSHAKE, masked
from support.clock import ends_within
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
    "no key, and a byte": ("POST /tts", "Content-Length: 1000", b"{", b" 401 "),
    "no key, and a chunk": ("POST /tts", "Transfer-Encoding: chunked", b"5\r\nhello\r\n", b" 401 "),
    "liveness with a body": ("GET /healthz", "Content-Length: 5", b"{", b" 200 "),
}


@pytest.mark.parametrize(("line", "length", "more", "status"), UNREAD.values(), ids=UNREAD)
def test_a_body_that_was_not_read_ends_the_connection(staged, monkeypatch, line, length, more, status):
    monkeypatch.setattr("speechlab.service._server.http._LINGER_PAUSE_S", 0.5)
    with staged.http.raw(f"{line} HTTP/1.1\nHost: localhost\n{length}\n") as connection:
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
    with staged.http.raw("POST /tts HTTP/1.1\nHost: localhost\nContent-Length: 100000000\n") as connection:
        assert b" 401 " in read_until(connection, b"}")
        with ends_within(15), contextlib.suppress(ConnectionError):
            for _ in range(300):
                connection.sendall(b"x")
                time.sleep(0.05)


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


def test_silent_connections_make_room_for_those_that_ask(stage):
    with stage(address_connections=20) as service, contextlib.ExitStack() as stack:
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
        for _ in range(3):
            connection = stack.enter_context(service.asking("endless", stream=True))
            read_until(connection, b"200 OK")
        with service.http.raw("GET /healthz HTTP/1.1\nHost: localhost\n") as one_more:
            assert read_until(one_more, b"}").startswith(b"HTTP/1.1 503 ")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="limits of open files are POSIX")
def test_the_limit_of_open_files_is_never_reached(start):
    """Two hundred files, three hundred silent connections: others are served, and the log stays short."""
    few = ("bash", "-c", 'ulimit -n 200; exec "$@"', "few")
    process = start("--recognizer=", "--translator=", before=few)
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            unread = "POST /tts HTTP/1.1\nHost: localhost\nContent-Length: 9\n"
            stack.enter_context(process.http.raw(unread, b"{"))
        for _ in range(5):
            assert process.http.request("GET", "/tts/voices").status == 200
    process.child.terminate()
    lines = process.end()[2].splitlines()
    assert not [line for line in lines if "Traceback" in line or not line.startswith("{")]
    assert sum("too many connections" in line for line in lines) <= 2
    # Each refused request is one line of the log.
    assert len(lines) < 400


@pytest.mark.slow
def test_s160_answers_to_pings_that_nobody_reads_take_no_memory(staged, monkeypatch):
    monkeypatch.setattr("speechlab.service._server.websocket._MAX_FRAMES_S", 10**9)
    with staged.http.raw(HANDSHAKE) as connection:
        # So that nothing is left to the kernel:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
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
def test_the_time_for_a_head_ends_no_realtime_connection(stage):
    with stage(header_timeout_s=0.3) as service, service.talk("gated") as client:
        client.begin("Hello.")
        time.sleep(1.0)
        service.speaker.gate.set()
        assert client.until_usage()[-1]["usage"]["status"] == "completed"
