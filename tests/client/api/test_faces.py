"""Two faces of one client: the same names, and the synchronous one works wherever Python runs."""

from __future__ import annotations

import asyncio
import inspect
import re
import subprocess
import sys
import threading
from pathlib import Path

import httpx2
import pytest

from speechlab.client import (
    AsyncClient,
    AsyncRealtimeSession,
    AsyncSpeechEvents,
    AsyncSpeechStream,
    AsyncTranslationStream,
    Client,
    RealtimeSession,
    SpeechEvents,
    SpeechStream,
    Synthesize,
    Translate,
    TranslationStream,
    connect,
)
from speechlab.errors import ConfigurationError, InvalidRequestError, SpeechLabError
from support.clock import ends_within, eventually
from support.samples import TRANSLATED

ASYNC_ONLY = {"aclose", "connect"}  # a client that blocks is made by speechlab.connect
SYNC_ONLY = {"close"}
MEANT = {"source_lang": "ja", "target_lang": "en"}


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def plain(annotation):
    text = str(annotation)
    text = re.sub(r"\b(Awaitable|Coroutine)\[(.*)\]", r"\2", text)
    return text.replace("Async", "").replace("AsyncIterator", "Iterator")


def test_both_faces_have_one_interface():
    for sync, asynchronous in (
        (Client, AsyncClient),
        (SpeechStream, AsyncSpeechStream),
        (TranslationStream, AsyncTranslationStream),
        (RealtimeSession, AsyncRealtimeSession),
        (SpeechEvents, AsyncSpeechEvents),
    ):
        names = public(sync) - SYNC_ONLY
        assert names == public(asynchronous) - ASYNC_ONLY - SYNC_ONLY
        for name in sorted(names):
            one, other = getattr(sync, name), getattr(asynchronous, name)
            assert inspect.getdoc(one) == inspect.getdoc(other), name
            assert inspect.getdoc(one), name
            if not callable(one):
                continue
            mine, theirs = inspect.signature(one), inspect.signature(other)
            assert str(mine.parameters) == str(theirs.parameters), name
            assert plain(mine.return_annotation) == plain(theirs.return_annotation), name
    ways = [connect, AsyncClient.connect, Client, AsyncClient]
    assert len({str(inspect.signature(way).parameters) for way in ways}) == 1
    one, other = inspect.getdoc(Client), inspect.getdoc(AsyncClient)
    assert one[one.index("Args:") :] == other[other.index("Args:") :]
    for method, operation in ((Client.synthesize, Synthesize), (AsyncClient.translate, Translate)):
        shown = [str(one) for one in inspect.signature(method).parameters.values()][1:]
        assert shown == [str(one) for one in inspect.signature(operation).parameters.values()]
        order = re.findall("^    (\\w+): ", inspect.getdoc(method), re.MULTILINE)
        assert order[: len(shown)] == [*inspect.signature(method).parameters][1:]


def test_the_synchronous_classes_are_those_that_the_tool_writes(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "tools")
    from write_sync_client import build_files

    for path, content in build_files().items():
        assert path.read_text("utf-8") == content, "run: python tools/write_sync_client.py"


def test_whatever_closes_has_both_names_with_await(server, http):
    async def main():
        lab = AsyncClient(server.base_url)
        stream = lab.stream_speech("a", voice=http.VOICE_ID)
        for one in (stream, lab.realtime(voice=http.VOICE_ID), lab):
            await one.close()
            await one.aclose()
        with pytest.raises(ConfigurationError, match="closed"):
            await lab.voices()

    asyncio.run(main())
    lab = Client(server.base_url)
    child = lab.with_options(timeout=5)
    child.close()
    server.script(http.reply(body=TRANSLATED))
    lab.translate("a", **MEANT)
    lab.close()
    lab.close()
    for client in (lab, child):
        with pytest.raises(ConfigurationError, match="closed"):
            client.voices()


def complaint(call):
    with pytest.raises(TypeError) as caught:
        call()
    return str(caught.value)


def test_a_wrong_argument_is_told_of_the_method():
    with Client("http://127.0.0.1:9") as lab:
        stream = lab.stream_speech("a", voice="x")
        too_many = "takes 1 positional argument but 2 were given"
        no_text = "missing 1 required positional argument: 'text'"
        for call, told in (
            (lambda: lab.synthesize(voice="x"), f"Client.synthesize() {no_text}"),
            (lambda: lab.synthesize("a", voice="x", self=1), "Client.synthesize() got multiple values"),
            (lambda: lab.stream_speech("a", voice="x", speak=1), "Client.stream_speech() got an unexpected"),
            (lambda: lab.voices(1), f"Client.voices() {too_many}"),
            (lab.perform, "Client.perform() missing 1"),
            (lambda: lab.close(1), f"Client.close() {too_many}"),
            (lambda: stream.collect(1), f"SpeechStream.collect() {too_many}"),
            (lambda: stream.__next__(1), f"SpeechStream.__next__() {too_many}"),
            (lambda: stream.__enter__(1), f"SpeechStream.__enter__() {too_many}"),
            (stream.__exit__, "SpeechStream.__exit__() missing 3"),
        ):
            assert complaint(call).startswith(told)

    async def main(call):
        await call(lab)

    lab = AsyncClient("http://127.0.0.1:9")
    for call, told in (
        (lambda lab: lab.synthesize(), f"AsyncClient.synthesize() {no_text}"),
        (lambda lab: lab.stream_translation(), f"AsyncClient.stream_translation() {no_text}"),
        (lambda lab: lab.close(1), "AsyncClient.close() takes 1"),
        (lambda lab: AsyncClient.connect(1, 2), "AsyncClient.connect() takes from 1 to 2"),
    ):
        assert complaint(lambda call=call: asyncio.run(main(call))).startswith(told)


