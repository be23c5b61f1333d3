"""Replies without end, of every kind, on both wires: each ends with an error, in time, and in little memory."""

import asyncio
import gzip
import itertools
import socket
import threading
import time
import zlib
from contextlib import closing, suppress
from functools import cache

import numpy as np
import orjson
import pytest

import speechlab as sl
from speechlab.client import AsyncClient, Client
from speechlab.client._transport.unpacking import Unpacker
from support.samples import KEY, VOICE_ID

HEAD = "HTTP/1.1 {} X\r\nConnection: close\r\nContent-Type: {}\r\n{}\r\n"
JSON, WAV, EVENTS = "application/json", "audio/wav", "text/event-stream"
BLOCK = bytes(1 << 16)
SILENCE = sl.AudioClip(np.zeros(2_400, np.float32), 24_000)
EVENT = b'data: {"id": "t", "choices": [{"index": 0, "delta": {"content": "a"}}]}\n\n'


class Endless:
    """A service that answers every request with a head, and pieces as long as somebody reads."""

    def __init__(self):
        self.head, self.pieces = b"", []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.base_url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def answer(self, kind, pieces, *, status=200, **headers):
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        self.head, self.pieces = HEAD.format(status, kind, lines).encode(), pieces

    def _serve(self):
        with suppress(OSError):
            while True:
                threading.Thread(target=self._reply, args=self._listener.accept()[:1], daemon=True).start()

    def _reply(self, connection):
        with suppress(OSError), connection:
            connection.recv(1 << 16)
            connection.sendall(self.head)
            for piece in self.pieces:
                connection.sendall(piece)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 16):
                pass  # an unread request would reset the connection

    def close(self):
        self._listener.close()


@pytest.fixture
def service():
    with closing(Endless()) as service:
        yield service


@pytest.fixture(params=["httpx2", "aiohttp"])
def wire(request):
    return request.param


@pytest.fixture
def lab(service, wire):
    with Client(service.base_url, api_key=KEY, transport=wire, max_retries=0, timeout=20) as lab:
        yield lab


def wav_without_end():
    return itertools.chain([SILENCE.encode("wav")], itertools.repeat(BLOCK))


def json_without_end(start):
    return itertools.chain([start], itertools.repeat(b'"' + b"a" * 60_000 + b'",'))


CALLS = {
    "catalogue": (lambda lab: lab.voices(), JSON, lambda: json_without_end(b'{"voices": [')),
    "transcript": (lambda lab: lab.transcribe(SILENCE), JSON, lambda: json_without_end(b'{"text": [')),
    "translation": (
        lambda lab: lab.translate("Hello.", source_lang="en", target_lang="ja"),
        JSON,
        lambda: json_without_end(b"["),
    ),
    "speech": (lambda lab: lab.synthesize("Hello.", voice=VOICE_ID, format="wav"), WAV, wav_without_end),
}


@pytest.mark.parametrize("kind", CALLS)
def test_a_reply_without_end_is_refused(kind, lab, service):
    call, media_type, pieces = CALLS[kind]
    service.answer(media_type, pieces())
    with pytest.raises(sl.ContractError, match="larger than"):
        call(lab)


@cache
def pack_zeros(coding):
    """More zeros than any reply may have, in 40 kB."""
    packer = zlib.compressobj(1, wbits=zlib.MAX_WBITS | 16 if coding == "gzip" else zlib.MAX_WBITS)
    zeros = bytes(1 << 20)
    return b"".join([*(packer.compress(zeros) for _ in range(34)), packer.flush()])


@pytest.mark.parametrize(("kind", "coding"), list(zip(CALLS, ["gzip", "deflate"] * 2, strict=True)))
def test_a_reply_that_unpacks_without_end_is_refused(kind, coding, lab, service):
    call, media_type, _ = CALLS[kind]
    service.answer(media_type, [pack_zeros(coding)], Content_Encoding=coding)
    with pytest.raises(sl.ContractError, match="larger than"):
        call(lab)


def test_a_reply_that_is_packed_twice_is_refused(lab, service):
    service.answer(JSON, [gzip.compress(gzip.compress(b'{"voices": []}'))], Content_Encoding="gzip, gzip")
    with pytest.raises(sl.SpeechLabError, match="compressed twice"):
        lab.voices()


