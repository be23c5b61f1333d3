"""Clients that send too slowly, too much, or what is not HTTP."""

from __future__ import annotations

import json
import socket
import sys
import time

import pytest

from speechlab.contract import ERRORS
from support.clients import KEY
from support.clock import eventually
from support.sockets import read_all, read_until


def sent_slowly(address: tuple[str, int], pieces: list[bytes], pause_s: float) -> tuple[bytes, float]:
    """Send pieces with pauses until the other side ends; what came back, and after how many seconds."""
    begun = time.monotonic()
    with socket.create_connection(address, timeout=20) as connection:
        connection.settimeout(pause_s)
        came = b""
        for piece in pieces:
            try:
                connection.sendall(piece)
                if not (data := connection.recv(65_536)):
                    break
                came += data
            except TimeoutError:
                continue
            except OSError:
                break
        connection.settimeout(20)
        try:
            while data := connection.recv(65_536):
                came += data
        except OSError:
            pass
        return came, time.monotonic() - begun


@pytest.fixture(scope="module")
def hasty(stage):
    with stage(header_timeout_s=0.6, body_timeout_s=0.6) as service:
        yield service


def test_a_head_that_comes_too_slowly_is_408(hasty):
    head = b"GET /tts/voices HTTP/1.1\r\n" + b"X-A: b\r\n" * 200
    came, seconds = sent_slowly(hasty.http.address, [head[i : i + 1] for i in range(1000)], 0.02)
    assert came.startswith(b"HTTP/1.1 408 ")
    body = json.loads(came.partition(b"\r\n\r\n")[2])
    assert (body["name"], body["code"]) == ("ErrRequestTimeout", ERRORS["ErrRequestTimeout"].code)
    assert seconds < 15  # of twenty


LONG_HEADS = {
    "one header": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 70_000 + b"\r\n\r\n",
    "a header without end": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 70_000,
    "many headers": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    + (b"X-A: " + b"b" * 500 + b"\r\n") * 150
    + b"\r\n",
    "a URL": b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a URL without end": b"GET /" + b"a" * 70_000,
    "headers after the body": (
        b"POST /tts HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + b"KEY" + b"\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n" + (b"X-A: " + b"b" * 500 + b"\r\n") * 150
    ),
}


@pytest.mark.parametrize(("more", "status"), [(198, 200), (199, 431), (12_000, 431)])
def test_a_head_has_200_headers_at_most(hasty, more, status):
    with socket.create_connection(hasty.http.address, timeout=20) as connection:
        head = (
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + b"a:\r\n" * more + b"\r\n"
        )
        connection.sendall(head)
        came = read_all(connection)
    assert came.startswith(b"HTTP/1.1 %d " % status)
    assert (b"longer than 200 headers" in came) == (status == 431)


def test_a_head_that_is_too_long_is_431(staged):
    for what, head in LONG_HEADS.items():
        with socket.create_connection(staged.http.address, timeout=20) as connection:
            connection.sendall(head.replace(b"KEY", KEY.encode()))
            came = read_all(connection)
        assert came.startswith(b"HTTP/1.1 431 "), what
        body = json.loads(came.partition(b"\r\n\r\n")[2])
        assert (body["name"], body["code"]) == ("ErrHeadTooLarge", ERRORS["ErrHeadTooLarge"].code)
        assert "65,536" in body["error"]


