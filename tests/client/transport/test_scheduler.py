"""The scheduler: nothing is lost and nothing waits for ever, and a service is asked no more than it bears."""

import asyncio
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speechlab.client import AsyncClient, Client
from speechlab.errors import APIConnectionError, APITimeoutError, ServerError
from support.clock import FakeClock, Half, eventually
from support.samples import TRANSLATED
from support.simulated import (
    AttemptEnd,
    End,
    Failure,
    Patience,
    ScheduledCall,
    Scheduler,
    SimulatedService,
    at_once,
    at_random,
    bucket,
    down,
    failure,
    quota,
    simulate,
)

SINGLE = Patience(60.0, 60.0, 10.0, 4)
LOST = APIConnectionError("x")
ERROR = ServerError("x")


def test_how_often_what_is_repeated():
    late = Failure(LOST, sent=True, timed_out=True)
    spared = {"spared": True, "failures": 10}
    for failures, repeated, free, patience in (
        ([Failure(LOST)] * 5, 4, False, {}),
        ([late], 0, False, {}),
        ([late], 1, True, {}),
        ([Failure(LOST, timed_out=True)], 1, False, {}),
        ([Failure(LOST, final=True)], 0, False, {}),
        ([Failure(ERROR, status=500)] * 3, 2, False, {}),
        ([Failure(ERROR, status=501)], 0, False, {}),
        ([failure(429)] * 50, 50, False, {}),
        *(([failure(status)] * 4, 2, False, {"retries": 2, "failures": 2}) for status in (429, 502, 0)),
        # an outage is no fault of a call, but each that was sent may have been done and billed
        ([failure(0)] * 50, 50, False, {**spared, "others": False}),
        ([failure(502)] * 12, 10, False, spared),
        ([Failure(LOST, sent=True)] * 6, 4, False, {**spared, "others": False}),
    ):
        others = patience.pop("others", True)
        call = ScheduledCall(Scheduler(FakeClock(), Half()), replace(SINGLE, **patience), 16, free=free)
        again = [call.record_failure_and_can_retry(one, unpaused=0.0, others=others) for one in failures]
        assert again == [True] * repeated + [False] * (len(failures) - repeated), (failures[0], patience)


def test_an_outage_loses_nothing():
    for status, outage_s in ((0, 30.0), (None, 2.0), (502, 2.0), (503, 30.0)):
        service = SimulatedService(down(5.0, 5.0 + outage_s, status))
        run = simulate(service, 600)
        assert run.counts == {"ok": 600}
        assert run.took_s < 600 * 0.5 / 16 + outage_s + 7
        assert service.statuses[status or 0] < 50
        assert max(run.attempts.values()) <= 5  # the probes are of many calls, as each may be billed


def test_a_service_that_is_gone_for_good_is_given_up():
    for status, begin in ((0, 0.0), (502, 30.0)):
        service = SimulatedService(down(begin, 1e9, status))
        run = simulate(service, 1300)
        assert begin + 50 < run.took_s < begin + 70
        assert set(run.counts) <= {"ok", "lost"}
        assert run.counts["lost"] == 64  # those that had begun
        assert service.statuses[status] < 80
        patient = simulate(
            SimulatedService(down(0.0, 1e9, status)), 10, patience=Patience(60, 9, 9, 10, spared=True)
        )
        assert patient.took_s < 10


STORMS = {
    "calm": (lambda: lambda *_: None, 512, 8.2),
    **{
        f"{most} at once, {asks}": (lambda most=most, asks=asks: at_once(most, asks), 32 * most, 8.2)
        for most in (1, 4, 16)
        for asks in (None, 1.0)
    },
    "10/s": (lambda: bucket(10.0, 10, header=False), 110, 10.25),
    "10/s, header": (lambda: bucket(10.0, 10, header=True), 110, 10.25),
    "30 in 12 s": (lambda: quota(30, 12.0, header=False), 75, 24.25),
    "30 in 12 s, header": (lambda: quota(30, 12.0), 75, 24.25),
    "30 in 60 s": (lambda: quota(30, 60.0, header=False), 75, 120.25),
    "30 in 60 s, header": (lambda: quota(30, 60.0), 75, 120.25),
    "outage of 2 s": (lambda: down(1.0, 3.0, 503), 512, 10.2),
    "outage of 30 s": (lambda: down(1.0, 31.0, 503), 512, 38.2),
    "503 at random": (lambda: at_random(0.25, 503), 512, 8.2),
    "429 at random": (lambda: at_random(0.30, 429), 1600, 25.6),
}
"""How a service judges calls of 0.25 s, how many there are, and how long who knows it takes for them."""


@pytest.mark.slow
@pytest.mark.parametrize("storm", STORMS)
def test_a_storm_takes_little_longer_than_one_that_is_known(storm):
    # who knows the service is refused nothing that can be known, and waits for nothing
    judge, rows, best_s = STORMS[storm]
    took = []
    for seed in range(3):
        service = SimulatedService(judge(), latency_s=0.25, rng=random.Random(seed))
        run = simulate(service, rows, seed=seed)
        assert run.counts == {"ok": rows}
        took.append(run.took_s)
        # Refusals are quick and successes slow, so that refusals come many in a row while others are accepted; the
        # pause of the last call, which has no others beside it, may halve the width.
        assert storm != "429 at random" or run.scheduler.pressure.width >= 8
    assert sorted(took)[1] < 1.15 * best_s