def test_an_error_without_end_is_that_error(lab, service):
    for status, kind in ((500, JSON), (400, "text/html"), (301, "text/plain")):
        service.answer(kind, itertools.repeat(BLOCK), status=status)
        with pytest.raises(sl.APIError) as caught:
            lab.translate("Hello.", source_lang="en", target_lang="ja")
        assert caught.value.status == status


def test_a_packed_reply_is_read(lab, service):
    for text in ("a", "a" * 300):
        body = orjson.dumps({"text": text})
        for coding, packed in (
            ("gzip", gzip.compress(body)),
            ("gzip", gzip.compress(body[:5]) + gzip.compress(body[5:]) + bytes(8)),
            ("deflate", zlib.compress(body)),
            ("deflate", zlib.compress(body, wbits=-zlib.MAX_WBITS)),
            ("identity", body),
        ):
            service.answer(JSON, [packed[:9], packed[9:]], Content_Encoding=coding)
            assert lab.transcribe(SILENCE).text == text


def test_a_damaged_packed_reply_is_cut_short(lab, service):
    packed = gzip.compress(orjson.dumps({"text": "ten cats and a dog"}))
    for damaged in (packed[:-9], packed[:20] + b"\xff" * 20):
        service.answer(JSON, [damaged], Content_Encoding="gzip")
        with pytest.raises(sl.StreamTruncatedError, match="compression"):
            lab.transcribe(SILENCE)


def test_the_pieces_of_an_unpacked_body_are_small():
    unpacker = Unpacker("gzip")
    unpacker.feed(pack_zeros("gzip"))
    sizes = []
    while piece := unpacker.take():
        sizes.append(len(piece))
    unpacker.check_end()
    assert (sum(sizes), max(sizes)) == (34 << 20, 1 << 20)


@pytest.mark.parametrize("kind", ["speech", "translation"])
def test_a_stream_without_end_ends_by_its_size(kind, lab, service):
    if kind == "speech":
        service.answer(WAV, wav_without_end())
        stream = lab.stream_speech("Hello.", voice=VOICE_ID, format="wav")
    else:
        service.answer(EVENTS, itertools.repeat(b": " + BLOCK + b"\n\n"))
        stream = lab.stream_translation("Hello.", source_lang="en", target_lang="ja")
    with stream, pytest.raises(sl.StreamTruncatedError, match="larger than"):
        stream.collect()


def test_a_stream_ends_in_time_and_leaves_others_their_turn(service, wire):
    service.answer(EVENTS, itertools.repeat(EVENT * 500))

    async def collect():
        turns = 0

        async def take_turns():
            nonlocal turns
            while True:
                await asyncio.sleep(0.01)
                turns += 1

        async with AsyncClient(service.base_url, api_key=KEY, transport=wire, max_retries=0) as lab:
            other = asyncio.create_task(take_turns())
            async with lab.stream_translation(
                "a" * 5_000, source_lang="en", target_lang="ja", timeout=0.5
            ) as stream:
                with pytest.raises(sl.StreamTruncatedError, match=r"0\.5 s is up"):
                    await stream.collect()
            other.cancel()
        return turns

    began = time.monotonic()
    turns = asyncio.run(collect())
    assert (time.monotonic() - began < 5.0, turns >= 3) == (True, True)


def test_a_call_ends_in_time_however_fast_its_reply_comes(service, wire):
    service.answer(JSON, itertools.repeat(b"          "))
    with Client(service.base_url, api_key=KEY, transport=wire, max_retries=0) as lab:
        began = time.monotonic()
        with pytest.raises((sl.APITimeoutError, sl.ContractError)):
            lab.translate("Hello.", source_lang="en", target_lang="ja", timeout=0.5)
        assert time.monotonic() - began < 5.0


def test_a_header_of_5000_digits_costs_nothing(lab, service):
    digits = "9" * 5_000
    for header in ("X_Speechlab_Concurrency", "Retry_After", "Server_Timing", "Date", "X_Speechlab_Service"):
        for value in (digits, f"tts={digits}", f"engine;dur={digits}"):
            service.answer(WAV, [SILENCE.encode("wav")], **{header: value})
            assert lab.synthesize("Hello.", voice=VOICE_ID, format="wav").duration_s == 0.1
