"""The number of calls at once, adapted to the answers.

Rate limits are not published, so the limit adapts: it grows by one in each round of successes, and shrinks by 0.7
when the service says 429, once for each round trip (a refusal of something that was sent before the last shrinking
tells nothing new). In simulated storms nothing was lost this way, where a fixed width with a few retries lost more
than half. All clients of a process that use one service with one key share one limiter, whatever their threads and
event loops.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from speechlab._platform import after_fork

if TYPE_CHECKING:
    from speechlab.client._clock import Clock

_START = 4.0
_SHRINK = 0.7
_TOKENS = 500
_RETRY_COST = 5


@dataclass(eq=False, slots=True)
class _Waiter:
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[None]
    ceiling: int
    admitted: bool = False


@dataclass(slots=True)
class Slot:
    """A place among the calls in flight; released once."""

    limit: CallLimit
    clock: Clock
    started: float
    released: bool = False

    def release(self, *, success: bool = False, throttled: bool = False) -> None:
        """Give the place back, and say how it went."""
        if not self.released:
            self.released = True
            now = self.clock.monotonic()
            self.limit.release(self.started, now, success=success, throttled=throttled)


class CallLimit:
    """The adaptive limit of one service with one key, and its quota of retries."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._limit = _START
        self._in_flight = 0
        self._shrunk_at = float("-inf")
        self._waiters: deque[_Waiter] = deque()
        self._tokens = _TOKENS

    @property
    def limit(self) -> float:
        """Calls at once that the service bears, as far as is known."""
        return self._limit

    @property
    def in_flight(self) -> int:
        """Calls being made now."""
        return self._in_flight

    async def acquire(self, ceiling: int, clock: Clock) -> Slot:
        """Wait for a place.

        Args:
            ceiling: Most calls at once that the caller allows.
            clock: Time.
        """
        loop = asyncio.get_running_loop()
        with self._lock:
            if not self._waiters and self._in_flight < min(int(self._limit), ceiling):
                self._in_flight += 1
                return Slot(self, clock, clock.monotonic())
            waiter = _Waiter(loop, loop.create_future(), ceiling)
            self._waiters.append(waiter)
        try:
            await waiter.future
        except BaseException:
            self._abandon(waiter)
            raise
        return Slot(self, clock, clock.monotonic())

    def _abandon(self, waiter: _Waiter) -> None:
        with self._lock:
            if waiter.admitted:  # admitted and cancelled at once: the place is free again
                self._in_flight -= 1
            else:
                self._waiters.remove(waiter)
            self._admit()

    def release(self, started: float, now: float, *, success: bool, throttled: bool) -> None:
        """Take a place back, and learn from how it went.

        Args:
            started: When the call was sent, in seconds of the caller's clock.
            now: The time, in seconds of the same clock.
            success: It succeeded.
            throttled: It was refused as too much.
        """
        with self._lock:
            if throttled and started >= self._shrunk_at:
                self._limit = max(1.0, self._limit * _SHRINK)
                self._shrunk_at = now
            elif success:
                # Only a limit that is in use proves anything about a higher one.
                if self._in_flight >= int(self._limit):
                    self._limit += 1.0 / self._limit
                self._tokens = min(_TOKENS, self._tokens + 1)
            self._in_flight -= 1
            self._admit()

    def _admit(self) -> None:
        while self._waiters:
            waiter = self._waiters[0]
            if self._in_flight >= min(int(self._limit), waiter.ceiling):
                return
            self._waiters.popleft()
            try:
                waiter.loop.call_soon_threadsafe(_wake, waiter.future)
            except RuntimeError:  # its loop is closed: nobody waits there any more
                continue
            waiter.admitted = True
            self._in_flight += 1

    def spend_retry(self) -> bool:
        """Take the cost of one retry from the quota, which successes refill; False if it is used up.

        When a service is down, this is what keeps thousands of calls from repeating themselves all at once.
        """
        with self._lock:
            if self._tokens < _RETRY_COST:
                return False
            self._tokens -= _RETRY_COST
            return True


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


_limits: dict[tuple[str, str, str], CallLimit] = {}
_limits_lock = threading.Lock()


def call_limit(base_url: str, key: str, service: str) -> CallLimit:
    """The one limit of this process for a service and key.

    Args:
        base_url: Where the service is.
        key: Fingerprint of the key.
        service: ``tts``, ``asr`` or ``translate``.
    """
    with _limits_lock:
        return _limits.setdefault((base_url.rstrip("/"), key, service), CallLimit())


@after_fork
def _forget_after_fork() -> None:
    # Another thread may have held a lock at the moment of the fork, and its calls are not the child's.
    global _limits_lock  # noqa: PLW0603
    _limits_lock = threading.Lock()
    _limits.clear()