def test_a_rate_is_kept_and_used():
    service = SimulatedService(lambda *_: None)
    run = simulate(service, 200, rate=20.0)
    assert 200 / 20 - 1 < run.took_s < 200 / 20 + 1
    times = [when for when, _ in service.log]
    for first, later in zip(times, times[20:], strict=False):
        assert later - first > 0.94


def events():
    """What a service does: for each attempt in scheduled nothing, or a status with or without a time to wait."""
    statuses = st.sampled_from([None, None, None, 0, 429, 500, 502, 503])
    return st.lists(st.tuples(statuses, st.sampled_from([None, 0.0, 0.3, 3.0, 30.0, 400.0])), max_size=60)


@settings(max_examples=40, deadline=None)
@given(events(), st.integers(1, 40), st.integers(1, 20), st.booleans(), st.integers(0, 5))
def test_every_call_ends(script, calls, ceiling, single, seed):
    left = list(script)

    def judge(service, now):
        status, asked = left.pop(0) if left else (None, None)
        return None if status is None else failure(status, asked)

    service = SimulatedService(judge)
    patience = SINGLE if single else None
    run = simulate(service, calls, ceiling=ceiling, single=single, patience=patience, seed=seed)
    assert service.most_active <= ceiling
    assert len(run.outcomes) == calls or "lost" in run.counts
    assert run.scheduler.under_way == run.scheduler.waiting == 0
    if not script:
        assert run.counts == {"ok": calls}


def test_four_open_streams_hold_up_no_other_call(server, http, wav):
    def answer(request):
        if b'"stream"' in request.body:
            return [*http.chunked(wav, end=False), 20.0]
        return http.reply(200, wav, "audio/wav")

    server.script(answer)
    with Client(server.base_url, timeout=10) as lab:
        streams = [lab.stream_speech("a", voice=http.VOICE_ID) for _ in range(4)]
        for stream in streams:
            stream.open()
        assert lab.synthesize("b", voice=http.VOICE_ID).encoded == wav


@pytest.mark.slow
def test_time_that_a_user_gives_bounds_the_wait_for_a_place(server, http):
    server.script([20.0])
    meant = {"source_lang": "ja", "target_lang": "en"}
    with Client(server.base_url, max_concurrency=1) as lab, ThreadPoolExecutor(1) as thread:
        first = thread.submit(lab.translate, "a", **meant, timeout=2)
        assert eventually(lambda: server.requests)
        with pytest.raises(
            APITimeoutError, match=r"not sent: it waited 0\.2 s for one of 1 places"
        ) as caught:
            lab.translate("a", **meant, timeout=0.2)
        assert (caught.value.possibly_metered, caught.value.attempts) == (False, 0)
        assert isinstance(first.exception(10), APITimeoutError)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    st.integers(1, 60),
    st.sampled_from([7.0, 20.0, 60.0]),
    st.sampled_from([0.02, 0.5, 9.0]),
    st.integers(1, 20),
    st.booleans(),
    st.integers(0, 9),
)
def test_no_quota_is_exceeded_by_more_than_a_few_rounds(calls, window_s, latency_s, ceiling, header, seed):
    service = SimulatedService(quota(calls, window_s, header=header), latency_s=latency_s)
    run = simulate(service, 100, ceiling=ceiling, seed=seed)
    assert run.counts == {"ok": 100}
    refused = Counter(when // window_s for when, status in service.log if status == 429)
    probes = 1 if header else 24
    # a round is as many attempts as the width, which begins at four, or as the ceiling
    assert max(refused.values(), default=0) <= 2 * max(ceiling, 4) + probes
    fewest = 100 / calls * window_s + 100 * latency_s / ceiling
    assert run.took_s <= 1.5 * fewest + 3 * window_s + 10 * latency_s


def call_of(scheduler, ceiling):
    return ScheduledCall(scheduler, SINGLE, ceiling, free=False)


def scripted(script):
    """Run a script with a scheduler whose time passes only by sleeping."""

    def run():
        asyncio.run(asyncio.wait_for(script(Scheduler(FakeClock(), Half())), 10))

    return run


@scripted
async def test_waiting_is_in_order_and_can_be_given_up(scheduler):
    first = await call_of(scheduler, 1).wait_for_place()
    order = []

    async def wait(name):
        place = await call_of(scheduler, 1).wait_for_place()
        order.append(name)
        place.end(AttemptEnd(End.OK))
        place.end(AttemptEnd(End.OK))

    tasks = [asyncio.ensure_future(wait(name)) for name in "abcd"]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.sleep(0)
    first.end(AttemptEnd(End.UNKNOWN))
    tasks[0].cancel()  # admitted a moment ago, and gone before it could run
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == ["c", "d"]
    assert scheduler.under_way == 0


def test_places_of_an_event_loop_that_was_left_go_to_others(server, http):
    meant = {"source_lang": "ja", "target_lang": "en"}
    server.script([20.0])
    loop = asyncio.new_event_loop()
    left = AsyncClient(server.base_url)
    tasks = [loop.create_task(left.translate(str(number), **meant)) for number in range(6)]
    while len(server.requests) < 4:
        loop.run_until_complete(asyncio.sleep(0.01))
    server.script(http.reply(body=TRANSLATED))
    with Client(server.base_url) as lab:
        assert lab.translate("b", timeout=5, **meant).text == "Hello"
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*tasks, left.aclose(), return_exceptions=True))
    loop.close()
