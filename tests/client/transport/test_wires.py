"""Both wires: the same requests, the same answers and the same errors, over real sockets."""

import asyncio
import os
import socket
import sys
import time
from contextlib import closing

import pytest

from speechlab.client import AsyncClient, Client, choose_library
from speechlab.errors import (
    APIConnectionError,
    APIError,
    ContractError,
    InvalidRequestError,
    MissingDependencyError,
    StreamTruncatedError,
)
from support.samples import TRANSLATED
from support.sockets import Listener


def translate(lab):
    return lab.translate("あ", source_lang="ja", target_lang="en").text


def test_every_kind_of_call(server, lab, http, wav, tmp_path):
    server.script(http.reply(body=TRANSLATED, Set_Cookie="a=b", X_Policy="a" * 20_000))
    assert translate(lab) == translate(lab) == "Hello"
    first, second = server.requests
    assert first.headers["authorization"] == f"Bearer {http.KEY}"
    assert first.headers["content-length"] == str(len(first.body))
    assert "transfer-encoding" not in first.headers
    assert first.headers["user-agent"].startswith("speechlab/")
    assert "cookie" not in second.headers
    server.script(http.reply(body={"text": "あ"}))
    (tmp_path / "long.wav").write_bytes(wav[:44] + bytes(1_000_000))
    assert lab.transcribe(tmp_path / "long.wav").text == "あ"
    assert int(server.requests[0].headers["content-length"]) == len(server.requests[0].body) > 1_300_000
    body = http.events(http.delta("あ"), http.delta("い"))
    server.script(http.chunked(body[:20], body[20:], content_type="text/event-stream"))
    assert lab.stream_translation("a", source_lang="en", target_lang="ja").collect().text == "あい"
    data = wav[44:]  # in pieces without a media type, which lack no first piece
    pieces = [data[start : start + 2_400] for start in range(0, len(data), 2_400)]
    server.script(http.chunked(*pieces, content_type="application/octet-stream"))
    with lab.stream_speech("a", voice=http.VOICE_ID, format="pcm") as stream:
        assert b"".join(stream) == data
    assert lab.with_options(timeout=5).usage.calls == 5
    server.script(http.reply(X_Note="a").replace(b"X-Note: a", b"X-Note: a\r\nx-note: b"))
    assert lab.request("GET", "/x").headers["x-note"] == "a, b"


def test_streams_and_requests_that_end_otherwise(server, lab, http, wav):
    server.script([*http.chunked(wav[:1000], end=False), http.CLOSE])
    with pytest.raises(StreamTruncatedError, match="1,000 bytes") as caught:
        lab.stream_speech("あ", voice=http.VOICE_ID).collect()
    assert caught.value.partial == wav[:1000]
    server.script(http.reply(302, Location="http://127.0.0.1:9/"))
    assert lab.request("GET", "/x").status == 302
    for method in ("GET", "POST"):
        server.script(http.reply(), http.CLOSE)
        lab.request(method, "/x")
        with pytest.raises(APIConnectionError):
            lab.request(method, "/x")
        assert len(server.requests) == 2  # nothing is sent again by the library


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'speechlab\[fast\]'"):
        Client("http://127.0.0.1:9", transport="aiohttp")


def test_choose_library_takes_aiohttp_after_first_calls(monkeypatch):
    monkeypatch.delitem(sys.modules, "aiohttp", raising=False)

    def choose(calls, transport=None):
        with Client("https://speech.invalid", transport=transport) as lab:
            return choose_library(lab._async._settings, calls)

    assert [choose(calls) for calls in (1, 10, 11)] == ["httpx2", "httpx2", "aiohttp"]
    assert choose(99, "httpx2") == "httpx2"
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    assert choose(99) == "httpx2"


def test_a_recording_that_shrinks_while_it_is_sent(server, lab, http, wav, tmp_path):
    path = tmp_path / "long.wav"
    path.write_bytes(wav[:44] + bytes(3_000_000))
    first = lab.with_options(on_event=lambda event: event.kind == "request" and os.truncate(path, 1_000_000))
    with pytest.raises(InvalidRequestError, match="became shorter"):
        first.transcribe(path)
    server.script(http.reply(body={"text": "a"}))
    assert lab.transcribe(wav).text == "a"


@pytest.mark.slow
def test_a_connection_closed_behind_a_blocked_loop(server, http, wire):
    server.script([http.reply(body=TRANSLATED), http.CLOSE])

    async def main():
        async with AsyncClient(server.base_url, transport=wire, max_retries=0) as lab:
            texts = []
            for _ in range(3):
                texts.append((await lab.translate("a", source_lang="ja", target_lang="en")).text)
                time.sleep(0.6)  # noqa: ASYNC251 - as in a cell that computes
            return texts

    assert asyncio.run(main()) == ["Hello"] * 3


class Refusing(Listener):
    """Answers and closes with the body unread, which resets the connection."""

    def __init__(self):
        self.answer, self.came = b"", []
        self.listen()

    def serve(self, connection):
        self.came.append(connection.recv(1_000, socket.MSG_WAITALL))  # more than the head
        time.sleep(0.02)
        connection.sendall(self.answer)


@pytest.fixture
def refusing():
    with closing(Refusing()) as server:
        yield server


@pytest.mark.parametrize("interim", [b"", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 X\r\nLink: a\r\n\r\n"])
def test_a_refusal_that_resets_the_connection_keeps_its_status(refusing, http, wire, wav, interim):
    refusing.answer = interim + http.reply(413, {"error": "too large"})
    with (
        Client(f"http://{refusing.place}", transport=wire) as lab,
        pytest.raises(APIError, match="HTTP 413: too large"),
    ):
        lab.transcribe(wav[:44] + bytes(32_000_000))
    assert len(refusing.came) == 1


@pytest.mark.slow
def test_an_upload_that_breaks_is_repeated_once(refusing, wire, wav):
    with (
        Client(f"http://{refusing.place}", transport=wire) as lab,
        pytest.raises(APIConnectionError) as caught,
    ):
        lab.transcribe(wav[:44] + bytes(9_000_000))
    assert "while the request of 12.0 MB was sent; the service may refuse that size" in str(caught.value)
    assert "check base_url" not in str(caught.value)
    assert len(refusing.came) == 2


def test_a_packing_that_was_not_asked_for_is_named(server, lab, http):
    server.script(http.reply(body=b"\x0b\x02\x80{}\x03", Content_Encoding="br"))
    with pytest.raises(ContractError, match=r"not asked for \(Content-Encoding: br\)"):
        translate(lab)
    assert "gzip" in server.requests[0].headers["accept-encoding"]
