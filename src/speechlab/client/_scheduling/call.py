"""One call in a scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speechlab.client._scheduling.retry import Retries
from speechlab.client._scheduling.waiting import CallPlace, WaitingCall

if TYPE_CHECKING:
    from speechlab.client._scheduling.retry import Failure, Patience
    from speechlab.client._scheduling.scheduler import Scheduler
    from speechlab.client._scheduling.waiting import CallGroup


class ScheduledCall(WaitingCall):
    """One call in a scheduler: it waits, is sent, and may wait again."""

    def __init__(
        self,
        scheduler: Scheduler,
        patience: Patience,
        ceiling: int,
        group: CallGroup | None = None,
        *,
        free: bool,
        light: bool = False,
        direct: bool = False,
    ) -> None:
        super().__init__(
            patience=patience,
            ceiling=ceiling if group is None else group.concurrency,
            number=next(scheduler.numbers),
            began=scheduler.clock.monotonic(),
            group=group,
            light=light,
        )
        self._scheduler, self._direct = scheduler, direct
        self._retries = Retries(patience, free=free)
        self._repeats = False

    async def place(self) -> CallPlace:
        """Wait until an attempt may be sent."""
        if self._direct:
            return CallPlace.nowhere(self._scheduler)
        try:
            return await self._scheduler.place(self)
        finally:
            if self._repeats and self.group is not None:
                self._repeats = False
                self.group.repeats(-1)

    def again(self, failure: Failure, place: CallPlace) -> float | None:
        """Return a place after a failure, and give the wait before the next attempt."""
        place.end(failure.ended(spared=self._retries.spared))
        delay_s = self._delay_s(failure, place)
        if delay_s is not None and self.group is not None:
            self._repeats = True
            self.group.repeats(1)
        return delay_s

    def _delay_s(self, failure: Failure, place: CallPlace) -> float | None:
        scheduler = self._scheduler
        now = scheduler.clock.monotonic()
        with scheduler.lock:
            pressure = scheduler.pressure
            served = pressure.successes > place.successes
            waits = self._retries.wait_s(failure, unpaused=pressure.unpaused(now), others=served)
            if waits is None:
                return None
            least, longest = waits
            wait = pressure.jittered(least) if least else scheduler.rng.uniform(0.0, longest)
            earliest = now + wait
            if pressure.pause is not None:
                earliest = max(earliest, pressure.pause.until)
                self.lost = scheduler.is_lost(self, earliest)
            if self.lost or (pressure.pause is None and least > self.patience.later_s):
                return None
            if self.deadline is not None and earliest >= self.deadline:
                return None
            if place.probe:
                # At the end of the queue: a call that alone is refused then delays no other call, and the probes of a
                # service that cannot be reached use few retries of each call.
                self.number = next(scheduler.numbers)
            self.earliest = earliest
            return earliest - now
