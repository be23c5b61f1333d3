"""Lanes: who waits for whom, and what is left when somebody leaves."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time

import pytest

from speechlab.service import EngineLane, FairTurns, ServedEngine, Threads
from support.clock import in_loop


def make(*, heavy: FairTurns | None = None, concurrency=4, queue_limit=8, is_heavy=False) -> EngineLane:
    entry = ServedEngine("one", "synthesizer", object, heavy=is_heavy)
    turns = heavy if is_heavy and heavy else FairTurns()
    return EngineLane(entry, Threads(), turns, concurrency=concurrency, queue_limit=queue_limit)


def numbers(count: int, seen: list[str], name: str):
    try:
        for number in range(count):
            time.sleep(0.01)
            seen.append(f"{name}{number}")
            yield number
    finally:
        seen.append(f"{name} closed")


@contextlib.asynccontextmanager
async def pieces_of(lane: EngineLane, make_pieces, *, whole=False):
    async with (
        lane.admit_request("tts") as admission,
        contextlib.aclosing(lane.iterate_pieces(admission, make_pieces, whole=whole)) as pieces,
    ):
        yield pieces


async def read(lane: EngineLane, make_pieces, *, whole=False) -> list[int]:
    async with pieces_of(lane, make_pieces, whole=whole) as pieces:
        return [piece async for piece in pieces]


async def use(lane: EngineLane, task):
    async with lane.admit_request("tts") as admission:
        return await lane.run_task(admission, task)


async def until(condition) -> None:
    for _ in range(1_000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError


@in_loop
async def test_syntheses_take_turns_and_whole_ones_do_not_mix():
    lane, seen = make(), []
    long, short = (lambda: numbers(10, seen, "long")), (lambda: numbers(2, seen, "short"))
    await asyncio.gather(read(lane, long), read(lane, short))
    assert seen.index("short1") < seen.index("long4")
    lane, seen = make(concurrency=2), []
    both = ((lambda name=name: numbers(4, seen, name)) for name in "ab")
    await asyncio.gather(*(read(lane, each, whole=True) for each in both))
    assert [item[0] for item in seen] == ["a"] * 5 + ["b"] * 5


@in_loop
async def test_heavy_engines_share_their_slots_and_light_ones_do_not():
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

    await asyncio.gather(use(lanes[0], work), use(lanes[1], work), use(lanes[2], light_done.set))
    assert most == 1


@pytest.mark.parametrize("whole", [False, True])
@in_loop
async def test_a_cancelled_request_frees_place_and_then_engine(whole):
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

    task = asyncio.create_task(read(lane, stuck, whole=whole))
    await until(begun.is_set)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert lane.admitted == 0
    assert not closed.is_set()
    follower = asyncio.create_task(use(lane, lambda: None))
    await asyncio.sleep(0.1)
    assert not follower.done()
    gate.set()
    await asyncio.wait_for(follower, 5)
    await until(closed.is_set)


@in_loop
async def test_cancelled_while_waiting_for_a_turn():
    lane, gate = make(is_heavy=True), threading.Event()
    first = asyncio.create_task(use(lane, lambda: gate.wait(10)))
    await asyncio.sleep(0.05)
    second = asyncio.create_task(use(lane, lambda: None))
    await asyncio.sleep(0.05)
    second.cancel()
    await asyncio.wait({second})
    gate.set()
    await first
    await asyncio.wait_for(use(lane, lambda: None), 5)
    assert lane.admitted == 0


@in_loop
async def test_an_engine_in_use_is_not_let_go():
    closed = []

    class Large:
        def close(self) -> None:
            closed.append(self)

    entry = ServedEngine("one", "synthesizer", Large, heavy=True)
    lane = EngineLane(entry, Threads(), FairTurns(), concurrency=1, queue_limit=2)
    assert not await lane.unload_if_idle(0)
    lane.get_or_create_engine()
    async with lane.admit_request("tts") as admission:
        await lane.run_task(admission, lambda: None)
        assert not await lane.unload_if_idle(0)
    assert not await lane.unload_if_idle(60)
    assert await lane.unload_if_idle(0)
    assert not lane.has_engine
    assert len(closed) == 1
    assert not await lane.unload_if_idle(0)
