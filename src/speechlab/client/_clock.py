"""Time, replaceable in tests, and turns of the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class LoopTurns:
    """Turns of other tasks and timeouts, which what comes as fast as it is read would leave none."""

    _given_at: float = field(default_factory=time.monotonic)

    async def yield_to_loop_if_due(self) -> None:
        """Let others run, if none could for a while."""
        if time.monotonic() - self._given_at > _TURN_S:
            await asyncio.sleep(0)
            self._given_at = time.monotonic()


# Seconds between two turns of a loop that waits for an interrupt.
_WAKE_S = 0.2
_NO_CONTEXT = contextlib.nullcontext()


def wake_for_interrupts() -> contextlib.AbstractContextManager[None]:
    """Wake a kernel's loop regularly, because IPython's signal handler does not wake it on an interrupt."""
    if "ipykernel" not in sys.modules or threading.current_thread() is not threading.main_thread():
        return _NO_CONTEXT
    return _keep_loop_awake(asyncio.get_running_loop())


@contextlib.contextmanager
def _keep_loop_awake(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    next_turn: asyncio.TimerHandle | None = None

    def wake() -> None:
        nonlocal next_turn
        next_turn = loop.call_later(_WAKE_S, wake)

    wake()
    try:
        yield
    finally:
        if next_turn is not None:
            next_turn.cancel()
