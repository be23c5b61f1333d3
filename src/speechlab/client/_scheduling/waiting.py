"""A call that waits, the queue that it waits in, and the place that it waits for."""

from __future__ import annotations

import asyncio
import heapq
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from speechlab.client._scheduling.pressure import End, Ended

if TYPE_CHECKING:
    from speechlab.client._clock import Clock
    from speechlab.client._scheduling.group import CallGroup
    from speechlab.client._scheduling.pressure import Pressure
    from speechlab.client._scheduling.retry import Patience


class NotSentError(Exception):
    """A call is not sent, or not again.

    Attributes:
        lost: Whether the service was given up, and not this call alone.
        stopped: Whether the call's run was stopped.
    """

    def __init__(self, reason: str, *, lost: bool = False, stopped: bool = False) -> None:
        super().__init__(reason)
        self.lost = lost
        self.stopped = stopped


@dataclass(eq=False, kw_only=True)
class WaitingCall:
    """A call, as far as it matters for when it is sent.

    Attributes:
        patience: How long it goes on.
        ceiling: Most attempts at once, of all calls that say the same.
        number: The lower, the sooner it is its turn.
        began: When it began to wait, in seconds of the clock.
        group: The group that it belongs to, if any; then its ceiling counts.
        light: Whether its attempts need no place, and only heed a pause.
        earliest: When it may be sent again.
        deadline: When its time is up; nothing is waited for that would end later.
        lost: Whether it was given up because the service was.
    """

    patience: Patience
    ceiling: int
    number: int
    began: float
    group: CallGroup | None = None
    light: bool = False
    earliest: float = -math.inf
    deadline: float | None = None
    lost: bool = False

    @property
    def time_s(self) -> float:
        """Seconds that it has in all, to the hundredth."""
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
        if self.loop is running_loop():
            self._tell(problem)
            return True
        try:
            self.loop.call_soon_threadsafe(self._tell, problem)
        except RuntimeError:
            return False
        return True

    def _tell(self, problem: NotSentError | None) -> None:
        if self.future.done():
            return
        if problem is not None:
            self.future.set_exception(problem)
        elif self.place is not None:
            self.future.set_result(self.place)


@dataclass(eq=False, slots=True)
class CallQueue:
    """Calls that wait under one ceiling and one rate."""

    ceiling: int
    gap_s: float = 0.0
    next_at: float = 0.0
    under_way: int = 0
    ready: list[tuple[int, Waiter]] = field(default_factory=list)

    def first(self) -> Waiter | None:
        """The call that has waited longest, of those that still wait."""
        while self.ready and self.ready[0][1].done:
            heapq.heappop(self.ready)
        return self.ready[0][1] if self.ready else None


NOWHERE = CallQueue(0)
"""The queue of a place that was taken back."""


class PlaceKeeper(Protocol):
    """A scheduler, as far as a place knows it."""

    clock: Clock
    pressure: Pressure
    waiting: int

    @property
    def under_way(self) -> int:
        """Attempts that have a place."""

    def ended(self, place: CallPlace, ended: Ended) -> None:
        """Take a place back, and learn from how its attempt ended."""

    def streams(self, place: CallPlace) -> None:
        """Note that the head of a stream has come."""

    def look(self) -> None:
        """Send what can be sent now."""


class CallPlace:
    """Leave to have one attempt under way; given back once, with how it ended.

    Attributes:
        started: When it was given, in seconds of the clock.
        loop: The event loop of the call.
        probe: Whether the attempt is the probe of a pause.
        beside: Attempts under way when it was given, its own included.
        successes: Successes of all calls by then.
        given_back: Whether it was given back.
        idle_since: Since when nobody reads the stream that has it; None for what is no stream, or is being read.
    """

    __slots__ = (
        "_scheduler",
        "beside",
        "given_back",
        "idle_since",
        "loop",
        "probe",
        "queue",
        "started",
        "successes",
    )

    def __init__(
        self,
        scheduler: PlaceKeeper,
        queue: CallQueue,
        started: float,
        loop: asyncio.AbstractEventLoop,
        *,
        probe: bool,
    ) -> None:
        self._scheduler = scheduler
        self.loop = loop
        self.probe = probe
        self.given_back = False
        self.queue = queue
        self.started = started
        self.successes = scheduler.pressure.successes
        self.idle_since: float | None = None
        self.beside = scheduler.under_way + 1

    @classmethod
    def nowhere(cls, scheduler: PlaceKeeper) -> CallPlace:
        """A place that no scheduler has given, and that tells it nothing."""
        place = cls(scheduler, NOWHERE, scheduler.clock.monotonic(), asyncio.get_running_loop(), probe=False)
        place.given_back = True
        return place

    def end(self, ended: Ended) -> None:
        """Give it back, and say how the attempt ended."""
        if not self.given_back:
            self.given_back = True
            self._scheduler.ended(self, ended)

    def release(self, *, success: bool = False, throttled: bool = False) -> None:
        """Give it back: after a success, a refusal as too much, or something that says nothing."""
        end = End.OK if success else End.LATER if throttled else End.UNKNOWN
        self.end(Ended(end, crowded=throttled, reason="the service says that there is too much at once"))

    def streams(self) -> None:
        """Note that the head of a stream has come: from now on it may be taken back whenever nobody reads."""
        if not self.given_back:
            self._scheduler.streams(self)

    def reads(self, *, reading: bool) -> None:
        """Note that the reader of a stream waits for its next piece, or has got it."""
        self.idle_since = None if reading else self._scheduler.clock.monotonic()
        if not reading and self._scheduler.waiting:
            self._scheduler.look()


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs in this thread, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
