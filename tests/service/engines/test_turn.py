"""A turn at an engine: what the ledger learns of it, and what a failure becomes."""

from __future__ import annotations

import asyncio

import pytest

from speechlab.errors import EngineError, InvalidRequestError
from speechlab.service import ServedEngine, ServiceConfig
from speechlab.service._accounts.ledger import Counters
from speechlab.service._accounts.metering import Metering
from speechlab.service._engines.lanes import EngineLane
from speechlab.service._engines.sharing import FairTurns
from speechlab.service._engines.threads import Threads
from speechlab.service._engines.turn import Turn
from speechlab.service._faults import Fault
from speechlab.service._keys import Principal
from support.clock import in_loop


class Rows(list):
    """Stands for a ledger."""

    queue_row = list.append


def make_turn(queue_limit: int = 4) -> tuple[Turn, Rows]:
    entry = ServedEngine("one", "synthesizer", object, heavy=False)
    lane = EngineLane(entry, Threads(), FairTurns(), concurrency=1, queue_limit=queue_limit)
    rows = Rows()
    meter = Metering(ServiceConfig(), Counters(), rows).build_meter("tts", Principal("key-1"))
    return Turn(lane, meter), rows


def pieces(closed: list[str], error: Exception | None = None):
    try:
        yield b"one"
        if error is not None:
            raise error
        yield b"two"
    finally:
        closed.append("closed")


async def speak(turn: Turn, closed: list[str], error: Exception | None = None) -> list[bytes]:
    async with turn:
        spoken = []
        async for piece in turn.iterate_pieces(lambda: pieces(closed, error)):
            turn.meter.row.audio_bytes += len(piece)
            spoken.append(piece)
    return spoken


@in_loop
async def test_a_turn_that_ends_well():
    turn, rows = make_turn()
    assert await speak(turn, closed := []) == [b"one", b"two"]
    turn.meter.close()
    assert [(row.status, row.audio_bytes) for row in rows] == [("completed", 6)]
    assert closed == ["closed"]
    assert turn.lane.admitted == 0
    assert "engine;dur=" in turn.format_server_timing()


@pytest.mark.parametrize(
    ("error", "status", "said", "rows_left"),
    [
        (EngineError("no voice"), 500, "speech synthesis failed: no voice", ["partial_backend_error"]),
        (KeyError("a secret text"), 500, "speech synthesis failed: KeyError", ["partial_backend_error"]),
        (InvalidRequestError("not such a text"), 400, "not such a text", []),
        (Fault("ErrOverloaded", "later"), 503, "later", ["cancelled"]),
    ],
)
@in_loop
async def test_a_failure_becomes_a_reply(error, status, said, rows_left):
    turn, rows = make_turn()
    with pytest.raises(Fault) as caught:
        await speak(turn, [], error)
    assert (caught.value.status, caught.value.error) == (status, said)
    turn.meter.close()
    assert [row.status for row in rows] == rows_left
    assert turn.lane.admitted == 0


@in_loop
async def test_a_failure_before_the_engine_is_asked_leaves_no_row():
    turn, rows = make_turn()
    with pytest.raises(Fault, match="speech synthesis failed"):
        async with turn:
            raise EngineError("not even asked")
    assert not turn.reached
    turn.meter.close()
    assert rows == []


@in_loop
async def test_a_full_queue_refuses_before_the_turn_begins():
    turn, rows = make_turn(queue_limit=1)
    async with turn.lane.admit_request("tts", "key-1"):
        with pytest.raises(Fault, match="queue") as caught:
            await speak(turn, [])
    assert caught.value.status == 429
    assert not turn.reached
    turn.meter.close()
    assert rows == []


@in_loop
async def test_a_cancelled_turn_closes_the_engine_and_is_metered():
    turn, rows = make_turn()
    closed: list[str] = []
    begun = asyncio.Event()

    async def stay() -> None:
        async with turn:
            async for _ in turn.iterate_pieces(lambda: pieces(closed)):
                begun.set()
                await asyncio.sleep(60)

    task = asyncio.create_task(stay())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    turn.meter.close()
    assert [row.status for row in rows] == ["cancelled"]
    for _ in range(200):
        if closed:
            break
        await asyncio.sleep(0.01)
    assert closed == ["closed"]
    assert turn.lane.admitted == 0
