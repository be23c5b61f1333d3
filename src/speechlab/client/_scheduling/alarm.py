"""The alarm that wakes a scheduler at a given time."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING

from speechlab.client._scheduling.waiting import running_loop

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from speechlab.client._clock import Clock


class Alarm:
    """The alarm of one event loop with waiting calls: one task, which exists only while a time is set."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, look: Callable[[], None]) -> None:
        self.loop = loop
        self.waiters = 0
        self._clock, self._look = clock, look
        self._when = math.inf
        self._task: asyncio.Task[None] | None = None

    def set(self, when: float) -> None:
        """Wake the scheduler at that time, unless an earlier time is set; called with the scheduler's lock held."""
        if when >= self._when:
            return
        self._when = when
        if running_loop() is self.loop:
            self._start()
            return
        with suppress(RuntimeError):  # the loop is closed, and no call waits on it any more
            self.loop.call_soon_threadsafe(self._start)

    def stop(self) -> None:
        """Cancel the alarm; called with the lock held, on the loop."""
        self._when = math.inf
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _start(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self.waiters:
            self._task = self.loop.create_task(self._sleep(self._when))

    async def _sleep(self, when: float) -> None:
        while (seconds := when - self._clock.monotonic()) > 0:
            await self._clock.sleep(seconds)
        self._when, self._task = math.inf, None
        self._look()
