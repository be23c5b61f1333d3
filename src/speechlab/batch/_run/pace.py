"""Pacing: a maximum of calls begun per second."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from speechlab.batch._plan.rows import CallResult, PlannedCall
    from speechlab.batch._run.window import Send


class Pace:
    """Evenly spaced times at which calls may begin.

    Args:
        rate: Calls per second.
    """

    def __init__(self, rate: float) -> None:
        self._gap_s = 1.0 / rate
        self._next = 0.0

    def reserve(self, count: int = 1) -> list[float]:
        """Return how long to wait for each of the next calls, in seconds from now."""
        now = time.monotonic()
        first = max(self._next, now)
        self._next = first + count * self._gap_s
        return [first - now + number * self._gap_s for number in range(count)]


def paced(send: Send, rate: float | None) -> Send:
    """Limit a way of sending to ``rate`` calls begun per second; None is no limit."""
    if rate is None:
        return send
    pace = Pace(rate)

    async def wait_and_send(call: PlannedCall) -> CallResult:
        await asyncio.sleep(pace.reserve()[0])
        return await send(call)

    return wait_and_send
