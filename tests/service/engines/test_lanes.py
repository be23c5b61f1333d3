"""Lanes: who waits for whom, and what is left when somebody leaves."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import time

import pytest

from speechlab.service import ServedEngine
from speechlab.service._engines.lanes import EngineLane
from speechlab.service._engines.sharing import FairTurns
from speechlab.service._engines.threads import Threads
from speechlab.service._faults import Fault


def make(
    *,
    heavy: FairTurns | None = None,
    concurrency: int = 4,
    queue_limit: int = 8,
    is_heavy: bool = False,
) -> EngineLane:
    entry = ServedEngine("one", "synthesizer", object, heavy=is_heavy)
    return EngineLane(
        entry,
        Threads(),
        heavy if is_heavy and heavy else FairTurns(),
        concurrency=concurrency,
        queue_limit=queue_limit,
    )


def numbers(count: int, seen: list[str], name: str):
    try:
        for number in range(count):
            time.sleep(0.01)
            seen.append(f"{name}{number}")
            yield number
    finally:
        seen.append(f"{name} closed")


async def until(condition) -> None:
    for _ in range(1_000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError


def test_pieces_come_in_order_and_the_iterator_is_closed():
    async def main() -> None:
        lane, seen = make(), []
        async with (
            lane.admit_request("tts") as admission,
            contextlib.aclosing(lane.iterate_pieces(admission, lambda: numbers(3, seen, "a"))) as it,
        ):
            assert [piece async for piece in it] == [0, 1, 2]
        assert seen == ["a0", "a1", "a2", "a closed"]
        assert admission.engine_s > 0.02
        assert lane.admitted == 0

    asyncio.run(main())


def test_two_syntheses_take_turns():
    async def main() -> None:
        lane, seen = make(), []

        async def consume(name: str, count: int) -> None:
            async with (
                lane.admit_request("tts") as admission,
                contextlib.aclosing(lane.iterate_pieces(admission, lambda: numbers(count, seen, name))) as it,
            ):
                async for _ in it:
                    pass

        await asyncio.gather(consume("long", 10), consume("short", 2))
        assert seen.index("short1") < seen.index("long4")

    asyncio.run(main())


def test_whole_iterations_do_not_mix():
    async def main() -> None:
        lane, seen = make(concurrency=2), []

        async def consume(name: str) -> None:
            async with (
                lane.admit_request("translate") as admission,
                contextlib.aclosing(
                    lane.iterate_pieces(admission, lambda: numbers(4, seen, name), whole=True)
                ) as it,
            ):
                async for _ in it:
                    pass

        await asyncio.gather(consume("a"), consume("b"))
        assert [item[0] for item in seen] == ["a"] * 5 + ["b"] * 5

    asyncio.run(main())


def test_heavy_engines_share_their_slots_and_light_ones_do_not():
    async def main() -> None:
        heavy = FairTurns()
        lanes = [make(heavy=heavy, is_heavy=True), make(heavy=heavy, is_heavy=True), make(heavy=heavy)]
        running, most = 0, 0
        lock, light_done = threading.Lock(), threading.Event()

        def work() -> None:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            assert light_done.wait(20)  # which comes after the heavy ones, and does not wait for them
            time.sleep(0.05)
            with lock:
                running -= 1

        async def use(lane: EngineLane, task) -> None:
            async with lane.admit_request("tts") as admission:
                await lane.run_task(admission, task)

        await asyncio.gather(use(lanes[0], work), use(lanes[1], work), use(lanes[2], light_done.set))
        assert most == 1

    asyncio.run(main())


@pytest.mark.parametrize("whole", [False, True])
def test_a_cancelled_request_frees_its_place_at_once_and_the_engine_when_its_thread_is_done(whole):
    async def main() -> None:
        lane = make(queue_limit=1, concurrency=1)
        gate, begun, closed = (threading.Event() for _ in range(3))

        def stuck():
            try:
                yield 1
                begun.set()
                gate.wait(10)
                yield 2
            finally:
                closed.set()

        async def consume() -> None:
            async with (
                lane.admit_request("tts") as admission,
                contextlib.aclosing(lane.iterate_pieces(admission, stuck, whole=whole)) as it,
            ):
                async for _ in it:
                    pass

        task = asyncio.create_task(consume())
        await until(begun.is_set)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert lane.admitted == 0
        assert not closed.is_set()

        async def next_one() -> None:
            async with lane.admit_request("tts") as admission:
                await lane.run_task(admission, lambda: None)

        follower = asyncio.create_task(next_one())
        await asyncio.sleep(0.1)
        assert not follower.done()
        gate.set()
        await asyncio.wait_for(follower, 5)
        await until(closed.is_set)

    asyncio.run(main())


@pytest.mark.slow
@pytest.mark.parametrize("whole", [False, True])
def test_an_event_loop_that_ends_meanwhile_leaves_no_task_behind(whole, caplog):
    gate = threading.Event()

    def stuck():
        yield 1
        gate.wait(10)
        yield 2

    async def main() -> None:
        lane, seen = make(), []

        async def consume() -> None:
            async with lane.admit_request("tts") as admission:
                async for piece in lane.iterate_pieces(admission, stuck, whole=whole):
                    seen.append(piece)

        unfinished = asyncio.create_task(consume())
        await until(lambda: seen)
        assert not unfinished.done()

    asyncio.run(main())
    gate.set()
    gc.collect()
    assert "destroyed" not in caplog.text


def test_cancelled_while_waiting_for_a_turn():
    async def main() -> None:
        lane = make(is_heavy=True)
        gate = threading.Event()

        async def use(task) -> None:
            async with lane.admit_request("tts") as admission:
                await lane.run_task(admission, task)

        first = asyncio.create_task(use(lambda: gate.wait(10)))
        await asyncio.sleep(0.05)
        second = asyncio.create_task(use(lambda: None))
        await asyncio.sleep(0.05)
        second.cancel()
        await asyncio.wait({second})
        gate.set()
        await first
        await asyncio.wait_for(use(lambda: None), 5)
        assert lane.admitted == 0

    asyncio.run(main())


@pytest.mark.parametrize("whole", [False, True])
def test_a_reader_that_pauses_holds_up_nobody_and_loses_nothing(whole):
    async def main() -> None:
        lane, seen = make(concurrency=1), []

        async def consume(name: str, pause: asyncio.Event) -> list[int]:
            got = []
            async with (
                lane.admit_request("tts") as admission,
                contextlib.aclosing(
                    lane.iterate_pieces(admission, lambda: numbers(4, seen, name), whole=whole)
                ) as it,
            ):
                async for piece in it:
                    got.append(piece)
                    await pause.wait()
            return got

        go_on, at_once = asyncio.Event(), asyncio.Event()
        at_once.set()
        slow = asyncio.create_task(consume("slow", go_on))
        await until(lambda: "slow0" in seen)
        assert await asyncio.wait_for(consume("other", at_once), 10) == [0, 1, 2, 3]
        assert not slow.done()
        # One that takes turns has made nothing meanwhile, and one that cannot has made everything.
        assert ("slow3" in seen) == whole
        go_on.set()
        assert await asyncio.wait_for(slow, 10) == [0, 1, 2, 3]
        assert lane.admitted == 0
        # The place is there once, not twice.
        async with lane.admit_request("tts"):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(lane.admit_request("tts").__aenter__(), 0.1)

    asyncio.run(main())


@pytest.mark.slow
def test_a_place_that_was_lent_is_taken_back_in_order():
    async def main() -> None:
        lane, seen = make(concurrency=1), []
        asked, working, most = asyncio.Event(), 0, 0

        def busy(name: str):
            nonlocal working, most
            for number in range(3):
                working += 1
                most = max(most, working)
                time.sleep(0.01)
                working -= 1
                seen.append(name)
                yield number

        async def consume(name: str, pause_s: float) -> None:
            async with (
                lane.admit_request("tts") as admission,
                contextlib.aclosing(lane.iterate_pieces(admission, lambda: busy(name))) as it,
            ):
                async for _ in it:
                    asked.set()
                    await asyncio.sleep(pause_s)

        slow = asyncio.create_task(consume("slow", 0.8))
        await asked.wait()
        await asyncio.gather(slow, *(consume(f"other {number}", 0.0) for number in range(3)))
        assert sorted(seen) == sorted(["slow", "other 0", "other 1", "other 2"] * 3)
        assert most == 1

    asyncio.run(main())


def test_pieces_made_ahead_are_bounded(monkeypatch):
    monkeypatch.setattr("speechlab.service._engines.lanes._MAX_AHEAD", 3)

    async def main() -> None:
        lane, seen = make(), []
        async with (
            lane.admit_request("translate") as admission,
            contextlib.aclosing(
                lane.iterate_pieces(admission, lambda: numbers(50, seen, "a"), whole=True)
            ) as it,
        ):
            assert await anext(it) == 0
            await until(lambda: "a3" in seen)
            await asyncio.sleep(0.2)
            assert seen == ["a0", "a1", "a2", "a3"]
            assert [piece async for piece in it] == list(range(1, 50))

    asyncio.run(main())


def test_a_full_queue_answers_at_once():
    async def main() -> None:
        lane = make(queue_limit=1)
        async with lane.admit_request("asr"):
            with pytest.raises(Fault) as caught:
                async with lane.admit_request("asr"):
                    pass
        assert caught.value.status == 429
        assert caught.value.headers["Retry-After"]
        async with lane.admit_request("asr"):
            pass

    asyncio.run(main())


def test_errors_pass_through_and_free_everything():
    async def main() -> None:
        lane = make(queue_limit=1, is_heavy=True)

        def fail():
            yield 1
            raise ValueError("inside")

        async def consume(*, whole: bool) -> None:
            async with (
                lane.admit_request("tts") as admission,
                contextlib.aclosing(lane.iterate_pieces(admission, fail, whole=whole)) as it,
            ):
                async for _ in it:
                    pass

        for whole in (False, True):
            with pytest.raises(ValueError, match="inside"):
                await consume(whole=whole)
        async with lane.admit_request("tts") as admission:
            assert await asyncio.wait_for(lane.run_task(admission, lambda: 5), 5) == 5

    asyncio.run(main())


@pytest.mark.slow
@pytest.mark.parametrize("how", ["run", "call"])
def test_a_failure_after_everybody_left_is_silent(how):
    complaints: list[dict[str, object]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        lane, threads, gate = make(), Threads(), threading.Event()

        def fail() -> None:
            gate.wait(5)
            raise ValueError("nobody waits for this")

        async def ask() -> None:
            if how == "run":
                await threads.run_task(fail)
            else:
                async with lane.admit_request("tts") as admission:
                    await lane.run_task(admission, fail)

        asking = asyncio.create_task(ask())
        await asyncio.sleep(0.05)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        del asking
        gate.set()
        await asyncio.sleep(0.2)
        gc.collect()

    asyncio.run(main())
    gc.collect()
    assert not complaints


def test_threads_are_reused_and_counted():
    threads = Threads()

    async def main() -> None:
        names = {await threads.run_task(lambda: threading.current_thread().ident) for _ in range(20)}
        gate = threading.Event()
        waiting = [threads.start_task(gate.wait) for _ in range(5)]
        assert threads.busy == 5
        gate.set()
        assert all(await asyncio.gather(*waiting))
        with pytest.raises(ZeroDivisionError):
            await threads.run_task(lambda: 1 / 0)
        assert len(names) <= 3

    asyncio.run(main())
    for _ in range(100):
        if threads.busy == 0:
            break
        time.sleep(0.01)
    assert threads.busy == 0
