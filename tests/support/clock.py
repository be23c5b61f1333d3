"""Time that passes only by sleeping, and waiting for what other threads do."""

import asyncio
import contextlib
import time
from collections.abc import Iterator
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

    def wait(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


class SpeechClock(FakeClock):
    """Time that passes only while a function waits for speech, and not while a client waits for its turn."""

    async def sleep(self, seconds):
        await asyncio.sleep(seconds)


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


@contextlib.contextmanager
def ends_within(seconds: float) -> Iterator[None]:
    """A block that must not hang: a bound far above its usual time, and far below the wait that it must not make."""
    began = time.monotonic()
    yield
    took_s = time.monotonic() - began
    assert took_s < seconds, f"took {took_s:.1f} s, and may take {seconds:g} s at most"
