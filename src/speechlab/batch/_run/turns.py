"""The turns of several batches: their calls of one row follow each other, so that time is the same for all."""

from __future__ import annotations

import asyncio
import heapq
import math
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from speechlab.batch._plan.plan import Plan
    from speechlab.client import CallGroup

# Seconds that the others wait for the first call of a batch that could begin.
_FIRST_CALL_S = 0.05


class TurnPlace(NamedTuple):
    """The place of a call in the order of all calls."""

    row: float  # as a share of its table
    rank: int  # among the calls of this row, another batch first each time
    number: int


class CallTurns:
    """The order in which the calls of several batches begin, and how many are under way at once.

    The call of the lowest row begins first, and none begins many rows ahead of another. Used on one event loop.
    """

    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency
        self._numbers = count()
        self._waiting: list[tuple[TurnPlace, BatchTurns, asyncio.Future[None]]] = []
        self._under_way: dict[TurnPlace, BatchTurns] = {}
        self._batches: list[BatchTurns] = []
        self._ahead = concurrency
        self._row = 0.0

    def add_batch(self, plan: Plan, most_at_once: int) -> BatchTurns:
        """Add a batch, for whose first call the others wait; its system works on so many at once, 0 if unknown."""
        rows = _number_rows(plan)
        self._batches.append(BatchTurns(self, len(self._batches), rows, max(len(plan.rows), 1)))
        # A system that works on few at once would fall behind the others, which would gain nothing by that.
        self._ahead = min(self._ahead, most_at_once or self._concurrency)
        self._row = max(self._row, 1 / self._batches[-1].length)
        return self._batches[-1]

    def make_room(self, concurrency: int) -> None:
        """Let more calls be under way, for a system that gathers them; the others may then be as far ahead."""
        if concurrency > self._concurrency:
            self._concurrency = self._ahead = concurrency

    @asynccontextmanager
    async def take_turn(self, batch: BatchTurns, row: int) -> AsyncIterator[None]:
        """Wait for the turn of a call, which lasts as long as the block."""
        rank = (batch.number - row) % len(self._batches)
        place = TurnPlace(row / batch.length, rank, next(self._numbers))
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (place, batch, turn))
        try:
            self.give_turns()
            await turn
            yield
        finally:
            turn.cancel()
            self._under_way.pop(place, None)
            asyncio.get_running_loop().call_soon(self.give_turns)  # after the batch asks for its next turn

    def give_turns(self) -> None:
        """Let as many calls begin as may be under way; calls that wait for a retry hold nobody up."""
        if any(batch.awaited for batch in self._batches):
            return
        repeating = {batch: batch.group.repeating for batch in self._batches if batch.group is not None}
        most = self._concurrency + sum(repeating.values())
        ahead = min(self._ahead, math.ceil(self._concurrency / len(self._batches))) - 0.5
        while self._waiting and len(self._under_way) < most:
            place, batch, turn = self._waiting[0]
            slowest = [other.row for other, its in self._under_way.items() if not repeating.get(its)]
            if place.row > min(slowest, default=place.row) + ahead * self._row:
                return
            heapq.heappop(self._waiting)
            if not turn.done():
                self._under_way[place] = batch
                turn.set_result(None)


def _number_rows(plan: Plan) -> dict[str, int]:
    """Return the first row of each call, by its key."""
    return {key: row for row, key in reversed(list(enumerate(plan.rows))) if isinstance(key, str)}


@dataclass(eq=False)
class BatchTurns:
    """The turns of one batch."""

    turns: CallTurns
    number: int
    rows: Mapping[str, int]
    length: int
    group: CallGroup | None = None
    awaited: bool = True  # the others wait until it can begin, or has ended

    def begin(self, group: CallGroup) -> None:
        """Let the others begin with the first call of this batch, or soon if others make its calls."""
        self.group = group
        self.turns.make_room(group.concurrency)
        group.on_repeat.add(self.turns.give_turns)
        asyncio.get_running_loop().call_later(_FIRST_CALL_S, self._join)

    def _join(self) -> None:
        self.awaited = False
        self.turns.give_turns()

    def end(self) -> None:
        """Take no more turns."""
        if self.group is not None:
            self.group.on_repeat.discard(self.turns.give_turns)
        self._join()

    def take_turn(self, key: str) -> AbstractAsyncContextManager[None]:
        """Wait for the turn of a call, which lasts as long as the block."""
        self.awaited = False
        return self.turns.take_turn(self, self.rows[key])


@dataclass(eq=False)
class LeaseTurns:
    """The turns of one batch among others whose calls the workers of a cluster make: none is a lease ahead."""

    batches: list[LeaseTurns]
    rows: Mapping[str, int]
    length: int
    reached: float = 0.0  # the last row that was given out, as a share of the table
    notify: Callable[[], object] | None = None
    has_ended: bool = False

    @classmethod
    def of_plan(cls, batches: list[LeaseTurns], plan: Plan) -> LeaseTurns:
        """Return the turns of another batch, and add them to those of all."""
        batches.append(cls(batches, _number_rows(plan), max(len(plan.rows), 1)))
        return batches[-1]

    def is_next(self) -> bool:
        """Return whether no other batch is behind this one."""
        return all(other.has_ended or self.reached <= other.reached for other in self.batches)

    def count_lease(self, keys: Iterable[str]) -> None:
        """Count a lease of these calls, after which it is the turn of others."""
        self.reached = max(self.reached, *((self.rows[key] + 1) / self.length for key in keys))
        self._notify_others()

    def end(self) -> None:
        """Take no more turns."""
        self.has_ended = True
        self._notify_others()

    def _notify_others(self) -> None:
        for other in self.batches:
            if other is not self and other.notify is not None:
                other.notify()
