"""Streams after an interrupt, in two hands at once, and when they are let go."""

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from speechlab.client import Client, TranslationStream
from speechlab.errors import ConfigurationError, StreamTruncatedError
from support.samples import TRANSLATED

EVENTS = "text/event-stream; charset=utf-8"
needs_signals = pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals to threads are POSIX")


@contextmanager
def interrupted():
    """Expect an interrupt while the block waits; a wait without a limit is restarted, as after importing polars."""
    main = threading.main_thread().ident
    timer = threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGINT))
    signal.siginterrupt(signal.SIGINT, False)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        timer.join()
        signal.siginterrupt(signal.SIGINT, True)


def speech(lab, http):
    return lab.stream_speech("a", voice=http.VOICE_ID)


def translation(lab, _http=None):
    return lab.stream_translation("a", source_lang="ja", target_lang="en")


def read_clips(stream):
    return list(stream.clips())


READERS = [
    (speech, next),
    (speech, read_clips),
    (translation, list),
    (translation, TranslationStream.collect),
]


@needs_signals
@pytest.mark.parametrize(("opened", "read"), READERS)
def test_a_stream_after_an_interrupt_says_that_it_was_cut_short(server, lab, http, wav, opened, read):
    spoken = opened is speech
    first = wav[:1000] if spoken else http.events(http.delta("one"), end=b"")
    server.script(http.chunked(first, 30.0, content_type="audio/wav" if spoken else EVENTS))
    with opened(lab, http) as stream:
        next(stream)
        with interrupted():
            read(stream)
        said = r"1,000 bytes.*interrupted" if spoken else "interrupted"
        with pytest.raises(StreamTruncatedError, match=said) as caught:
            read(stream)
        assert caught.value.partial == (first if spoken else "one")
        if spoken:
            with pytest.raises(ConfigurationError, match="closed"):
                read(stream)
    assert server.closed_early.wait(20)


@pytest.mark.parametrize("kind", ["speech", "translation"])
def test_threads_that_begin_a_stream_together_send_it_once(server, lab, http, wav, kind):
    body = http.chunked(wav) if kind == "speech" else http.reply(body=TRANSLATED)
    server.script([0.3, *(body if isinstance(body, list) else [body])])
    stream = speech(lab, http) if kind == "speech" else translation(lab)
    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(stream.open) for _ in range(4)]:
            future.result(20)
    stream.collect()
    assert len(server.requests) == 1


def test_of_two_that_read_one_stream_the_second_is_told(server, lab, http, wav):
    server.script(http.chunked(wav[:1000], 1.0, wav[1000:]))
    with speech(lab, http) as stream, ThreadPoolExecutor(2) as pool:
        next(stream)
        errors = [each.exception(20) for each in [pool.submit(next, stream) for _ in range(2)]]
        (told,) = [error for error in errors if error is not None]
        assert isinstance(told, ConfigurationError)
        assert stream.collect().encoded == wav


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["speech", "translation"])
def test_the_time_of_a_call_bounds_its_stream(server, http, wav, kind):
    words = [step for n in range(100) for step in (http.events(http.delta(f"{n} "), end=b""), 0.1)]
    sound = [wav[:44], *(step for _ in range(100) for step in (b"ab", 0.1))]
    server.script(
        http.chunked(*words, content_type=EVENTS) if kind == "translation" else http.chunked(*sound)
    )
    with Client(server.base_url, timeout=1) as lab:
        stream = translation(lab) if kind == "translation" else speech(lab, http)
        with pytest.raises(StreamTruncatedError, match="the call's time of 1 s is up") as caught:
            stream.collect()
        assert (caught.value.possibly_metered, lab.usage.possibly_metered, lab.usage.calls) == (True, 1, 0)
    assert len(caught.value.partial) > 8
    assert server.closed_early.wait(20)


@pytest.mark.slow
def test_a_streams_time_counts_waiting_for_the_service_alone(server, http, wav):
    server.script(http.chunked(wav[:1000], wav[1000:2000], wav[2000:]))
    with Client(server.base_url, timeout=1) as lab, speech(lab, http) as stream:
        for _ in stream:
            time.sleep(0.6)
        assert stream.collect().encoded == wav
