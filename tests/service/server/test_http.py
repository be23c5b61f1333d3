"""Clients that send too slowly, too much, or what is not HTTP."""

import contextlib
import json
import socket
import sys
import time

import pytest

from speechlab.contract import ERRORS
from support.clock import ends_within, eventually
from support.sockets import read_all, read_until

GET = "GET /healthz HTTP/1.1\nHost: localhost\n"
POST = "POST /tts HTTP/1.1\nHost: localhost\nAuthorization: Bearer {key}\n"
SLOW_S = 15  # of twenty


@pytest.fixture(scope="module")
def hasty(stage):
    with stage(header_timeout_s=0.6, body_timeout_s=0.6) as service:
        yield service


def answered(http, data: bytes) -> bytes:
    """What comes back when just this is sent."""
    with socket.create_connection(http.address, timeout=20) as connection:
        connection.sendall(data)
        return read_all(connection)


def body_of(reply: bytes, status: int, name: str) -> dict:
    """The body of a refusal, as of the contract."""
    head, _, body = reply.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    told = json.loads(body)
    assert set(told) == {"context", "code", "name", "error"}
    assert (told["name"], told["code"]) == (name, ERRORS[name].code)
    return told


def test_a_head_that_comes_too_slowly_is_408(hasty):
    came = b""
    with ends_within(SLOW_S), socket.create_connection(hasty.http.address, timeout=20) as connection:
        connection.settimeout(0.02)
        for byte in b"GET /tts/voices HTTP/1.1\r\n" + b"X-A: b\r\n" * 122:
            with contextlib.suppress(TimeoutError):
                connection.sendall(bytes([byte]))
                came = connection.recv(65_536)
            if came:
                break
    body_of(came, 408, "ErrRequestTimeout")


LONG = b"X-A: " + b"a" * 70_000
MANY = (b"X-A: " + b"b" * 500 + b"\r\n") * 150 + b"\r\n"
LONG_HEADS = {
    "a header without end": (GET, LONG),
    "many headers": (GET, MANY),
    "a URL without end": ("", b"GET /" + b"a" * 70_000),
    "headers after the body": (POST + "Transfer-Encoding: chunked\n\n2\n{{}}\n0\n", MANY),
}


@pytest.mark.parametrize(("more", "status"), [(198, 200), (199, 431)])
def test_a_head_has_200_headers_at_most(hasty, more, status):
    head = f"{GET}Connection: close\n".replace("\n", "\r\n").encode()
    came = answered(hasty.http, head + b"a:\r\n" * more + b"\r\n")
    assert came.startswith(b"HTTP/1.1 %d " % status)
    assert (b"longer than 200 headers" in came) == (status == 431)


@pytest.mark.parametrize(("head", "rest"), LONG_HEADS.values(), ids=LONG_HEADS)
def test_a_head_that_is_too_long_is_431(staged, head, rest):
    head = head.replace("{key}", staged.http.key).replace("{{}}", "{}").replace("\n", "\r\n")
    assert "65,536" in body_of(answered(staged.http, head.encode() + rest), 431, "ErrHeadTooLarge")["error"]


def test_s115_a_handshake_with_a_long_head_is_invalid(staged):
    came = answered(staged.http, b"GET /ws/tts/realtime HTTP/1.1\r\nHost: localhost\r\n" + LONG)
    assert came.startswith(b"HTTP/1.1 400 ")
    assert json.loads(came.partition(b"\r\n\r\n")[2])["name"] == "invalid_websocket_upgrade"


def test_bodies_and_the_requests_before_do_not_count_as_head(staged):
    head = f"{GET}X-A: {'a' * 50_000}\n\n".replace("\n", "\r\n").encode()
    with socket.create_connection(staged.http.address, timeout=20) as connection:
        for _ in range(3):
            connection.sendall(head)
            assert read_until(connection, b'"ok"}').startswith(b"HTTP/1.1 200 ")
    reply = staged.speak(text="One two three. " * 300, x="y" * 100_000)
    assert (reply.status, reply.headers.get("connection")) == (200, None)  # and it is kept


def test_a_connection_that_says_nothing_is_closed_later(hasty):
    with ends_within(SLOW_S), socket.create_connection(hasty.http.address, timeout=20) as connection:
        connection.settimeout(0.3)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        connection.settimeout(20)
        assert read_all(connection) == b""


@pytest.mark.slow
def test_the_second_request_of_a_connection_is_timed_as_well(hasty):
    with hasty.http.raw(GET) as connection:
        assert read_until(connection, b'"ok"}').startswith(b"HTTP/1.1 200 ")
        time.sleep(0.8)  # idle between requests is something else
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert read_until(connection, b'"ok"}').startswith(b"HTTP/1.1 200 ")
        connection.sendall(b"GET /healthz HTT")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("path", ["/asr/srt/audio_llm", "/translate/"])
def test_a_body_that_stops_is_408(hasty, path):
    head = POST.replace("/tts", path) + "Content-Length: 100\n"
    with ends_within(SLOW_S), hasty.http.raw(head, b"{") as connection:
        came = read_all(connection)
    body_of(came, 408, "ErrRequestTimeout")
    assert b"connection: close" in came.lower()


def test_s9_what_is_not_http_gets_the_error_body(hasty):
    body_of(answered(hasty.http, b"\x16\x03\x01\x02\x00 hello\r\n\r\n"), 400, "ErrInvalidRequest")


@pytest.mark.parametrize("coding", ["gzip, chunked", "chunked, chunked"])
def test_codings_other_than_chunked_are_not_implemented(staged, coding):
    with staged.http.raw(f"{POST}Transfer-Encoding: {coding}\n", b"2\r\n{}\r\n0\r\n\r\n") as connection:
        came = read_all(connection)
    # What ends in no chunked has no end at all, and is not HTTP to the parser.
    assert came.startswith((b"HTTP/1.1 501 ", b"HTTP/1.1 400 ")[: 1 + (coding != "gzip, chunked")])


@pytest.mark.parametrize(("stream", "begun"), [(False, False), (True, False), (True, True)])
def test_a_client_that_has_ended_its_sending_gets_its_reply(staged, stream, begun):
    with staged.asking("gated", stream=stream) as connection:
        came = read_until(connection, b"\r\n\r\n") if begun else b""
        connection.shutdown(socket.SHUT_WR)
        assert eventually(lambda: staged.speaker.calls)
        staged.speaker.gate.set()
        came = (came + read_all(connection)).removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
    assert came.startswith(b"HTTP/1.1 200 ")
    assert len(came) > 48_000
    assert not stream or came.endswith(b"\r\n0\r\n\r\n")


@pytest.mark.skipif(sys.platform != "linux", reason="the reset of a client is seen by its error")
def test_s50_a_client_that_has_left_is_told_from_one_that_waits(staged):
    with staged.asking("endless"):
        assert eventually(lambda: staged.speaker.calls)
    assert eventually(lambda: staged.speaker.closed == 1)