def test_s115_a_handshake_with_a_long_head_is_invalid(staged):
    with socket.create_connection(staged.http.address, timeout=20) as connection:
        connection.sendall(b"GET /ws/tts/realtime HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 70_000)
        came = read_all(connection)
    assert came.startswith(b"HTTP/1.1 400 ")
    assert json.loads(came.partition(b"\r\n\r\n")[2])["name"] == "invalid_websocket_upgrade"


def test_bodies_and_the_requests_before_do_not_count_as_head(staged):
    head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 50_000 + b"\r\n\r\n"
    with socket.create_connection(staged.http.address, timeout=20) as connection:
        for _ in range(3):
            connection.sendall(head)
            assert read_until(connection, b'"ok"}').startswith(b"HTTP/1.1 200 ")
    text = "One two three. " * 300
    fields = {"voice_id": staged.voice("plain"), "text": text, "format": "wav", "x": "y" * 100_000}
    assert staged.http.speak(**fields).status == 200


def test_a_connection_that_says_nothing_is_closed(hasty):
    came, seconds = sent_slowly(hasty.http.address, [], 0.1)
    assert came == b""
    assert 0.3 < seconds < 15  # of twenty


@pytest.mark.slow
def test_the_second_request_of_a_connection_is_timed_as_well(hasty):
    with socket.create_connection(hasty.http.address, timeout=20) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert read_until(connection, b'"ok"}').startswith(b"HTTP/1.1 200 ")
        time.sleep(0.8)  # idle between requests is something else
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert read_until(connection, b'"ok"}').startswith(b"HTTP/1.1 200 ")
        connection.sendall(b"GET /healthz HTT")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 408 ")


def head(path: str, length: int, key: str) -> bytes:
    lines = (f"POST {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {key}")
    return "\r\n".join((*lines, f"Content-Length: {length}", "", "")).encode()


@pytest.mark.parametrize("path", ["/tts", "/asr/srt/audio_llm", "/translate/"])
def test_a_body_that_stops_is_408(hasty, path):
    pieces = [head(path, 100, hasty.http.key) + b"{"]
    came, seconds = sent_slowly(hasty.http.address, pieces, 0.05)
    assert came.startswith(b"HTTP/1.1 408 ")
    assert b'"ErrRequestTimeout"' in came
    assert b"connection: close" in came.lower()
    assert seconds < 15  # of twenty


@pytest.mark.slow
def test_a_body_that_trickles_is_408_and_one_that_flows_is_not(hasty):
    pieces = [head("/tts", 5000, hasty.http.key), *[b" "] * 1000]
    came, seconds = sent_slowly(hasty.http.address, pieces, 0.02)
    assert came.startswith(b"HTTP/1.1 408 ")
    assert seconds < 15  # of twenty
    body = json.dumps({"voice_id": hasty.voice("plain"), "text": "Hi.", "format": "wav"}).encode()
    body += b" " * (20_000 - len(body))
    pieces = [head("/tts", len(body), hasty.http.key)]
    pieces += [body[start : start + 1000] for start in range(0, len(body), 1000)]
    with socket.create_connection(hasty.http.address, timeout=20) as connection:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(0.06)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")


def test_s9_what_is_not_http_gets_the_error_body(hasty):
    came, _ = sent_slowly(hasty.http.address, [b"\x16\x03\x01\x02\x00 hello\r\n\r\n"], 0.1)
    assert came.startswith(b"HTTP/1.1 400 ")
    body = json.loads(came.partition(b"\r\n\r\n")[2])
    assert set(body) == {"context", "code", "name", "error"}


@pytest.mark.parametrize("coding", ["gzip, chunked", "identity, chunked", "chunked, chunked", "deflate"])
def test_codings_other_than_chunked_are_not_implemented(staged, coding):
    head = (
        f"POST /tts HTTP/1.1\nHost: localhost\nAuthorization: Bearer {{key}}\nTransfer-Encoding: {coding}\n"
    )
    with staged.http.raw(head, b"2\r\n{}\r\n0\r\n\r\n") as connection:
        came = read_all(connection)
    # What ends in no chunked has no end at all, and is not HTTP to the parser.
    assert came.startswith(
        (b"HTTP/1.1 501 ", b"HTTP/1.1 400 ")[: 1 + (coding in {"deflate", "chunked, chunked"})]
    )


def last_reply(data: bytes) -> bytes:
    return data.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")


@pytest.mark.parametrize(("stream", "begun"), [(False, False), (True, False), (True, True)])
def test_a_client_that_has_ended_its_sending_gets_its_reply(staged, stream, begun):
    fields = {"voice_id": staged.voice("gated"), "text": "x", "format": "pcm", "stream": stream}
    with staged.http.raw_json("/tts", fields) as connection:
        came = read_until(connection, b"\r\n\r\n") if begun else b""
        connection.shutdown(socket.SHUT_WR)
        assert eventually(lambda: staged.speaker.calls)
        staged.speaker.gate.set()
        came = last_reply(came + read_all(connection))
    assert came.startswith(b"HTTP/1.1 200 ")
    assert len(came) > 48_000
    assert not stream or came.endswith(b"\r\n0\r\n\r\n")


@pytest.mark.skipif(sys.platform != "linux", reason="the reset of a client is seen by its error")
def test_s50_a_client_that_has_left_is_told_from_one_that_waits(staged):
    fields = {"voice_id": staged.voice("endless"), "text": "x", "format": "pcm"}
    with staged.http.raw_json("/tts", fields):
        assert eventually(lambda: staged.speaker.calls)
    assert eventually(lambda: staged.speaker.closed == 1)
