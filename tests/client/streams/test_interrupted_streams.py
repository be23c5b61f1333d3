"""Streams after an interrupt, in two hands at once, and when they are let go."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from speechlab.client import AsyncClient, Client
from speechlab.errors import ConfigurationError, StreamTruncatedError

EVENTS = "text/event-stream; charset=utf-8"
needs_signals = pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals to threads are POSIX")


@contextmanager
def interrupted():
    """Expect an interrupt, which comes while the block waits."""
    main = threading.main_thread().ident
    timer = threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        yield
    timer.join()


def speech(lab, http):
    return lab.stream_speech("a", voice=http.VOICE_ID)


def raw_speech(lab, http):
    return lab.with_raw_response.stream_speech("a", voice=http.VOICE_ID)


def translation(lab, _http=None):
    return lab.stream_translation("a", source_lang="ja", target_lang="en")


READERS = [
    pytest.param(speech, next, id="next"),
    pytest.param(speech, lambda stream: stream.next_piece(), id="next_piece"),
    pytest.param(speech, list, id="for"),
    pytest.param(speech, lambda stream: stream.collect(), id="collect"),
    pytest.param(speech, lambda stream: list(stream.clips()), id="clips"),
    pytest.param(raw_speech, next, id="raw"),
    pytest.param(raw_speech, lambda raw: raw.parse().collect(), id="raw-parse"),
]


@needs_signals
@pytest.mark.parametrize(("opened", "read"), READERS)
def test_speech_after_an_interrupt_says_that_it_was_cut_short(server, lab, http, wav, opened, read):
    server.script(http.chunked(wav[:1000], 30.0))
    with opened(lab, http) as stream:
        assert next(stream) == wav[:1000]
        with interrupted():
            read(stream)
        with pytest.raises(StreamTruncatedError, match=r"1,000 bytes.*interrupted") as caught:
            read(stream)
        assert caught.value.partial == wav[:1000]
        if opened is speech:
            with pytest.raises(ConfigurationError, match="closed"):
                read(stream)
    assert server.closed_early.wait(5)


@needs_signals
@pytest.mark.parametrize("read", [next, lambda stream: stream.collect()], ids=["next", "collect"])
def test_a_translation_after_an_interrupt_says_that_it_was_cut_short(server, lab, http, read):
    first = http.events(http.delta("one"), end=b"")
    server.script(http.chunked(first, 30.0, content_type=EVENTS))
    with translation(lab) as stream:
        assert next(stream).text == "one"
        with interrupted():
            read(stream)
        with pytest.raises(StreamTruncatedError, match="interrupted") as caught:
            read(stream)
        assert caught.value.partial == "one"


@needs_signals
def test_an_interrupted_replay_says_that_it_was_cut_short(server, http, wav, tmp_path):
    server.script(http.reply(body={"voices": [http.VOICE]}), http.chunked(wav[:1000], 1.0, wav[1000:]))
    with Client(server.base_url, store=tmp_path / "kept") as lab, speech(lab, http) as stream:
        stream.collect()
    with (
        Client(store=tmp_path / "kept", mode="replay", pace="as recorded") as lab,
        speech(lab, http) as stream,
    ):
        next(stream)
        with interrupted():
            next(stream)
        with pytest.raises(StreamTruncatedError, match="interrupted"):
            next(stream)


def test_two_threads_cannot_read_one_stream(server, lab, http, wav):
    server.script(http.chunked(wav[:1000], 30.0))
    with speech(lab, http) as stream, ThreadPoolExecutor(2) as pool:
        next(stream)
        waiting = [pool.submit(next, stream) for _ in range(2)]
        errors = [future.exception(20) for future in waiting]
    assert [type(error) for error in errors] == [StreamTruncatedError] * 2
    assert any("another thread or task" in str(error) for error in errors)
    assert {error.partial for error in errors} == {wav[:1000]}
    assert server.closed_early.wait(5)


def test_two_tasks_cannot_read_one_stream(server, http, wav):
    first = http.events(http.delta("one"), end=b"")

    async def errors_of(stream):
        async with stream:
            await anext(stream)
            found = await asyncio.gather(anext(stream), anext(stream), return_exceptions=True)
            return [type(error) for error in found], {error.partial for error in found}

    async def main():
        async with AsyncClient(server.base_url) as lab:
            server.script(http.chunked(wav[:1000], 30.0))
            assert await errors_of(speech(lab, http)) == ([StreamTruncatedError] * 2, {wav[:1000]})
            server.script(http.chunked(first, 30.0, content_type=EVENTS))
            assert await errors_of(translation(lab)) == ([StreamTruncatedError] * 2, {"one"})

    asyncio.run(asyncio.wait_for(main(), 20))


LET_GO = [
    pytest.param(opened, read, id=f"{opened.__name__}-{name}")
    for opened, reads in {
        speech: {
            "for": list,
            "next": next,
            "collect": lambda s: s.collect(),
            "clips": lambda s: list(s.clips()),
        },
        raw_speech: {"for": list, "parse": lambda s: list(s.parse())},
        translation: {"for": list, "next": next, "collect": lambda s: s.collect()},
    }.items()
    for name, read in reads.items()
]


@pytest.mark.parametrize(("opened", "read"), LET_GO)
def test_a_stream_that_is_let_go_is_freed_at_once(server, lab, http, wav, opened, read):
    if opened is translation:
        server.script(http.chunked(http.events(http.delta("one")), content_type=EVENTS))
    else:
        server.script(http.chunked(wav[:1000], wav[1000:]))
    stream = opened(lab, http)
    behind = [weakref.ref(stream), weakref.ref(stream._async)]
    gc.disable()
    try:
        with stream:
            read(stream)
        del stream
        assert _gone(behind)
    finally:
        gc.enable()


def _gone(references):
    # The loop's thread may still hold the last call for a moment.
    for _ in range(100):
        if all(reference() is None for reference in references):
            return True
        threading.Event().wait(0.02)
    return False
