"""The pace of a peer, measured over the last seconds: a fast start is no credit for a trickle afterwards."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable

T = TypeVar("T")

SENDER_BYTES_S = 4_096
"""Bytes per second of the slowest sender of a body."""
READER_BYTES_S = 1_024
"""Bytes per second of the slowest reader of a reply: a third of the rate of Opus."""
_SLOTS = 32
"""Parts of the window; bytes within one count as moved at once."""


class Pace:
    """The pace of one sender or reader. Only the time counts in which the service waits for it."""

    def __init__(self, window_s: float, least_bytes_s: int) -> None:
        self._window_s = window_s
        self._least = max(1, round(window_s * least_bytes_s))
        self._waited_s = 0.0
        self._since_s = 0.0  # up to here the peer was fast enough
        self._moved: deque[list[float]] = deque()
        self._moved_bytes = 0.0

    async def wait(self, step: Awaitable[T]) -> T:
        """Wait for the peer."""
        now = asyncio.get_running_loop().time
        started = now()
        try:
            async with asyncio.timeout(self._since_s + self._window_s - self._waited_s):
                return await step
        finally:
            self._waited_s += now() - started

    def moved(self, count: int) -> None:
        """Count bytes that the peer has sent or read."""
        if self._moved and self._waited_s - self._moved[-1][0] < self._window_s / _SLOTS:
            self._moved[-1][1] += count
        else:
            self._moved.append([self._waited_s, count])
        self._moved_bytes += count
        while self._moved_bytes - self._moved[0][1] >= self._least:
            self._moved_bytes -= self._moved.popleft()[1]
        if self._moved_bytes >= self._least:
            self._since_s = self._moved[0][0]
