"""Patience: a given time is the whole time, a queue in the service is waited for and learned, and connecting ends."""

import asyncio
import socket
import time
from contextlib import ExitStack

import pytest

from speechlab.client import AsyncClient, Client
from speechlab.errors import APITimeoutError
from support.samples import TRANSLATED


@pytest.fixture
def queue(server, http):
    """A function that lets the server work on one call at a time, and gives the length of the queue at each call."""

    def begin(work_s, **headers):
        ends, crowds = [], []

        def answer(request):
            now = time.monotonic()
            ends[:] = [end for end in ends if end > now]
            ends.append(max(ends, default=now) + work_s)
            crowds.append(len(ends))
            return [ends[-1] - now, http.reply(body=TRANSLATED, **headers)]

        server.script(answer)
        return crowds

    return begin


async def translated(lab, count):
    async with lab:
        calls = [lab.translate(str(n), source_lang="ja", target_lang="en") for n in range(count)]
        return [one.text for one in await asyncio.gather(*calls)]


@pytest.mark.slow
def test_calls_wait_in_a_queue_as_long_as_others_are_answered(server, queue, wire):
    crowds = queue(0.3)
    lab = AsyncClient(server.base_url, transport=wire, read_timeout_s=0.8)
    assert asyncio.run(translated(lab, 10)) == ["Hello"] * 10
    assert max(crowds) >= 4  # the last of the first four waited for 1.2 s


@pytest.mark.slow
def test_a_queue_is_learned_from_the_times_of_calls(server, queue):
    crowds = queue(0.3)
    lab = AsyncClient(server.base_url, transport="aiohttp", read_timeout_s=1.0)
    asyncio.run(translated(lab, 18))
    assert max(crowds[-5:]) <= 2


@pytest.mark.slow
def test_a_service_that_says_how_much_it_works_on_is_followed(server, queue):
    crowds = queue(0.05, X_Speechlab_Concurrency="asr=7, translate=1, other=9, tts=x")

    async def work():
        lab = AsyncClient(server.base_url)
        await lab.translate("first", source_lang="ja", target_lang="en")
        return await translated(lab, 12)

    assert asyncio.run(work()) == ["Hello"] * 12
    assert max(crowds) <= 2


def test_a_service_that_answers_nobody_is_given_up(server, queue, wire):
    queue(5.0)
    lab = Client(server.base_url, transport=wire, read_timeout_s=0.3)
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
        with pytest.raises(
            APITimeoutError, match=r"time of 0\.1 s was up while it waited for a connection.*\(timeout="
        ):
            lab.with_options(timeout=0.1).voices()
