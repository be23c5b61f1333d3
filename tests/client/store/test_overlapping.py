"""Calls that ask the same at the same time: a store asks once for all of them, and a failure holds up none."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from speechlab.client import AsyncClient, Client
from speechlab.errors import APITimeoutError, BadRequestError, ServerError
from support.clock import eventually

MEANT = {"source_lang": "ja", "target_lang": "en"}
ANSWER_S = 0.3


@pytest.fixture
def store(tmp_path):
    return tmp_path / "kept"


def test_threads_and_clients_ask_once_whatever_the_stores_name(service, store):
    with Client(service.base_url, store=store) as one, Client(service.base_url, store=str(store)) as two:
        labs = [one, two, one.with_options(timeout=20)]
        with ThreadPoolExecutor(6) as threads:
            found = [threads.submit(lambda lab: ask(lab).id, lab) for lab in labs * 2]
        assert {one.result() for one in found} == {"t0"}
        assert len(service.asked()) == 1
        live = one.with_options(mode="live")
        with ThreadPoolExecutor(3) as threads:  # which asks each time
            assert {*threads.map(lambda _: ask(live).id, range(3))} == {"t1", "t2", "t3"}


@pytest.mark.parametrize(
    ("first", "found"),
    [
        ((400, BadRequestError), {"t1"}),  # the next one asks
        ((500, ServerError), {"t1", "t2", "t3"}),  # nobody waits again
    ],
)
def test_who_waits_for_a_call_that_fails_asks(service, store, http, first, found):
    status, error = first
    service.first = http.reply(status, {"error": "no"})
    with Client(service.base_url, store=store, max_retries=0) as lab, ThreadPoolExecutor(4) as threads:
        calls = [threads.submit(outcome, lab)]
        assert eventually(service.asked)
        calls += [threads.submit(outcome, lab) for _ in range(3)]
        assert calls[0].result() is error
        assert {one.result() for one in calls[1:]} == found
    assert len(service.asked()) == 1 + len(found)


@pytest.fixture
def service(server, http):
    """A service that takes its time; ``asked`` tells what was to be translated, ``first`` how the first reply is."""

    def answer(request):
        if request.path.endswith("/voices"):
            return [0.05, http.reply(body={"voices": [http.VOICE]})]
        number = next(numbers)
        body = {"id": f"t{number}", "model": "m", "choices": [{"message": {"content": "Hello"}}]}
        return [ANSWER_S, server.first if number == 0 and server.first else http.reply(body=body)]

    numbers = count()
    server.script(answer)
    server.first = None
    server.asked = lambda: [request for request in server.requests if "translate" in request.path]
    return server


def ask(lab, text="a", **options):
    return lab.translate(text, **MEANT, **options)


def outcome(lab, **options):
    try:
        return ask(lab, **options).id
    except Exception as error:
        return type(error)


def test_tasks_that_ask_the_same_ask_once(service, store):
    async def main():
        async with AsyncClient(service.base_url, store=store) as lab:
            return await asyncio.gather(*[ask(lab, f"{n % 3}") for n in range(30)])

    results = asyncio.run(main())
    assert [one.id for one in results] == [results[n % 3].id for n in range(30)]
    assert len({one.id for one in results}) == len(service.asked()) == 3
    assert len(service.requests) == 4  # and the catalogue, which tells whose answers these are


def test_the_next_one_asks_where_a_call_is_cancelled(service, store):
    async def main():
        async with AsyncClient(service.base_url, store=store) as lab:
            first = asyncio.ensure_future(ask(lab))
            await asyncio.to_thread(eventually, service.asked)
            others = [asyncio.ensure_future(ask(lab)) for _ in range(3)]
            others[0].cancel()  # which is nothing to the others
            await asyncio.sleep(0.05)
            first.cancel()
            return [one.id for one in await asyncio.gather(*others[1:])]

    assert asyncio.run(main()) == ["t1", "t1"]
    assert len(service.asked()) == 2


def test_the_time_of_a_call_bounds_its_waiting_for_another(service, store):
    with Client(service.base_url, store=store) as lab, ThreadPoolExecutor(1) as threads:
        lab.identity()
        first = threads.submit(ask, lab)
        assert eventually(service.asked)
        with pytest.raises(
            APITimeoutError, match=r"time of 0.05 s .* another call .* with the same request"
        ) as told:
            ask(lab, timeout=0.05)
        assert (told.value.attempts, told.value.timing.attempts, told.value.possibly_metered) == (0, 0, False)
        assert first.result().id == "t0"
    assert len(service.asked()) == 1
