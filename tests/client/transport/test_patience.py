"""Patience: a given time is the whole time, a queue in the service is waited for and learned, and connecting ends."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from contextlib import ExitStack, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from speechlab.client import AsyncClient, Client
from speechlab.errors import APITimeoutError

BODY = b'{"choices": [{"message": {"content": "Hello"}}]}'


class Queue:
    """A service that works on a few calls at once, and lets the others wait."""

    def __init__(self, at_once: int, work_s: float, headers: dict[str, str]) -> None:
        self.room, self.work_s, self.headers = threading.Semaphore(at_once), work_s, headers
        self.lock, self.here, self.crowds = threading.Lock(), 0, []
        queue = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                with queue.lock:
                    queue.here += 1
                    queue.crowds.append(queue.here)
                with queue.room:
                    time.sleep(queue.work_s)
                with queue.lock:
                    queue.here -= 1
                self.send_response(200)
                for name, value in {"Content-Type": "application/json", **queue.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(BODY)))
                with suppress(OSError):  # the client has given up
                    self.end_headers()
                    self.wfile.write(BODY)

            def log_message(self, *args: object) -> None:
                """Print nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.base_url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def queue():
    made = []

    def make(at_once: int, work_s: float, **headers: str) -> Queue:
        made.append(Queue(at_once, work_s, headers))
        return made[-1]

    yield make
    for one in made:
        one.server.shutdown()
        one.server.server_close()


async def translated(lab, count):
    async with lab:
        calls = [lab.translate(str(n), source_lang="ja", target_lang="en") for n in range(count)]
        return [one.text for one in await asyncio.gather(*calls)]


@pytest.mark.slow
def test_calls_wait_in_a_queue_as_long_as_others_are_answered(queue, wire):
    service = queue(1, 0.3)
    lab = AsyncClient(service.base_url, transport=wire, read_timeout_s=0.8)
    assert asyncio.run(translated(lab, 10)) == ["Hello"] * 10
    assert max(service.crowds) >= 4  # the last of the first four waited for 1.2 s


@pytest.mark.slow
def test_a_queue_is_learned_from_the_times_of_calls(queue):
    service = queue(1, 0.3)
    lab = AsyncClient(service.base_url, transport="aiohttp", read_timeout_s=1.0)
    asyncio.run(translated(lab, 18))
    assert max(service.crowds[-5:]) <= 2


@pytest.mark.slow
def test_a_service_that_says_how_much_it_works_on_is_followed(queue):
    service = queue(1, 0.05, **{"X-Speechlab-Concurrency": "asr=7, translate=1, other=9, tts=x"})

    async def work():
        lab = AsyncClient(service.base_url)
        await lab.translate("first", source_lang="ja", target_lang="en")
        return await translated(lab, 12)

    assert asyncio.run(work()) == ["Hello"] * 12
    assert max(service.crowds) <= 2


def test_a_service_that_answers_nobody_is_given_up(queue, wire):
    lab = Client(queue(1, 5.0).base_url, transport=wire, read_timeout_s=0.3)
    with lab, pytest.raises(APITimeoutError, match=r"nothing came within 0\.3 s") as caught:
        lab.translate("a", source_lang="ja", target_lang="en")
    assert "timeout=" in caught.value.advice


@pytest.mark.slow
def test_signs_of_life_of_a_service_are_no_silence(server, http, wire):
    waits = [piece for _ in range(5) for piece in (b"HTTP/1.1 100 Continue\r\n\r\n", 0.2)]
    server.script([*waits, http.reply(body={"a": 1})])
    with Client(server.base_url, api_key=http.KEY, transport=wire, read_timeout_s=0.6) as lab:
        assert lab.request("POST", "/x", json={}).json() == {"a": 1}


@pytest.fixture
def silent():
    """An address at which nobody answers: the queue of a listener that accepts nobody is full."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.slow
def test_how_long_connecting_may_take_is_an_option(silent, wire):
    with Client(silent, max_retries=0, connect_timeout_s=0.2, transport=wire) as lab:
        with pytest.raises(APITimeoutError, match=r"within 0\.2 s.*connect_timeout_s=") as caught:
            lab.voices()
        assert not caught.value.possibly_metered
        with pytest.raises(APITimeoutError, match=r"within 0\.3 s"):
            lab.with_options(connect_timeout_s=0.3).voices()
        with pytest.raises(
            APITimeoutError, match=r"time of 0\.1 s was up while it waited for a connection.*\(timeout="
        ):
            lab.with_options(timeout=0.1).voices()
