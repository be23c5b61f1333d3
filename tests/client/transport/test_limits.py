"""The adaptive limit and the budget of retries: nothing is lost in a storm, and little is refused."""

from __future__ import annotations

import asyncio
import threading
import time
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab.client import AsyncClient, SystemClock
from speechlab.client._operations.failures import retry_after_s
from speechlab.client._transport.limiter import CallLimit, call_limit
from speechlab.client._transport.retry import Failure, RetryState
from speechlab.errors import APIConnectionError, ServerError

TRANSLATED = {"choices": [{"message": {"content": "Hello"}}]}


class Full:
    def uniform(self, a, b):
        return b


def delays(failures, **options):
    state = RetryState(**{"max_retries": 4, "patience_s": 60.0, "free": False, "rng": Full(), **options})
    now, found = 0.0, []
    for failure in failures:
        delay = state.delay(failure, now=now, deadline=None)
        found.append(delay)
        now += delay or 0.0
    return found


ERROR = ServerError("x")


def test_waits_double_up_to_a_cap():
    assert delays([Failure(ERROR, status=502)] * 8, max_retries=7) == [0.5, 1, 2, 4, 8, 8, 8, None]


def test_what_is_repeated_and_what_is_not():
    lost = APIConnectionError("x")
    assert delays([Failure(lost)] * 5) == [0.5, 1, 2, 4, None]
    assert delays([Failure(lost, sent=True, timed_out=True)]) == [None]
    assert delays([Failure(lost, sent=True, timed_out=True)], free=True) == [0.5]
    assert delays([Failure(lost, timed_out=True)]) == [0.5]
    assert delays([Failure(lost, final=True)]) == [None]
    assert delays([Failure(ERROR, status=500)] * 3) == [0.5, 1, None]
    assert delays([Failure(ERROR, status=502, retry_after_s=3.0)]) == [3.25]
    assert delays([Failure(ERROR, status=502, retry_after_s=300.0)]) == [None]
    assert delays([Failure(ERROR, status=501)]) == [None]
    assert delays([Failure(ERROR, status=429)], max_retries=0) == [None]
    refused = delays([Failure(ERROR, status=429)] * 40)
    assert sum(delay for delay in refused if delay) <= 60
    assert refused[-1] is None


def test_nothing_is_waited_for_that_would_come_too_late():
    state = RetryState(max_retries=4, patience_s=60, free=False, rng=Full())
    assert state.delay(Failure(ERROR, status=502), now=9.8, deadline=10.0) is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5", 5.0),
        (" 0.5 ", 0.5),
        ("-3", 0.0),
        ("1e9", 86_400.0),
        (formatdate(1_000_030, usegmt=True), 30.0),
        (formatdate(999_000, usegmt=True), 0.0),
        ("soon", None),
        ("", None),
        ("nan", None),
    ],
)
def test_both_forms_of_retry_after(value, seconds):
    assert retry_after_s({"retry-after": value}, now=1_000_000.0) == seconds


@given(st.text())
def test_any_retry_after_is_read(value):
    seconds = retry_after_s({"retry-after": value})
    assert seconds is None or 0 <= seconds <= 86_400


def run_slots(script):
    """Run a coroutine with a lane and a clock that it may set."""

    class Clock(SystemClock):
        now = 0.0

        def monotonic(self):
            return self.now

    clock, limit = Clock(), CallLimit()

    async def main():
        return await asyncio.wait_for(script(limit, clock), 10)

    return asyncio.run(main())


def test_the_limit_grows_by_one_in_a_round_and_shrinks_once():
    async def script(limit, clock):
        assert limit.limit == 4
        slots = [await limit.acquire(64, clock) for _ in range(4)]
        for slot in slots:
            slot.release(success=True)
        assert 4 < limit.limit <= 5
        before = limit.limit
        slots = [await limit.acquire(64, clock) for _ in range(4)]
        clock.now = 1.0
        for slot in slots:
            slot.release(throttled=True)
        assert limit.limit == pytest.approx(before * 0.7)  # four refusals of one round are one
        assert limit.in_flight == 0
        for _ in range(20):
            clock.now += 1
            (await limit.acquire(64, clock)).release(throttled=True)
        assert limit.limit == 1.0

    run_slots(script)


def test_waiting_is_in_order_and_can_be_given_up():
    async def script(limit, clock):
        first = await limit.acquire(1, clock)
        order = []

        async def wait(name):
            slot = await limit.acquire(1, clock)
            order.append(name)
            slot.release(success=True)
            slot.release()

        tasks = [asyncio.ensure_future(wait(name)) for name in "abcd"]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.sleep(0)
        first.release()
        tasks[0].cancel()  # admitted a moment ago, and gone before it could run
        await asyncio.gather(*tasks, return_exceptions=True)
        assert order == ["c", "d"]
        assert limit.in_flight == 0

    run_slots(script)


def test_loops_of_several_threads_share_a_lane():
    limit, clock = CallLimit(), SystemClock()
    most, now, lock = [0], [0], threading.Lock()

    async def call():
        slot = await limit.acquire(3, clock)
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        await asyncio.sleep(0.002)
        with lock:
            now[0] -= 1
        slot.release(success=True)

    async def many():
        await asyncio.gather(*(call() for _ in range(40)))

    threads = [threading.Thread(target=asyncio.run, args=(many(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert most[0] == 3
    assert limit.in_flight == 0


def test_limits_belong_to_service_key_and_kind():
    assert call_limit("http://a/", "k", "tts") is call_limit("http://a", "k", "tts")
    assert len({id(call_limit("http://a", key, kind)) for key in "kl" for kind in ("tts", "asr")}) == 4


def test_retries_of_all_calls_have_one_quota():
    limit = CallLimit()
    spent = 0
    while limit.spend_retry():
        spent += 1
    assert spent == 100
    limit.release(0.0, 0.0, success=True, throttled=False)
    assert not limit.spend_retry()


@pytest.mark.parametrize("retry_after", [None, "0.2"])
def test_a_storm_of_429_loses_nothing(server, http, retry_after):
    refused = []

    def answer(request):
        if server.active > 8:
            refused.append(request)
            headers = {"Retry_After": retry_after} if retry_after else {}
            return http.reply(429, {"error": "slow down"}, **headers)
        return [0.02, http.reply(body=TRANSLATED)]

    server.script(answer)

    async def main():
        async with AsyncClient(server.base_url, max_concurrency=64) as lab:
            calls = (lab.translate("a", source_lang="ja", target_lang="en") for _ in range(300))
            return await asyncio.gather(*calls)

    began = time.monotonic()
    results = asyncio.run(main())
    assert [result.text for result in results] == ["Hello"] * 300
    assert len(refused) < 60
    assert time.monotonic() - began < 20
