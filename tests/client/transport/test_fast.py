"""aiohttp beneath the client: the same answers and the same errors, over real sockets."""

from __future__ import annotations

import asyncio
import gc
import sys

import pytest

from speechlab.client import AsyncClient, Client
from speechlab.errors import (
    APIConnectionError,
    APITimeoutError,
    BadRequestError,
    MissingDependencyError,
    StreamTruncatedError,
)
from support.sockets import nobody

TRANSLATED = {"choices": [{"message": {"content": "Hello"}}]}


@pytest.fixture
def lab(server, clock, http):
    with Client(
        server.base_url, api_key=http.KEY, clock=clock, rng=http.Half(), transport="aiohttp"
    ) as client:
        yield client


def translate(lab):
    return lab.translate("あ", source_lang="ja", target_lang="en").text


def test_every_kind_of_call(server, lab, http, wav, tmp_path):
    server.script(http.reply(body=TRANSLATED, Set_Cookie="a=b"))
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
    server.script(http.chunked(wav[:1000], wav[1000:]))
    assert lab.stream_speech("あ", voice=http.VOICE_ID).collect().encoded == wav
    body = http.events(http.delta("あ"), http.delta("い"))
    server.script(http.chunked(body[:20], body[20:], content_type="text/event-stream"))
    assert lab.stream_translation("a", source_lang="en", target_lang="ja").collect().text == "あい"
    assert lab.with_options(timeout=5).usage.calls == 5


def test_errors_are_the_same(server, lab, http, wav, clock):
    server.script(http.reply(400, {"code": 400, "error": "no"}))
    with pytest.raises(BadRequestError, match="no"):
        translate(lab)
    server.script(http.reply(503), [http.CLOSE], http.reply(body=TRANSLATED))
    assert translate(lab) == "Hello"
    assert len(server.requests) == 3
    server.script([*http.chunked(wav[:1000], end=False), http.CLOSE])
    with pytest.raises(StreamTruncatedError, match="1,000 bytes") as caught:
        lab.stream_speech("あ", voice=http.VOICE_ID).collect()
    assert caught.value.partial == wav[:1000]
    server.script(http.reply(302, Location="http://127.0.0.1:9/"))
    assert lab.request("GET", "/x").status == 302


def test_an_answer_that_does_not_come_is_a_timeout(server, http):
    server.script([30.0])
    with Client(server.base_url, transport="aiohttp", timeout=0.3) as lab:
        with pytest.raises(APITimeoutError) as caught:
            translate(lab)
        assert caught.value.possibly_metered
    assert server.closed_early.wait(5)


def test_nobody_there_is_no_timeout(http):
    with (
        nobody() as address,
        Client(f"http://{address}", transport="aiohttp", max_retries=0) as lab,
        pytest.raises(APIConnectionError, match="check base_url") as caught,
    ):
        translate(lab)
    assert not isinstance(caught.value, APITimeoutError)
    assert not caught.value.possibly_metered
    assert caught.value.__context__ is None


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_many_at_once_and_a_second_loop(server, http):
    server.script([0.02, http.reply(body=TRANSLATED)])

    def twice():
        lab = AsyncClient(server.base_url, transport="aiohttp", max_concurrency=150)

        async def many():
            calls = [lab.translate(str(n), source_lang="ja", target_lang="en") for n in range(40)]
            return [result.text for result in await asyncio.gather(*calls)]

        return asyncio.run(many()), asyncio.run(many())

    assert twice() == (["Hello"] * 40, ["Hello"] * 40)
    gc.collect()  # what was left open warns here, and not in another test


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx_aiohttp", None)
    monkeypatch.setitem(sys.modules, "httpx_aiohttp.httpx2", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'speechlab\[fast\]'"):
        Client("http://127.0.0.1:9", transport="aiohttp")
