"""Streams as they came: the head is there before the body, and the body is checked as ever."""

from __future__ import annotations

import asyncio

import pytest

from speechlab.client import AsyncClient, Client
from speechlab.errors import (
    BadRequestError,
    ConfigurationError,
    InvalidRequestError,
    StreamTruncatedError,
)

EVENTS = "text/event-stream; charset=utf-8"


def speech(lab, voice="0f8fad5b-d9cb-469f-a165-70867728950e"):
    return lab.with_raw_response.stream_speech("a", voice=voice)


def translation(lab):
    return lab.with_raw_response.stream_translation("a", source_lang="ja", target_lang="en")


def test_the_head_is_there_before_the_body(server, lab, http, wav):
    server.script(http.reply(503), http.chunked(wav[:1000], 30.0))
    with speech(lab) as raw:
        assert (raw.status, raw.content_type) == (200, "audio/wav")
        assert raw.headers["transfer-encoding"] == "chunked"
        assert raw.timing.attempts == 2
        assert raw.timing.latency_s > 0
        assert next(raw) == wav[:1000]
        assert raw.parse().partial == wav[:1000]
    assert server.closed_early.wait(5)


def test_before_it_is_open_there_is_no_head(server, lab, http):
    server.script(http.reply(400, {"error": "no such voice"}))
    raw = speech(lab)
    with pytest.raises(ConfigurationError, match="not open yet"):
        _ = raw.status
    with pytest.raises(BadRequestError, match="no such voice"):
        raw.open()
    with pytest.raises(InvalidRequestError):
        speech(lab, voice=5).open()


def test_the_bytes_are_those_that_came(server, lab, http, wav):
    server.script(http.chunked(wav[:1000], wav[1000:]))
    with speech(lab) as raw:
        assert b"".join(raw) == wav
        assert raw.next_piece() is None
        assert raw.parse().collect().encoded == wav
    body = http.events(http.delta("あ"), http.delta("い", usage={"total_tokens": 3}))
    server.script(http.chunked(body[:20], body[20:47], body[47:], content_type=EVENTS))
    with translation(lab) as raw:
        assert raw.content_type == "text/event-stream"
        assert b"".join(raw) == body
        assert raw.parse().translation.text == "あい"
    assert lab.usage.calls == 2


def test_reading_goes_on_where_the_bytes_have_come_to(server, lab, http):
    first, second = http.events(http.delta("one"), end=b""), http.events(http.delta(" two"))
    server.script(http.chunked(first, 0.05, second, content_type=EVENTS))
    with translation(lab) as raw:
        assert next(raw) == first
        stream = raw.parse()
        assert stream.text == "one"
        assert [chunk.text for chunk in stream] == [" two"]
        assert stream.translation.text == "one two"


def test_a_body_that_is_cut_short_gives_what_came_and_then_the_error(server, lab, http, wav):
    body = http.events(http.delta("half"), end=b"")
    server.script(http.chunked(body, content_type=EVENTS))
    raw = translation(lab)
    assert raw.next_piece() == body
    for _ in range(2):
        with pytest.raises(StreamTruncatedError, match="DONE") as caught:
            raw.next_piece()
        assert caught.value.partial == "half"
    server.script([*http.chunked(wav[:1000], end=False), http.CLOSE])
    raw = speech(lab)
    assert raw.next_piece() == wav[:1000]
    with pytest.raises(StreamTruncatedError, match="1,000 bytes"):
        raw.next_piece()


def test_a_service_that_does_not_stream(server, lab, http):
    whole = {"choices": [{"message": {"content": "Hello"}}]}
    server.script(http.reply(body=whole))
    with translation(lab) as raw:
        assert raw.content_type == "application/json"
        body = b"".join(raw)
        assert raw.parse().collect().text == "Hello"
    assert b"Hello" in body


def test_replayed_streams_have_their_head_too(server, http, wav, tmp_path):
    catalogue = http.reply(body={"voices": [http.VOICE]})
    server.script(catalogue, http.chunked(wav[:1000], 0.02, wav[1000:]))
    with Client(server.base_url, store=tmp_path / "kept") as lab, speech(lab) as raw:
        live = (list(raw), raw.status, raw.content_type, raw.timing)
    with Client(store=tmp_path / "kept", mode="replay") as lab, speech(lab) as raw:
        assert (list(raw), raw.status, raw.content_type, raw.timing) == live


def test_awaiting(server, http, wav):
    server.script(http.chunked(wav[:1000], wav[1000:]))

    async def main():
        async with AsyncClient(server.base_url) as lab, speech(lab) as raw:
            assert raw.status == 200
            assert "AsyncRawStream" in repr(raw)
            first = await anext(raw)
            clip = await raw.parse().collect()
            return first, clip.encoded

    assert asyncio.run(main()) == (wav[:1000], wav)
