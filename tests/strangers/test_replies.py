"""Replies and sessions without end on both wires, and words that steer: each ends in an error, in time."""

import asyncio
import gzip
import itertools
import json
import socket
import threading
import time
import zlib
from contextlib import closing, contextmanager, suppress
from functools import cache

import numpy as np
import orjson
import pytest
from websockets.asyncio.server import serve

import speechlab as sl
from speechlab.client import AsyncClient, Client
from support.realtime_server import CREATED
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


def test_a_header_of_5000_digits_costs_nothing(lab, service):
    digits = "9" * 5_000
    for header in ("X_Speechlab_Concurrency", "Retry_After", "Server_Timing", "Date", "X_Speechlab_Service"):
        for value in (digits, f"tts={digits}", f"engine;dur={digits}"):
            service.answer(WAV, [SILENCE.encode("wav")], **{header: value})
            assert lab.synthesize("Hello.", voice=VOICE_ID, format="wav").duration_s == 0.1
    service.answer(f"audio/L16; rate={digits}", [SILENCE.encode("pcm")])
    assert lab.synthesize("Hello.", voice=VOICE_ID, format="pcm").duration_s == 0.1
    assert refusal(lab, service, 429, {}, Retry_After=digits).retry_after_s == 86_400.0


def refusal(lab, service, status, body, **headers):
    """The error that a refusal with this body becomes."""
    service.answer(JSON, [orjson.dumps(body)], status=status, **headers)
    with pytest.raises(sl.APIError) as caught:
        lab.voices()
    return caught.value


def test_no_word_of_a_service_steers_the_terminal(lab, service):
    nasty = "\x1b]0;owned\x07 \x9b2J \x00 \r \x7f \u202e"
    for where in ("error", "message", "detail", "name"):
        assert str(refusal(lab, service, 400, {"error": "no", where: f"a {nasty} b"})).isprintable()
    for kind in (sl.ContractError, sl.EngineError, sl.RealtimeError, sl.SpeechLabError):
        said = str(kind(f"it said {nasty}, tabs\tand\nlines stay"))
        assert said.replace("\t", "").replace("\n", "").isprintable()


def test_a_part_of_the_key_is_not_shown(service, wire):
    key = "sl:q7Jm2xVd90Rb4TzKc81Wn5Lf"
    folded = key.removeprefix("sl:").lower()
    parts = (key[:14] + "…", "…" + key[-10:], f"{key[:12]}***{key[-9:]}")
    with Client(service.base_url, api_key=key, transport=wire, max_retries=0) as mine:
        for echo in (key, key[3:], key.upper(), f"Bearer%20{key.replace(':', '%3A')}", *parts):
            told = {"error": f"unknown key {echo}", "context": [echo]}
            ascii_echo = echo.encode("ascii", "replace").decode()
            error = refusal(mine, service, 401, told, X_Echo=ascii_echo)
            shown = f"{error} {error.body} {error.context} {error.headers}".lower()
            assert not any(folded[at : at + 8] in shown for at in range(len(folded) - 7)), echo


START = {"type": "tts.audio.start", "request_id": "r", "content_type": "audio/pcm", "sample_rate": 24_000}


@contextmanager
def talking(say):
    """A realtime service that says what it wants to each message."""
    port, began, stops = [], threading.Event(), []

    async def handle(socket):
        async for message in socket:
            await say(socket, json.loads(message))

    async def run():
        async with serve(handle, "127.0.0.1", 0, compression=None, max_size=None) as server:
            port.append(server.sockets[0].getsockname()[1])
            stop, loop = asyncio.Event(), asyncio.get_running_loop()
            stops.append(lambda: loop.call_soon_threadsafe(stop.set))
            began.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    assert began.wait(10)
    with Client(f"http://127.0.0.1:{port[0]}", api_key=KEY, max_retries=0, timeout=20) as lab:
        yield lab
    stops[0]()
    thread.join(10)


def test_messages_before_the_session_end():
    async def say(socket, message):
        while True:
            await socket.send(json.dumps({"type": "later", "words": "a" * 60_000}))

    with talking(say) as lab, pytest.raises(sl.ContractError, match=r"before session\.created"):
        lab.realtime(voice=VOICE_ID, format="pcm").say("Hello.")


@pytest.mark.parametrize(
    "piece", [bytes(1 << 20), b"", json.dumps({"type": "later"})], ids=["sound", "empty", "notes"]
)
def test_messages_of_a_text_end(piece, monkeypatch):
    monkeypatch.setattr("speechlab.client._operations.speech._LEAST_LIMIT", 2 << 20)

    async def say(socket, message):
        if message["type"] == "session.update":
            await socket.send(json.dumps(CREATED))
            return
        await socket.send(json.dumps({**START, "id": message["id"]}))
        while True:
            await socket.send(piece)

    with talking(say) as lab, pytest.raises(sl.ContractError, match="bytes for a text of 6 characters"):
        lab.realtime(voice=VOICE_ID, format="pcm").say("Hello.")


def test_a_message_is_of_limited_size():
    async def say(socket, message):
        await socket.send(json.dumps(CREATED) if message["type"] == "session.update" else bytes(33 << 20))

    with talking(say) as lab, pytest.raises(sl.SpeechLabError, match="exceeds limit"):
        lab.realtime(voice=VOICE_ID, format="pcm").say("Hello.")
