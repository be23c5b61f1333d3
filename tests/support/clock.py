"""Time that passes only by sleeping, and waiting for what other threads do."""

from __future__ import annotations

import asyncio
import time
from typing import Any


class FakeClock:
    """Time that passes only by sleeping."""

    def __init__(self):
        self.now = 1000.0
        self.slept = []

    def monotonic(self):
        return self.now

    def time(self):
        return 1_800_000_000.0 + self.now

    async def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


class Half:
    """Jitter that is always in the middle."""

    def uniform(self, a, b):
        return (a + b) / 2


def eventually(condition: Any, seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())
