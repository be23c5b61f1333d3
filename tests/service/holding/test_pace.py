"""The pace of senders and readers: slow ones are let go, whatever they did at first."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab.service._held_bytes import Pace
from support.clock import eventually
from support.sockets import read_all


class Clock(asyncio.SelectorEventLoop):
    """An event loop whose time passes at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        alive = [handle.when() for handle in self._scheduled if not handle.cancelled()]
        if alive and not self._ready:
            self.now = max(self.now, min(alive))
        super()._run_once()


def ended_after(steps: list[tuple[float, int]], window_s: float, least: int) -> float | None:
    """After how many seconds of waiting a peer is let go that moves bytes after each pause."""

    async def run() -> float | None:
        pace, waited = Pace(window_s, least), 0.0
        for pause, count in steps:
            try:
                await pace.wait_within_pace(asyncio.sleep(pause))
            except TimeoutError:
                return asyncio.get_running_loop().time()
            waited += pause
            pace.count_bytes(count)
        return None

    with asyncio.Runner(loop_factory=Clock) as runner:
        return runner.run(run())


@given(
    pauses=st.lists(st.floats(0.01, 2.0), min_size=1, max_size=60),
    least=st.integers(100, 10_000),
)
def test_a_steady_peer_stays(pauses, least):
    steps = [(pause, round(pause * least * 1.5) + 1) for pause in pauses]
    assert ended_after(steps, 10.0, least) is None


@given(fast=st.integers(0, 10**9), pause=st.floats(0.05, 3.0), window_s=st.floats(4.0, 30.0))
def test_a_fast_start_is_no_credit(fast, pause, window_s):
    trickle = [(0.0, fast)] + [(pause, 1)] * round(3 * window_s / pause)
    ended = ended_after(trickle, window_s, 1000)
    assert ended is not None
    assert ended <= window_s * 1.01


@given(burst=st.integers(10_000, 10**6), window_s=st.floats(1.0, 30.0))
def test_a_window_without_a_byte_ends_it_and_less_does_not(burst, window_s):
    assert ended_after([(0.1, burst), (window_s * 0.95, burst), (window_s * 0.95, 1)], window_s, 100) is None
    assert ended_after([(0.1, 10**9), (window_s * 1.05, 1)], window_s, 100) is not None


def trickle(connection: socket.socket, stop: threading.Event) -> None:
    with contextlib.suppress(OSError):
        while not stop.wait(0.1):
            connection.sendall(b"A")


@pytest.mark.slow
def test_an_upload_that_trickles_after_a_fast_start_is_408(stage):
    stop = threading.Event()
    head = "POST /asr/srt/audio_llm HTTP/1.1\nHost: localhost\nAuthorization: Bearer {key}\nContent-Length: 9000000\n"
    with stage(body_timeout_s=1.0) as service, service.http.raw(head, b"A" * 8_000_000) as connection:
        sending = threading.Thread(target=trickle, args=(connection, stop))
        sending.start()
        came = connection.recv(1000)
        stop.set()
        sending.join()
    assert came.startswith(b"HTTP/1.1 408 ")


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_a_reader_that_trickles_is_let_go(stage, stream, caplog):
    caplog.set_level("INFO", logger="speechlab")
    with stage(send_timeout_s=1.0) as service, socket.socket() as connection:
        service.speaker.piece_s = 60.0
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(service.http.address)
        fields = json.dumps(
            {"voice_id": service.voice("plain"), "text": "x", "format": "pcm", "stream": stream}
        )
        head = f"POST /tts HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {service.http.key}\r\n"
        connection.sendall(f"{head}Content-Length: {len(fields)}\r\n\r\n{fields}".encode())
        count = 0

        def reads_on() -> bool:
            nonlocal count
            with contextlib.suppress(OSError):
                count += len(connection.recv(10))
            return any(record.getMessage() == "request" for record in caplog.records)

        assert eventually(reads_on, 20)
        assert count < 10_000
        with contextlib.suppress(OSError):
            assert len(read_all(connection)) < 5_000_000
    (logged,) = [record.fields for record in caplog.records if record.getMessage() == "request"]
    assert (logged["status"], logged["ended"]) == (499, "the reader was too slow")
