"""Waiting calls, their groups, queues and places, and the alarm that wakes them."""

from __future__ import annotations

import asyncio
import heapq
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from speechlab.client._scheduling.pressure import AttemptEnd, End, Pressure

if TYPE_CHECKING:
    from speechlab.client._clock import Clock


@dataclass(frozen=True, slots=True)
class Patience:
    """Limits of the retries of calls."""

    call_s: float  # of retries while the service says "later" to the call alone; pauses do not count
    later_s: float  # of waiting for a service that says "later" to all calls
    gone_s: float  # of waiting for a service that cannot be reached
    failures: int  # retries after failures of its own
    retries: int | None = None  # retries for any reason; None sets no further limit
    spared: bool = False  # failures count against the service, not the call, while no other call succeeds


class CallGroup:
    """Calls with a common limit, rate and patience, which end together."""

    def __init__(self, concurrency: int, rate: float | None, patience: Patience) -> None:
        self.concurrency = concurrency
        self.limit_rate(rate)
        self.patience = patience
        self.stopped = False
        self.repeating = 0
        """Calls that wait for a retry and leave their share of ``concurrency`` to others."""
        self.on_repeat: set[Callable[[], None]] = set()
        """Called when ``repeating`` increases, on the loop of the call."""
        self.schedulers: set[PlaceKeeper] = set()

    def limit_rate(self, rate: float | None) -> None:
        """Set the maximum of attempts started per second; it applies from the next attempt on."""
        self.gap_s = 0.0 if rate is None else 1.0 / rate

    def change_repeating_count(self, change: int) -> None:
        """Count a call that starts (1) or ends (-1) its wait for a retry."""
        self.repeating += change
        for listener in tuple(self.on_repeat) if change > 0 else ():
            listener()

    def stop(self) -> None:
        """Send no more calls: waiting calls raise NotSentError, and calls under way continue."""
        self.stopped = True
        for scheduler in tuple(self.schedulers):
            scheduler.stop_group(self)

    def end(self) -> None:
        """Stop, and remove the group from the schedulers."""
        self.stop()
        for scheduler in tuple(self.schedulers):
            scheduler.forget_group(self)

    def find_pause(self) -> tuple[str, float] | None:
        """Return the reason for which all calls wait, and the remaining seconds; None if they do not wait."""
        pauses = [paused for scheduler in tuple(self.schedulers) if (paused := scheduler.find_pause())]
        return max(pauses, key=lambda one: one[1]) if pauses else None


class NotSentError(Exception):
    """A call will not be sent, or not again: the service is ``lost`` to all calls, or its run was stopped."""

    def __init__(self, reason: str, *, lost: bool = False, stopped: bool = False) -> None:
        super().__init__(reason)
        self.lost = lost
        self.stopped = stopped


@dataclass(eq=False, kw_only=True)
class WaitingCall:
    """The part of a call that decides when it is sent; times are those of the clock."""

    patience: Patience
    ceiling: int  # of concurrent attempts, of all calls with the same value or of the group
    number: int  # in the queue; the lowest is first
    began: float
    group: CallGroup | None = None
    light: bool = False  # its attempts need no place, and wait only for the end of a pause
    earliest: float = -math.inf
    deadline: float | None = None
    lost: bool = False  # it ended because the service was given up

    @property
    def time_s(self) -> float:
        """Its whole timeout in seconds, rounded to hundredths."""
        return math.inf if self.deadline is None else round(self.deadline - self.began, 2)


@dataclass(eq=False, slots=True)
class Waiter:
    """One wait of a call, on its event loop."""

    call: WaitingCall
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[CallPlace]
    done: bool = False
    place: CallPlace | None = None

    def wake(self, problem: NotSentError | None = None) -> bool:
        """End the wait, with a place or a problem; False if its loop is closed."""
        if self.loop is find_running_loop():
            self._set_outcome(problem)
            return True
        try:
            self.loop.call_soon_threadsafe(self._set_outcome, problem)
        except RuntimeError:
            return False
        return True

    def _set_outcome(self, problem: NotSentError | None) -> None:
        if self.future.done():
            return
        if problem is not None:
            self.future.set_exception(problem)
        elif self.place is not None:
            self.future.set_result(self.place)


