"""How engines are shared: keys in turn, and of one key the short before the long.

Whoever has used an engine least is next, by seconds of its time. A key that comes after a pause begins where the
others are, so that it can neither save time up nor be made to pay for a quiet past. Among the requests of one key the
one that has had least of the engine is next; waiting counts against what it has had, so that none starves.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

_RETURN_S = 0.01
"""How long an engine waits for the next piece of a key that has had least, rather than begin one of another."""
_MOST_S = 5.0
"""Beyond this it does not matter how much of the engine a request has had: the long ones go on too."""


@dataclass(slots=True, eq=False)
class Claim:
    """What one request has had of an engine, and whose it is.

    Attributes:
        owner: Id of its key.
        size_s: About how long it will take.
        had_s: Seconds of the engine's time that it has had.
        began: When it got the engine, or began to wait for it.
    """

    owner: str = ""
    size_s: float = 0.0
    had_s: float = 0.0
    began: float = 0.0


class FairTurns:
    """Turns at one engine, or at several that share the processor; used from the event loop only.

    Args:
        capacity: How many engines may work at the same moment.
        clock: Returns seconds that never go back.
    """

    def __init__(self, capacity: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._capacity = capacity
        self._clock = clock
        self._waiting: dict[Claim, tuple[Hashable, asyncio.Future[None]]] = {}
        self._running: dict[Claim, Hashable] = {}
        self._used: dict[str, float] = {}
        self._served: dict[str, int] = {}
        self._order = itertools.count(1)
        self._front = 0.0  # where the keys are that are served now
        self._expected: tuple[str, asyncio.TimerHandle] | None = None

    async def take(self, claim: Claim, engine: Hashable) -> None:
        """Wait until it is the claim's turn at an engine, of which one request at a time has the use."""
        if not self._is_active(claim.owner):
            self._used[claim.owner] = max(self._used.get(claim.owner, 0.0), self._front)
        if self._expected is not None and self._expected[0] == claim.owner:
            self._expect_nobody()
        claim.began = self._clock()
        granted = asyncio.get_running_loop().create_future()
        self._waiting[claim] = (engine, granted)
        self._grant()
        try:
            await granted
        except asyncio.CancelledError:
            if self._waiting.pop(claim, None) is None:
                self.release(claim)
            else:
                self._forget(claim.owner)
            raise

    @property
    def contended(self) -> bool:
        """Whether anybody waits."""
        return bool(self._waiting)

    async def give_way(self, claim: Claim, engine: Hashable) -> None:
        """Interrupt a turn while somebody else comes first; at once if nobody does."""
        self.release(claim, returning=True)
        await self.take(claim, engine)

    def release(self, claim: Claim, *, returning: bool = False) -> None:
        """End a turn.

        Args:
            claim: Whose.
            returning: It takes the next one at once, so that nobody needs to be let in before.
        """
        spent = self._clock() - claim.began
        claim.had_s += spent
        self._used[claim.owner] += spent
        del self._running[claim]
        # Between two pieces a request is not among those that wait, and would always come after another key.
        if self._waiting and self._used[claim.owner] < min(
            self._used[other.owner] for other in self._waiting
        ):
            self._expect_nobody()
            later = asyncio.get_running_loop().call_later(_RETURN_S, self._not_returned)
            self._expected = (claim.owner, later)
        self._forget(claim.owner)
        if not returning:
            self._grant()

    def _not_returned(self) -> None:
        self._expected = None
        self._grant()

    def _expect_nobody(self) -> None:
        if self._expected is not None:
            self._expected[1].cancel()
            self._expected = None

    def _grant(self) -> None:
        while len(self._running) < self._capacity and self._expected is None:
            busy, now = set(self._running.values()), self._clock()
            free = [
                claim
                for claim, (engine, granted) in self._waiting.items()
                if engine not in busy and not granted.done()  # cancelled, and about to leave
            ]
            if not free:
                return
            chosen = min(free, key=lambda claim: self._rank(claim, now))
            engine, granted = self._waiting.pop(chosen)
            self._running[chosen] = engine
            self._front = max(self._front, self._used[chosen.owner])
            self._served[chosen.owner] = next(self._order)
            chosen.began = now
            granted.set_result(None)

    def _rank(self, claim: Claim, now: float) -> tuple[float, int, float]:
        owner = claim.owner
        return self._used[owner], self._served.get(owner, 0), min(claim.had_s, _MOST_S) - (now - claim.began)

    def _is_active(self, owner: str) -> bool:
        return any(claim.owner == owner for claim in itertools.chain(self._waiting, self._running))

    def _forget(self, owner: str) -> None:
        """Forget a key that has nothing here and is not ahead of the others."""
        if not self._is_active(owner) and self._used.get(owner, 0.0) <= self._front:
            self._used.pop(owner, None)
            self._served.pop(owner, None)


@dataclass(slots=True)
class _Queued:
    size_s: float
    since: float
    granted: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Places:
    """How many requests of each key are under way at once; the shortest that waits is next.

    Args:
        per_key: Maximum for one key.
        clock: Returns seconds that never go back.
    """

    def __init__(self, per_key: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_key = per_key
        self._clock = clock
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, list[_Queued]] = {}

    async def take(self, claim: Claim) -> None:
        """Wait for a place; each second of waiting counts as if the request were a second shorter."""
        if self._held[claim.owner] < self._per_key:
            self._held[claim.owner] += 1
            return
        waiter = _Queued(claim.size_s, self._clock())
        waiting = self._waiting.setdefault(claim.owner, [])
        waiting.append(waiter)
        try:
            await waiter.granted
        except asyncio.CancelledError:
            if waiter in waiting:
                waiting.remove(waiter)
            else:
                self.release(claim)
            raise

    def release(self, claim: Claim) -> None:
        """Give a place back, or on to the next."""
        waiting, now = self._waiting.get(claim.owner, []), self._clock()
        if present := [waiter for waiter in waiting if not waiter.granted.done()]:
            chosen = min(present, key=lambda waiter: waiter.size_s - (now - waiter.since))
            waiting.remove(chosen)
            chosen.granted.set_result(None)
            return
        if not waiting:
            self._waiting.pop(claim.owner, None)
        self._held[claim.owner] -= 1
        if not self._held[claim.owner]:
            del self._held[claim.owner]
