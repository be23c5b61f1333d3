"""Simulated time: an event loop whose clock jumps to the next timer, and services that are asked on it."""

from __future__ import annotations

import asyncio
import math
import random
import selectors
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from speechlab.client import CallGroup
from speechlab.client._scheduling.pressure import AttemptEnd, End
from speechlab.client._scheduling.retry import Failure, ScheduledCall
from speechlab.client._scheduling.scheduler import Scheduler
from speechlab.client._scheduling.waiting import NotSentError, Patience
from speechlab.errors import APIConnectionError, RateLimitError, ServerError


class _Selector(selectors.DefaultSelector):
    """Waits for nothing; where the loop would wait, its time passes."""

    loop: SimulatedLoop

    def select(self, timeout=None):
        found = super().select(0)
        if not found and timeout is not None and timeout > 0:
            self.loop.now += timeout
        if not found and timeout is None:
            raise RuntimeError("everyone waits, and nothing will happen")
        return found


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop in which an hour takes no time."""

    def __init__(self):
        selector = _Selector()
        selector.loop = self
        self.now = 0.0
        super().__init__(selector)

    def time(self):
        return self.now


class SimulatedClock:
    """The clock of a simulated loop."""

    def __init__(self, loop):
        self._loop = loop

    def monotonic(self):
        return self._loop.now

    def time(self):
        return self._loop.now

    async def sleep(self, seconds):
        await asyncio.sleep(seconds)


def failure(status, retry_after_s=None):
    """The failure that a status stands for; 0: no connection; None: it was closed unanswered."""
    if status is None:
        return Failure(APIConnectionError("hung up"), sent=True)
    if not status:
        return Failure(APIConnectionError("connection refused"))
    kind = RateLimitError if status == 429 else ServerError
    error = kind("no", status=status, retry_after_s=retry_after_s)
    return Failure(error, status=status, retry_after_s=retry_after_s)


@dataclass
class SimulatedService:
    """A service: ``judge`` decides by the time and what it has seen whether an attempt fails."""

    judge: Any
    latency_s: float = 0.5
    refusal_s: float = 0.005
    rng: random.Random = field(default_factory=lambda: random.Random(1))
    active: int = 0
    most_active: int = 0
    log: list[tuple[float, int]] = field(default_factory=list)
    """Of each attempt the time at which it was judged, and the status."""

    async def ask(self):
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self.refusal_s)
        found = self.judge(self, loop.time())
        self.log.append((loop.time(), 200 if found is None else found.status or 0))
        if found is not None:
            return found
        self.active += 1
        self.most_active = max(self.most_active, self.active)
        try:
            await asyncio.sleep(self.latency_s * self.rng.uniform(0.5, 1.5))
        finally:
            self.active -= 1
        return None

    @property
    def statuses(self):
        return Counter(status for _, status in self.log)


def at_once(most, retry_after_s=None):
    """Refuse what goes beyond so many at once."""
    return lambda service, now: failure(429, retry_after_s) if service.active >= most else None


def quota(calls, window_s, *, header=True):
    """Allow so many calls in each window of time."""
    used = Counter()

    def judge(service, now):
        window = int(now // window_s)
        if used[window] < calls:
            used[window] += 1
            return None
        return failure(429, math.ceil((window + 1) * window_s - now) if header else None)

    return judge


def bucket(rate, size, *, header):
    """Allow so many calls a second, and ``size`` at first or after a rest; the header is in whole seconds."""
    level, filled = float(size), 0.0

    def judge(service, now):
        nonlocal level, filled
        level, filled = min(size, level + (now - filled) * rate), now
        if level >= 1:
            level -= 1
            return None
        return failure(429, math.ceil((1 - level) / rate) if header else None)

    return judge


def down(begin, end, status=0):
    """Fail for a time."""
    return lambda service, now: failure(status) if begin <= now < end else None


def at_random(share, status):
    """Fail a share of the attempts."""
    return lambda service, now: failure(status) if service.rng.random() < share else None


@dataclass
class Simulation:
    """How calls went."""

    took_s: float
    outcomes: dict[int, str]
    attempts: Counter[int]
    scheduler: Scheduler

    @property
    def counts(self):
        return dict(Counter(self.outcomes.values()))


def simulate(service, calls, *, patience=None, single=False, ceiling=16, rate=None, seed=1):
    """Make calls as a batch does (or each for itself, ``single``) until all have ended or the service is lost."""
    loop = SimulatedLoop()
    scheduler = Scheduler(SimulatedClock(loop), random.Random(seed))
    patience = patience or Patience(600.0, 3600.0, 60.0, 10, spared=True)
    group = None if single else CallGroup(ceiling, rate, patience)
    outcomes, attempts = {}, Counter()

    async def call(number):
        scheduled = ScheduledCall(scheduler, patience, ceiling, group, free=False)
        while True:
            try:
                place = await scheduled.wait_for_place()
            except NotSentError as error:
                return "lost" if error.lost else "not sent"
            attempts[number] += 1
            failed = await service.ask()
            if failed is None:
                place.end(AttemptEnd(End.OK))
                return "ok"
            if scheduled.end_attempt_and_compute_delay(failed, place) is None:
                return "lost" if scheduled.lost else "error"

    async def main():
        feed = iter(range(calls))

        async def work():
            for number in feed:
                outcomes[number] = await call(number)
                if outcomes[number] == "lost" and group is not None:
                    return

        workers = calls if single else 4 * ceiling
        async with asyncio.timeout(100_000.0):
            await asyncio.gather(*(work() for _ in range(workers)))
        return loop.time()

    try:
        took_s = loop.run_until_complete(main())
    finally:
        loop.close()
    return Simulation(took_s, outcomes, attempts, scheduler)
