"""The scheduler: nothing is lost and nothing waits for ever, and a service is asked no more than it bears."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from email.utils import formatdate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speechlab.client import AsyncClient, CallGroup, Client, SystemClock
from speechlab.client._operations.failures import parse_retry_after
from speechlab.client._scheduling.pressure import AttemptEnd, End
from speechlab.client._scheduling.retry import Failure, ScheduledCall
from speechlab.client._scheduling.scheduler import Scheduler, get_scheduler
from speechlab.client._scheduling.waiting import NotSentError, Patience
from speechlab.errors import APIConnectionError, APITimeoutError, RateLimitError, ServerError
from support.clock import FakeClock, Half, ends_within
from support.samples import TRANSLATED
from support.simulated import SimulatedService, at_once, at_random, bucket, down, failure, quota, simulate

SINGLE = Patience(60.0, 60.0, 10.0, 4)
LOST = APIConnectionError("x")
ERROR = ServerError("x")


def goes_on(attempts, *, others=True, free=False, **patience):
    limits = Patience(**{**vars_of(SINGLE), **patience})
    call = ScheduledCall(Scheduler(FakeClock(), Half()), limits, 16, free=free)
    return [call.record_failure_and_can_retry(one, unpaused=0.0, others=others) for one in attempts]


def vars_of(patience):
    return {name: getattr(patience, name) for name in patience.__slots__}


def test_what_is_repeated_and_what_is_not():
    assert goes_on([Failure(LOST)] * 5) == [True] * 4 + [False]
    assert goes_on([Failure(LOST, sent=True, timed_out=True)]) == [False]
    assert goes_on([Failure(LOST, sent=True, timed_out=True)], free=True) == [True]
    assert goes_on([Failure(LOST, timed_out=True)]) == [True]
    assert goes_on([Failure(LOST, final=True)]) == [False]
    assert goes_on([Failure(ERROR, status=500)] * 3) == [True, True, False]
    assert goes_on([Failure(ERROR, status=501)]) == [False]
    assert goes_on([failure(429)] * 50) == [True] * 50


def test_a_maximum_bounds_all_retries():
    for one in (failure(429), failure(503, 1.0), failure(502), failure(0)):
        assert goes_on([one] * 4, retries=2, failures=2) == [True, True, False, False]
    assert goes_on([failure(429)], retries=0) == [False]


def test_an_outage_is_no_fault_of_a_call():
    assert all(goes_on([failure(0)] * 50, others=False, spared=True))
    assert goes_on([failure(502)] * 12, others=True, spared=True, failures=10) == [True] * 10 + [False] * 2
    paid = [Failure(LOST, sent=True)] * 6  # each may have been done and billed
    assert goes_on(paid, others=False, spared=True, failures=10) == [True] * 4 + [False] * 2


def test_both_forms_of_retry_after():
    for value, seconds in (
        ("5", 5.0),
        (" 0.5 ", 0.5),
        ("0", None),
        ("-3", None),
        ("1e9", 86_400.0),
        (formatdate(1_000_030, usegmt=True), 30.0),
        (formatdate(999_000, usegmt=True), None),
        ("soon", None),
        ("", None),
        ("nan", None),
    ):
        assert parse_retry_after({"retry-after": value}, now=1_000_000.0) == seconds


@given(st.text())
def test_any_retry_after_is_read(value):
    seconds = parse_retry_after({"retry-after": value})
    assert seconds is None or 0 < seconds <= 86_400


def test_a_quota_by_the_minute_is_waited_for():
    for header in (True, False):
        service = SimulatedService(quota(30, 60.0, header=header))
        run = simulate(service, 75)
        assert run.counts == {"ok": 75}
        assert run.took_s < (125 if header else 150)
        assert service.statuses[429] <= (6 if header else 70)


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


@pytest.mark.slow
def test_failures_at_random_lose_nothing():
    for status in (0, 502):
        service = SimulatedService(at_random(0.25, status), latency_s=0.05)
        run = simulate(service, 1000)
        assert run.counts == {"ok": 1000}


@pytest.mark.parametrize("retry_after", [None, 0.2, 1.0])
@pytest.mark.parametrize("most", [1, 8])
def test_a_limit_of_calls_at_once_loses_nothing(most, retry_after):
    service = SimulatedService(at_once(most, retry_after))
    run = simulate(service, 200)
    assert run.counts == {"ok": 200}
    assert service.most_active == most


@pytest.mark.parametrize("ceiling", [16, 64])
@pytest.mark.parametrize("retry_after", [None, 1.0])
def test_a_limit_of_short_calls_costs_little_time(ceiling, retry_after):
    # who knows the limit is refused nothing, and waits for nothing; a call takes 50 ms, and 5 until it is judged
    best_s = 600 * 0.055 / 8
    for seed in range(3):
        service = SimulatedService(at_once(8, retry_after), latency_s=0.05, rng=random.Random(seed))
        run = simulate(service, 600, ceiling=ceiling, seed=seed)
        assert run.counts == {"ok": 600}
        assert run.took_s < 1.04 * best_s
        assert service.statuses[429] < 16


def test_an_outage_of_two_seconds_takes_little_more():
    for seed in range(3):
        service = SimulatedService(down(0.5, 2.5, 503), latency_s=0.05, rng=random.Random(seed))
        run = simulate(service, 600, seed=seed)
        assert run.counts == {"ok": 600}
        assert run.took_s < 1.15 * (600 * 0.055 / 16 + 2.0)


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
    assert sorted(took)[1] < 1.15 * best_s


@pytest.mark.slow
def test_refusals_at_random_leave_the_width():
    # refusals are quick and successes slow, so that refusals come many in a row while others are accepted
    for seed in range(3):
        service = SimulatedService(at_random(0.3, 429), latency_s=0.25, rng=random.Random(seed))
        run = simulate(service, 1000, seed=seed)
        assert run.counts == {"ok": 1000}
        assert (
            run.scheduler.pressure.width >= 8
        )  # the pause of the last call, which has no others beside it, may halve it


def test_a_call_is_not_sent_before_it_may_be():
    asked = {}

    def judge(service, now):
        return failure(429, 1.0) if service.active >= 4 else None

    class Watched(SimulatedService):
        async def ask(self):
            task, began = asyncio.current_task(), asyncio.get_running_loop().time()
            assert began >= asked.pop(task, 0.0)
            failed = await super().ask()
            if failed is not None:
                asked[task] = asyncio.get_running_loop().time() + 1.0
            return failed

    run = simulate(Watched(judge, latency_s=0.05), 200)
    assert run.counts == {"ok": 200}


def test_a_rate_is_kept_and_used():
    service = SimulatedService(lambda *_: None)
    run = simulate(service, 200, rate=20.0)
    assert 200 / 20 - 1 < run.took_s < 200 / 20 + 1
    times = [when for when, _ in service.log]
    for first, later in zip(times, times[20:], strict=False):
        assert later - first > 0.94


def test_single_calls_end_too():
    service = SimulatedService(down(0.0, 1e9))
    run = simulate(service, 300, single=True, patience=SINGLE)
    assert set(run.counts) <= {"lost", "error"}
    assert run.took_s < 30
    assert len(service.log) < 30


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


def scripted(script, **options):
    clock = FakeClock()
    scheduler = Scheduler(clock, Half())

    async def main():
        return await asyncio.wait_for(script(scheduler, clock), 10)

    return asyncio.run(main())


def call_of(scheduler, ceiling=64, patience=SINGLE, **options):
    return ScheduledCall(scheduler, patience, ceiling, free=False, **options)


def test_waiting_is_in_order_and_can_be_given_up():
    async def script(scheduler, clock):
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

    scripted(script)


def test_a_low_ceiling_holds_up_nobody_else():
    async def script(scheduler, clock):
        place = await call_of(scheduler, 1).wait_for_place()
        waiting = asyncio.ensure_future(call_of(scheduler, 1).wait_for_place())
        await asyncio.sleep(0)
        other = await call_of(scheduler, 2).wait_for_place()
        assert not waiting.done()
        place.end(AttemptEnd(End.OK))
        (await waiting).end(AttemptEnd(End.OK))
        other.end(AttemptEnd(End.OK))

    scripted(script)


def test_loops_of_several_threads_share_a_scheduler():
    scheduler = Scheduler(SystemClock(), random.Random(1))
    most, now, lock = [0], [0], threading.Lock()

    async def call():
        place = await call_of(scheduler, 3).wait_for_place()
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        await asyncio.sleep(0.002)
        with lock:
            now[0] -= 1
        place.end(AttemptEnd(End.OK))

    async def many():
        await asyncio.gather(*(call() for _ in range(40)))

    threads = [threading.Thread(target=asyncio.run, args=(many(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert most[0] == 3
    assert scheduler.under_way == scheduler.waiting == 0


@pytest.mark.slow
def test_a_pause_ends_on_a_loop_whose_neighbor_has_gone():
    scheduler = Scheduler(SystemClock(), random.Random(1))
    patient = Patience(60.0, 60.0, 60.0, 10, spared=True)

    async def fail():
        for _ in range(4):
            place = await call_of(scheduler).wait_for_place()
            assert call_of(scheduler).end_attempt_and_compute_delay(failure(429, 0.2), place) is not None

    async def leave():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await call_of(scheduler, patience=patient).wait_for_place()

    asyncio.run(fail())
    thread = threading.Thread(target=asyncio.run, args=(leave(),))
    thread.start()

    async def stay():
        return await asyncio.wait_for(call_of(scheduler, patience=patient).wait_for_place(), 5)

    assert asyncio.run(stay()).started > 0
    thread.join(10)


def test_schedulers_belong_to_service_key_kind_and_clock():
    clock, rng, fake = SystemClock(), random.Random(1), FakeClock()
    one = get_scheduler("http://a/", "k", "tts", clock, rng)
    assert get_scheduler("http://a", "k", "tts", SystemClock(), rng) is one
    assert get_scheduler("http://a", "k", "tts", fake, rng) is not one
    kinds = {get_scheduler("http://a", key, kind, clock, rng) for key in "kl" for kind in ("tts", "asr")}
    assert len(kinds) == 4


def test_a_stopped_group_sends_nothing_more():
    async def script(scheduler, clock):
        group = CallGroup(1, None, SINGLE)
        place = await call_of(scheduler, group=group).wait_for_place()
        waiting = asyncio.ensure_future(call_of(scheduler, group=group).wait_for_place())
        other = asyncio.ensure_future(call_of(scheduler).wait_for_place())
        await asyncio.sleep(0)
        group.stop()
        with pytest.raises(NotSentError, match="stopped"):
            await waiting
        with pytest.raises(NotSentError, match="stopped"):
            await call_of(scheduler, group=group).wait_for_place()
        (await other).end(AttemptEnd(End.OK))
        place.end(AttemptEnd(End.OK))

    scripted(script)


def test_a_pause_is_told_to_those_who_show_it():
    async def script(scheduler, clock):
        group = CallGroup(1, None, SINGLE)
        scheduled = call_of(scheduler, group=group)
        place = await scheduled.wait_for_place()
        assert group.find_pause() is None
        scheduled.end_attempt_and_compute_delay(failure(429, 48.0), place)
        what, seconds = group.find_pause()
        assert what == "the service's quota"
        assert 48 <= seconds < 48.3

    scripted(script)


def test_four_open_streams_hold_up_no_other_call(server, http, wav):
    def answer(request):
        if b'"stream"' in request.body:
            return [*http.chunked(wav, end=False), 20.0]
        return (
            http.reply(body=TRANSLATED) if "translate" in request.path else http.reply(200, wav, "audio/wav")
        )

    server.script(answer)
    with Client(server.base_url, timeout=10) as lab:
        streams = [lab.stream_speech("a", voice=http.VOICE_ID) for _ in range(4)]
        for stream in streams:
            assert next(iter(stream))
        lab.synthesize("b", voice=http.VOICE_ID)
        for stream in streams:
            stream.close()


@pytest.mark.slow
def test_streams_that_are_read_make_room_for_another_call(server, http, wav):
    def answer(request):
        if b'"stream"' in request.body:
            return [*http.chunked(wav, end=False), 4.0, b"0\r\n\r\n"]
        return http.reply(200, wav, "audio/wav")

    server.script(answer)
    with Client(server.base_url) as lab:
        streams = [lab.stream_speech("a", voice=http.VOICE_ID) for _ in range(4)]
        for stream in streams:
            stream.open()
        readers = [threading.Thread(target=stream.collect) for stream in streams]
        for reader in readers:
            reader.start()
        lab.synthesize("b", voice=http.VOICE_ID, timeout=3)  # the streams take four seconds
        assert all(reader.is_alive() for reader in readers)
        for reader in readers:
            reader.join(15)


@pytest.mark.slow
def test_time_that_a_user_gives_bounds_the_wait_for_a_place(server, http):
    server.script([20.0])
    with Client(server.base_url, max_concurrency=1) as lab:
        waits = []

        def long():
            with pytest.raises(APITimeoutError):
                lab.with_options(timeout=3).translate("a", source_lang="ja", target_lang="en")
            waits.append(1)

        thread = threading.Thread(target=long)
        thread.start()
        while not server.requests:
            time.sleep(0.01)
        with pytest.raises(
            APITimeoutError, match=r"not sent: it waited 0\.2 s for one of 1 places"
        ) as caught:
            lab.with_options(timeout=0.2).translate("a", source_lang="ja", target_lang="en")
        assert not caught.value.possibly_metered
        assert caught.value.attempts == 0
        thread.join(10)
        assert waits


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


def test_a_maximum_that_a_user_gives_bounds_refusals_too(server, lab, http):
    server.script(http.reply(429))
    with pytest.raises(RateLimitError):
        lab.with_options(max_retries=2).translate("a", source_lang="ja", target_lang="en")
    assert len(server.requests) == 3


@pytest.mark.slow
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

    with ends_within(20):
        results = asyncio.run(main())
    assert [result.text for result in results] == ["Hello"] * 300
    assert len(refused) < 300


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
