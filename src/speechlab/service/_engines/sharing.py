"""Sharing of engines: keys take turns, and the short requests of a key come before its long ones.

The next key is the one that has used the engine least, in seconds of its time. A key that returns after a pause
starts at the level of the others, with neither credit nor debt from the past. Among the requests of one key, the next
is the one that has used the engine least. Its wait is subtracted from its use, so that no request waits for ever.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

# Seconds that an engine waits for the next piece of the key with the least use, before it serves another key.
_RETURN_WAIT_S = 0.01
# Seconds of use above which requests count as equal, so that long ones continue too.
_EQUAL_USE_S = 5.0


@dataclass(slots=True, eq=False)
class EngineUse:
    """The use of an engine by one request, and its owner."""

    owner: str = ""
    size_s: float = 0.0
    had_s: float = 0.0
    began: float = 0.0


class FairTurns:
    """Turns at one engine, or at several that share the processor; used from the event loop only."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: dict[EngineUse, asyncio.Future[None]] = {}
        self._running: EngineUse | None = None
        self._used: dict[str, float] = {}
        self._served: dict[str, int] = {}
        self._order = itertools.count(1)
        self._front = 0.0  # most engine time of a key when its turn began; new keys start from here
        self._expected: tuple[str, asyncio.TimerHandle] | None = None
        self.moved = clock()
        """Time of the last turn, or of the last step within one."""

    async def wait_for_turn(self, claim: EngineUse) -> None:
        """Wait for the claim's turn; one request has it at a time."""
        if not self._is_owner_active(claim.owner):
            self._used[claim.owner] = max(self._used.get(claim.owner, 0.0), self._front)
        if self._expected is not None and self._expected[0] == claim.owner:
            self._cancel_expected_return()
        claim.began = self._clock()
        granted = self._waiting[claim] = asyncio.get_running_loop().create_future()
        self._grant_turn_if_free()
        try:
            await granted
        except asyncio.CancelledError:
            if self._waiting.pop(claim, None) is None:
                self.end_turn(claim)
            else:
                self._forget_owner_if_idle(claim.owner)
            raise

    @property
    def is_contended(self) -> bool:
        """Whether a request waits."""
        return bool(self._waiting)

    async def yield_turn(self, claim: EngineUse) -> None:
        """Interrupt a turn while another request comes first; returns at once if none does."""
        self.end_turn(claim, returning=True)
        await self.wait_for_turn(claim)

    def end_turn(self, claim: EngineUse, *, returning: bool = False) -> None:
        self.moved = self._clock()
        spent = self.moved - claim.began
        claim.had_s += spent
        self._used[claim.owner] += spent
        self._running = None
        # Between two pieces a request is not waiting, and would always come after another key.
        if self._waiting and self._used[claim.owner] < min(
            self._used[waiting.owner] for waiting in self._waiting
        ):
            self._cancel_expected_return()
            later = asyncio.get_running_loop().call_later(_RETURN_WAIT_S, self._on_return_timeout)
            self._expected = (claim.owner, later)
        self._forget_owner_if_idle(claim.owner)
        if not returning:
            self._grant_turn_if_free()

    def _on_return_timeout(self) -> None:
        self._expected = None
        self._grant_turn_if_free()

    def _cancel_expected_return(self) -> None:
        if self._expected is not None:
            self._expected[1].cancel()
            self._expected = None

    def _grant_turn_if_free(self) -> None:
        # A cancelled one is about to leave.
        present = [claim for claim, granted in self._waiting.items() if not granted.done()]
        if self._running is not None or self._expected is not None or not present:
            return
        now = self._clock()
        chosen = self._running = min(present, key=lambda claim: self._rank_use(claim, now))
        self._front = max(self._front, self._used[chosen.owner])
        self._served[chosen.owner] = next(self._order)
        chosen.began = self.moved = now
        self._waiting.pop(chosen).set_result(None)

    def _rank_use(self, claim: EngineUse, now: float) -> tuple[float, int, float]:
        owner = claim.owner
        return (
            self._used[owner],
            self._served.get(owner, 0),
            min(claim.had_s, _EQUAL_USE_S) - (now - claim.began),
        )

    def _is_owner_active(self, owner: str) -> bool:
        is_running = self._running is not None and self._running.owner == owner
        return is_running or any(claim.owner == owner for claim in self._waiting)

    def _forget_owner_if_idle(self, owner: str) -> None:
        """Forget a key without requests whose use is not above that of the others."""
        if not self._is_owner_active(owner) and self._used.get(owner, 0.0) <= self._front:
            self._used.pop(owner, None)
            self._served.pop(owner, None)


@dataclass(slots=True)
class _Waiter:
    size_s: float
    since: float
    granted: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Places:
    """Limit of concurrent requests of each key; the shortest waiting one is next."""

    def __init__(self, per_key: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_key = per_key
        self._clock = clock
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, list[_Waiter]] = {}

    async def wait_for_place(self, claim: EngineUse) -> None:
        """Wait for a place; each second of waiting counts as if the request were a second shorter."""
        if self._held[claim.owner] < self._per_key:
            self._held[claim.owner] += 1
            return
        waiter = _Waiter(claim.size_s, self._clock())
        waiting = self._waiting.setdefault(claim.owner, [])
        waiting.append(waiter)
        try:
            await waiter.granted
        except asyncio.CancelledError:
            if waiter in waiting:
                waiting.remove(waiter)
            else:
                self.release_place(claim)
            raise

    def release_place(self, claim: EngineUse) -> None:
        """Release a place, or pass it to the next request."""
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
