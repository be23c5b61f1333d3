"""Realtime sessions without end: of messages before the session, of audio, of empty and of large messages."""

import asyncio
import json
import threading
from contextlib import contextmanager

import pytest
from websockets.asyncio.server import serve

import speechlab as sl
from speechlab.client import Client
from speechlab.client._operations import speech
from support.realtime_server import CREATED
from support.samples import KEY, VOICE_ID

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
    monkeypatch.setattr(speech, "_LEAST_LIMIT", 2 << 20)

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

    with talking(say) as lab, pytest.raises(sl.SpeechLabError):
        lab.realtime(voice=VOICE_ID, format="pcm").say("Hello.")
