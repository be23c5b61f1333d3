"""Time, replaceable in tests."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Source of time."""

    def monotonic(self) -> float:
        """Seconds that only go forward."""

    def time(self) -> float:
        """Seconds since 1970, for the dates in HTTP headers."""

    async def sleep(self, seconds: float) -> None:
        """Wait, in seconds."""

    def wait(self, seconds: float) -> None:
        """Wait in this thread, in seconds: for functions in place of a service."""


class SystemClock:
    """The machine's clocks, without a wrapping call: each request reads them a dozen times."""

    monotonic = staticmethod(time.monotonic)
    wait = staticmethod(time.sleep)
    time = staticmethod(time.time)
    sleep = staticmethod(asyncio.sleep)


# Seconds for which one task works without a turn for others.
_TURN_S = 0.02


class LoopTurns:
    """Turns of other tasks and timeouts, which what comes as fast as it is read would leave none."""

    def __init__(self) -> None:
        self._given_at = time.monotonic()

    async def yield_to_loop_if_due(self) -> None:
        """Let others run, if none could for a while."""
        if time.monotonic() - self._given_at > _TURN_S:
            await asyncio.sleep(0)
            self._given_at = time.monotonic()