@dataclass(eq=False, slots=True)
class CallQueue:
    """Waiting calls with a common limit and rate."""

    ceiling: int
    gap_s: float = 0.0
    next_at: float = 0.0
    under_way: int = 0
    ready: list[tuple[int, Waiter]] = field(default_factory=list)

    def find_first(self) -> Waiter | None:
        """Return the call that has waited longest, among those still waiting."""
        while self.ready and self.ready[0][1].done:
            heapq.heappop(self.ready)
        return self.ready[0][1] if self.ready else None


# The queue of places that were taken back.
NO_QUEUE = CallQueue(0)


class PlaceKeeper(Protocol):
    """The part of a scheduler that groups and places use."""

    clock: Clock
    pressure: Pressure
    waiting: int
    answered_at: float

    @property
    def under_way(self) -> int:
        """Number of attempts that have a place."""

    def find_pause(self) -> tuple[str, float] | None:
        """Return the reason of the current pause, and its remaining seconds; None without a pause."""

    def stop_group(self, group: CallGroup) -> None:
        """End the waiting calls of a group at once."""

    def forget_group(self, group: CallGroup) -> None:
        """Drop the queue of a group that has ended."""

    def take_back_place(self, place: CallPlace, ended: AttemptEnd) -> None:
        """Take a place back, and learn from the end of its attempt."""

    def mark_streaming(self, place: CallPlace) -> None:
        """Note that the headers of a stream have come."""

    def send_ready_calls(self) -> None:
        """Send the calls that may be sent now."""


@dataclass(eq=False, slots=True)
class CallPlace:
    """Permission for one attempt, returned once with the end of the attempt; times are those of the clock."""

    scheduler: PlaceKeeper = field(repr=False)
    queue: CallQueue = field(repr=False)
    started: float
    loop: asyncio.AbstractEventLoop
    probe: bool  # of a pause
    concurrent: int = 1  # attempts under way at the start, its own included
    successes: int = 0  # of all calls by then
    given_back: bool = False
    idle_since: float | None = None  # since when its stream has had no waiting reader

    @classmethod
    def build_unscheduled(cls, scheduler: PlaceKeeper) -> CallPlace:
        """Return a place outside all schedulers, whose end is not reported."""
        now, loop = scheduler.clock.monotonic(), asyncio.get_running_loop()
        return cls(scheduler, NO_QUEUE, now, loop, probe=False, given_back=True)

    def end(self, ended: AttemptEnd) -> None:
        """Return the place, with the end of the attempt."""
        if not self.given_back:
            self.given_back = True
            self.scheduler.take_back_place(self, ended)

    def release(self, *, success: bool = False, throttled: bool = False) -> None:
        """Return the place after a success, after a refusal for overload, or without evidence."""
        end = End.OK if success else End.LATER if throttled else End.UNKNOWN
        self.end(AttemptEnd(end, crowded=throttled, reason="the service says that there is too much at once"))

    def mark_streaming(self) -> None:
        """Note that the headers of a stream have come: the place may now be taken back while nobody reads."""
        if not self.given_back:
            self.scheduler.mark_streaming(self)

    def set_reading(self, *, reading: bool) -> None:
        """Note that the reader of a stream waits for its next piece, or has received it."""
        self.idle_since = None if reading else self.scheduler.clock.monotonic()
        if not reading and self.scheduler.waiting:
            self.scheduler.send_ready_calls()


def find_running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs in this thread, or None."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Alarm:
    """The alarm of one event loop with waiting calls: one task, which exists only while a time is set."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, look: Callable[[], None]) -> None:
        self.loop = loop
        self.waiters = 0
        self._clock, self._look = clock, look
        self._when = math.inf
        self._task: asyncio.Task[None] | None = None

    def set_if_earlier(self, when: float) -> None:
        """Wake the scheduler at that time, unless an earlier time is set; called with the scheduler's lock held."""
        if when >= self._when:
            return
        self._when = when
        if find_running_loop() is self.loop:
            self._restart_task()
            return
        with suppress(RuntimeError):  # the loop is closed, and no call waits on it any more
            self.loop.call_soon_threadsafe(self._restart_task)

    def stop(self) -> None:
        """Cancel the alarm; called with the lock held, on the loop."""
        self._when = math.inf
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _restart_task(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self.waiters:
            self._task = self.loop.create_task(self._wake_at(self._when))

    async def _wake_at(self, when: float) -> None:
        while (seconds := when - self._clock.monotonic()) > 0:
            await self._clock.sleep(seconds)
        self._when, self._task = math.inf, None
        self._look()