def test_errors_of_the_users_own_stay_as_they_are():
    class Broken(Translate):
        def call(self, timeout):
            raise given[0]

    class Mine(Client):
        say = Client.synthesize

    given = [TypeError("perform() takes it amiss")]
    with Mine("http://127.0.0.1:9") as lab:
        broken = Broken("a", **MEANT)
        assert complaint(lambda: lab.perform(broken)) == "perform() takes it amiss"
        given[0] = InvalidRequestError("of mine")
        assert frames(lambda: lab.perform(broken)) == ["call", "call"]
        # a class of the user does not rename what it takes over
        assert Mine.say.__qualname__ == Client.synthesize.__qualname__ == "Client.synthesize"
        assert complaint(lab.synthesize).startswith("Client.synthesize() missing")


def frames(call):
    with pytest.raises(SpeechLabError) as caught:
        call()
    return [entry.name for entry in caught.traceback if entry.name != "<lambda>"][1:]


def test_a_traceback_is_one_frame_of_ours_and_nothing_beneath():
    with Client("http://127.0.0.1:9", max_retries=0) as lab:
        for call in (
            lambda: lab.translate("", **MEANT),
            lambda: lab.with_raw_response.translate("", **MEANT),
            lambda: lab.request("GET", 3),
            lab.voices,
            lambda: lab.stream_speech("", voice=3).__enter__(),
            lambda: next(lab.stream_speech("", voice=3)),
            lambda: lab.stream_translation("", **MEANT),
        ):
            assert frames(call) == ["call"]

    async def main(call):
        await call()

    lab = AsyncClient("http://127.0.0.1:9", max_retries=0)
    for call in (
        lambda: lab.translate("", **MEANT),
        lab.voices,
        lambda: lab.stream_speech("", voice=3).open(),
        lambda: lab.realtime(voice=3).open(),
    ):
        assert frames(lambda call=call: asyncio.run(main(call)))[-2:] == ["main", "call"]


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
            assert b"".join([piece async for piece in stream]) == wav
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


def test_options_change_the_copy_alone(server, lab, http):
    other = lab.with_options(max_retries=0, timeout=3)
    assert (other._async._settings.max_retries, lab._async._settings.max_retries) == (0, None)
    for name in ("transport", "api_key", "base_url", "ws_base_url"):
        with pytest.raises(ConfigurationError, match=f"{name} belongs to a client .* make a new client"):
            lab.with_options(**{name: None})
    with pytest.raises(ConfigurationError, match=r"no option 'retries'.*timeout, connect_timeout_s") as told:
        lab.with_options(retries=3)
    assert "transport" not in str(told.value)
    assert "clock" not in str(told.value)


@pytest.mark.parametrize("end", [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError])
def test_a_hook_that_ends_the_program_fails_no_call(answering, caplog, end):
    def leave(_):
        raise end("a step of a call")

    with Client(answering.base_url, on_event=leave) as lab, Client(answering.base_url) as other:
        assert lab.translate("a", **MEANT).text == other.translate("a", **MEANT).text == "Hello"
    assert caplog.text.count("the on_event hook failed; the call continues") == 3


def test_an_interrupt_of_a_loop_of_ones_own_comes_through(answering):
    def interrupt(_):
        raise KeyboardInterrupt

    async def main():
        async with AsyncClient(answering.base_url, on_event=interrupt) as lab:
            await lab.translate("a", **MEANT)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())


def test_a_transport_that_exits_ends_its_own_call_alone(answering):
    def leave(_):
        sys.exit("no network")

    own = Client(answering.base_url, transport=httpx2.MockTransport(leave))
    with own, Client(answering.base_url) as other:
        with pytest.raises(SystemExit, match="no network"):
            own.translate("a", **MEANT)
        assert other.translate("a", **MEANT).text == "Hello"


def test_a_hook_that_calls_its_own_client_does_not_hang(server, http, caplog):
    server.script(http.reply(body=TRANSLATED))
    with Client(server.base_url, on_event=lambda event: lab.voices()) as lab:
        lab.translate("a", **MEANT)
    assert "inside a hook" in caplog.text


def test_an_interrupt_as_a_call_begins_cancels_it(server, lab, http, monkeypatch):
    """The thread of the loop may send the request before the caller's goes on; here it always does."""
    server.script([40.0], http.reply(body=TRANSLATED))
    hand_over = asyncio.BaseEventLoop.call_soon_threadsafe

    def hand_over_and_interrupt(*given, **named):
        hand_over(*given, **named)
        if threading.current_thread() is threading.main_thread() and not server.requests:
            assert eventually(lambda: server.requests)
            raise KeyboardInterrupt

    monkeypatch.setattr(asyncio.BaseEventLoop, "call_soon_threadsafe", hand_over_and_interrupt)
    with ends_within(20), pytest.raises(KeyboardInterrupt):  # of forty
        lab.translate("a", **MEANT)
    assert server.closed_early.wait(5)
    assert lab.translate("a", **MEANT).text == "Hello"


@pytest.mark.slow
def test_importing_the_client_loads_nothing_heavy():
    code = "import sys, speechlab.client; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], timeout=60, capture_output=True, text=True, check=True
    )
    heavy = "numpy pandas matplotlib ipywidgets soundfile av httpx2 websockets psutil anyio opentelemetry"
    assert not set(done.stdout.split()) & set(heavy.split())
