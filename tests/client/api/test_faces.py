"""Two faces of one client: the same names, and the synchronous one works wherever Python runs."""

import asyncio
from pathlib import Path

import pytest

from speechlab.client import AsyncClient, Client
from speechlab.errors import ConfigurationError
from support.clock import eventually
from support.samples import TRANSLATED

MEANT = {"source_lang": "ja", "target_lang": "en"}


def test_the_synchronous_classes_are_those_that_the_tool_writes(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "tools")
    from write_sync_client import build_files

    for path, content in build_files().items():
        assert path.read_text("utf-8") == content, "run: python tools/write_sync_client.py"


def test_an_async_client_says_that_it_belongs_to_another_loop(server, http, wav):
    server.script(http.reply(body=TRANSLATED))
    lab = AsyncClient(server.base_url, api_key=http.KEY)

    async def call():
        return (await lab.translate("a", **MEANT)).text

    async def cell_and_callback():
        assert await call() == "Hello"
        with pytest.raises(ConfigurationError, match="another event loop"):
            await asyncio.to_thread(asyncio.run, call())
        assert await call() == "Hello"
        server.script(http.chunked(wav))
        async with lab.stream_speech("a", voice=http.VOICE_ID) as stream:
            assert sum([clip.frames async for clip in stream.clips()]) == 12_000
        await lab.close()
        with pytest.raises(ConfigurationError, match="closed"):
            await call()

    asyncio.run(cell_and_callback())


def test_closing_ends_calls_that_wait(server, http):
    server.script(http.reply(429, Retry_After="50"))

    async def main():
        lab = AsyncClient(server.base_url)
        call = asyncio.ensure_future(lab.translate("a", **MEANT))
        await asyncio.to_thread(eventually, lambda: server.requests)
        waiting = asyncio.ensure_future(lab.translate("b", **MEANT))
        await asyncio.sleep(0.05)
        await lab.close()
        async with asyncio.timeout(20):  # of fifty
            return await asyncio.gather(call, waiting, return_exceptions=True)

    for error in asyncio.run(main()):
        assert isinstance(error, ConfigurationError)
        assert "closed" in str(error)


def test_a_hook_that_calls_its_own_client_does_not_hang(server, http, caplog):
    server.script(http.reply(body=TRANSLATED))
    with Client(server.base_url, on_event=lambda event: lab.voices()) as lab:
        lab.translate("a", **MEANT)
    assert "inside a hook" in caplog.text
