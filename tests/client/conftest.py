"""A server that misbehaves on purpose, and a client of it whose time passes only by sleeping."""

import asyncio
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from websockets.asyncio.server import serve

from speechlab.audio import AudioClip
from speechlab.client import Client
from support.clock import FakeClock, Half
from support.http_server import CLOSE, RESET, FaultServer, chunked, delta, events, reply
from support.realtime_server import Script, spoken
from support.samples import KEY, VOICE, VOICE_ID


@pytest.fixture(scope="session")
def _server_loop():
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@contextmanager
def run_on(loop, script, start):
    """Run a server of a script on a loop; it has a port then."""

    async def stop():
        running.close()
        if isinstance(running, asyncio.Server):
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            await asyncio.sleep(0)
        else:
            await running.wait_closed()

    running = asyncio.run_coroutine_threadsafe(start(), loop).result(10)
    script.port = running.sockets[0].getsockname()[1]
    yield script
    asyncio.run_coroutine_threadsafe(stop(), loop).result(10)


@pytest.fixture
def server(_server_loop):
    fault = FaultServer()

    async def start():
        return await asyncio.start_server(fault.handle, "127.0.0.1", 0)

    with run_on(_server_loop, fault, start):
        yield fault


@pytest.fixture
def realtime(_server_loop):
    """A realtime service that says what a test scripts; it speaks each text at first."""
    script = Script()
    script.speaks = [spoken]

    async def start():
        return await serve(script.handle, "127.0.0.1", 0, process_request=script.handshake)

    with run_on(_server_loop, script, start):
        yield script


@pytest.fixture(scope="session")
def http():
    """The building blocks of scripts."""
    blocks = {
        "reply": reply,
        "chunked": chunked,
        "events": events,
        "delta": delta,
        "RESET": RESET,
        "CLOSE": CLOSE,
    }
    return SimpleNamespace(**blocks, VOICE=VOICE, VOICE_ID=VOICE_ID, KEY=KEY, Half=Half)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture(autouse=True)
def _no_configuration(monkeypatch, tmp_path):
    for name in ("SPEECHLAB_BASE_URL", "SPEECHLAB_WS_BASE_URL", "SPEECHLAB_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPEECHLAB_STATE_DIR", str(tmp_path / "state"))


@pytest.fixture
def lab(server, clock):
    with Client(server.base_url, api_key=KEY, clock=clock, rng=Half()) as client:
        yield client


@pytest.fixture(scope="session")
def clip():
    return AudioClip((16_000 * np.sin(np.arange(12_000) / 20)).astype(np.int16), 24_000)


@pytest.fixture(scope="session")
def wav(clip):
    return clip.encode("wav")


@pytest.fixture
def answering(server, http, wav):
    """A service that answers whatever is asked in whole replies, and names itself ``service-1``."""

    def answer(request):
        if request.path.endswith("/voices"):
            return http.reply(body={"voices": [http.VOICE]}, X_Speechlab_Service="service-1")
        if "asr" in request.path:
            return http.reply(body={"text": "あ", "language": "ja"})
        if "translate" in request.path:
            return http.reply(body={"id": "t", "model": "m", "choices": [{"message": {"content": "Hello"}}]})
        return http.reply(body=wav, content_type="audio/wav")

    server.script(answer)
    return server
