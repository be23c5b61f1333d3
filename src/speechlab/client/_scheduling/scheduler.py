"""The scheduler of one service with one key, which decides when each attempt is sent.

Each attempt requests a place and reports its end. ``docs/client.md`` describes the rules. ``pressure`` estimates the
capacity of the service, and ``retry`` limits the retries of a call. All clients of a process with the same service
and key share one scheduler, in all threads and event loops. A waiting call costs a future; it has no task, and
nothing polls.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import threading
import time
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

from speechlab._platform import register_after_fork
from speechlab.client._clock import Clock, SystemClock
from speechlab.client._scheduling.pressure import AttemptEnd, End, Pressure
from speechlab.client._scheduling.waiting import (
    NO_QUEUE,
    Alarm,
    CallGroup,
    CallPlace,
    CallQueue,
    NotSentError,
    Waiter,
    WaitingCall,
)

# Lateness of a timer that a rate makes up for.
_LATE_S = 0.05
# Seconds without a reader after which a stream's place goes to a waiting call.
_IDLE_S = 1.0
# Interval of the check, while no place is free, that the event loops of the attempts still run.
_LOOPS_S = 5.0
# Tolerance of patience: a pause may be longer by this factor, so that 60 s of patience cover a quota per
# minute.
_SLACK = 1.1


class Scheduler:
    """The scheduler of one service with one key."""

    def __init__(self, clock: Clock, rng: Random, most: int | None = None) -> None:
        self.clock = clock
        self._most = math.inf if most is None else most
        self.rng = rng
        self.lock = threading.Lock()
        self.pressure = Pressure(rng)
        if most is not None:  # known, and not to be learned
            self.pressure.set_capacity(most)
        self.numbers = count()
        self._under_way: dict[CallPlace, None] = {}
        self.waiting = 0
        self.answered_at = -math.inf
        """Time of ``time.monotonic`` at which a call last got its result."""
        self._light = CallQueue(0)
        self._queues: dict[int | CallGroup | None, CallQueue] = {None: self._light}
        self._delayed: list[tuple[float, int, Waiter]] = []
        self._streams: set[CallPlace] = set()
        self._alarms: dict[asyncio.AbstractEventLoop, Alarm] = {}

    @property
    def under_way(self) -> int:
        """Number of attempts that have a place."""
        return len(self._under_way)

    @property
    def _width(self) -> int:
        """Maximum of concurrent attempts."""
        return int(min(self.pressure.width, self._most))

    def find_pause(self) -> tuple[str, float] | None:
        """Return the reason of the current pause, and its remaining seconds; None without a pause."""
        with self.lock:
            pause = self.pressure.pause
            if pause is None:
                return None
            what = "the service to come back" if pause.gone else "the service's quota"
            return what, max(0.0, pause.until - self.clock.monotonic())

    def set_capacity(self, at_once: int) -> None:
        """Follow a service that says how many calls it works on at once."""
        with self.lock:
            self.pressure.set_capacity(at_once)

    async def wait_for_place(self, call: WaitingCall) -> CallPlace:
        """Wait until an attempt of a call may be sent."""
        loop = asyncio.get_running_loop()
        with self.lock:
            now = self.clock.monotonic()
            self._check_can_wait(call, now)
            queue = self._get_queue(call)
            if not self.waiting and call.earliest <= now and self._choose_queue(now, queue) is queue:
                return self._assign_place(queue, now, loop)
            waiter = Waiter(call, loop, loop.create_future())
            self.waiting += 1
            if call.earliest > now:
                heapq.heappush(self._delayed, (call.earliest, call.number, waiter))
            else:
                heapq.heappush(queue.ready, (call.number, waiter))
            alarm = self._alarms.get(loop)
            if alarm is None:
                alarm = self._alarms[loop] = Alarm(loop, self.clock, self.send_ready_calls)
            alarm.waiters += 1
            self._dispatch_calls(now)
        try:
            if waiter.place is not None:
                return waiter.place
            if call.deadline is None:
                return await waiter.future
            async with asyncio.timeout(max(0.0, call.deadline - now)):
                return await waiter.future
        except TimeoutError:
            self._abandon_waiter(waiter)
            raise NotSentError(self._describe_wait(call)) from None
        except BaseException:
            self._abandon_waiter(waiter)
            raise
        finally:
            with self.lock:
                alarm.waiters -= 1
                if not alarm.waiters:
                    alarm.stop()
                    self._alarms.pop(loop, None)

    def stop_group(self, group: CallGroup) -> None:
        """End the waiting calls of a run at once."""
        with self.lock:
            self._fail_waiters_with_problem(
                lambda call: _build_stopped_error() if call.group is group else None
            )

    def forget_group(self, group: CallGroup) -> None:
        """Drop the queue of a run that has ended."""
        with self.lock:
            self._queues.pop(group, None)

    def take_back_place(self, place: CallPlace, ended: AttemptEnd) -> None:
        """Take a place back, and learn from the end of its attempt."""
        if ended.end is End.OK:
            self.answered_at = time.monotonic()
        with self.lock:
            now = self.clock.monotonic()
            pause = self.pressure.pause
            until = None if pause is None else pause.until
            self.pressure.record_end(ended, place, now, self._under_way, self.waiting)
            self._free_place(place)
            pause = self.pressure.pause
            if pause is not None and pause.until != until:
                self._fail_waiters_with_problem(lambda call: self._find_reason_not_to_wait(call, pause.until))
            self._dispatch_calls(now)

    def mark_streaming(self, place: CallPlace) -> None:
        """Note that the headers of a stream have come: the service accepts this number of attempts."""
        with self.lock:
            now = self.clock.monotonic()
            place.idle_since = now
            self._streams.add(place)
            self.pressure.record_end(AttemptEnd(End.BEGUN), place, now, self._under_way)
            self._dispatch_calls(now)

    def send_ready_calls(self) -> None:
        """Send the calls that may be sent now."""
        with self.lock:
            self._dispatch_calls(self.clock.monotonic())

    def is_beyond_patience(self, call: WaitingCall, until: float) -> bool:
        """Return whether a pause until then is longer than a call's patience."""
        pause, patience = self.pressure.pause, call.patience
        assert pause is not None
        longest = patience.gone_s if pause.gone else patience.later_s
        return until > max(pause.since, call.began) + _SLACK * longest

    def _get_queue(self, call: WaitingCall) -> CallQueue:
        if call.light:
            return self._light
        group = call.group
        key = call.ceiling if group is None else group
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = CallQueue(call.ceiling, next_at=self.clock.monotonic())
            if group is not None:
                group.schedulers.add(self)
        if group is not None:
            queue.gap_s = group.gap_s
        return queue

    def _check_can_wait(self, call: WaitingCall, now: float) -> None:
        if call.group is not None and call.group.stopped:
            raise _build_stopped_error()
        if call.deadline is not None and now >= call.deadline:
            raise NotSentError(self._describe_wait(call))
        pause = self.pressure.pause
        if pause is not None and (problem := self._find_reason_not_to_wait(call, pause.until)) is not None:
            if not pause.gone or call.group is not None or call.earliest > -math.inf:
                raise problem
            pause.until = now  # a new call without patience for an unreachable service probes it at once

    def _find_reason_not_to_wait(self, call: WaitingCall, until: float) -> NotSentError | None:
        """The reason why a call cannot wait until then, or None."""
        beyond = self.is_beyond_patience(call, until)
        if not beyond and (call.deadline is None or until < call.deadline):
            return None
        pause = self.pressure.pause
        assert pause is not None
        call.lost = beyond
        seconds = until - self.clock.monotonic()
        longest = call.patience.gone_s if pause.gone else call.patience.later_s
        option = "give_up_after_s" if call.group is not None else "patience_s"
        why = f"its patience of {longest:g} s ({option})" if beyond else f"its time of {call.time_s:g} s"
        what = "is not there" if pause.gone else "asks to wait"
        text = f"the service {what} (the last answer: {pause.reason}); the next attempt is in {seconds:.0f} s"
        return NotSentError(f"{text}, beyond {why}", lost=beyond)

    def _describe_wait(self, call: WaitingCall) -> str:
        pause = self.pressure.pause
        if pause is not None:
            return f"it waited {call.time_s:g} s for the service, which answered: {pause.reason}"
        most = min(self._width, call.ceiling)
        return f"it waited {call.time_s:g} s for one of {most} places, which {self.under_way} attempts under way have"

    def _dispatch_calls(self, now: float) -> None:
        """Send the calls that may be sent now, and set the alarm for the next ones."""
        if not self.waiting:
            return
        delayed = self._delayed
        while delayed and (delayed[0][0] <= now or delayed[0][2].done):
            waiter = heapq.heappop(delayed)[2]
            if not waiter.done:
                heapq.heappush(self._get_queue(waiter.call).ready, (waiter.call.number, waiter))
        self._free_idle_places(now)
        while (queue := self._choose_queue(now)) is not None:
            waiter = heapq.heappop(queue.ready)[1]
            waiter.done = True
            self.waiting -= 1
            waiter.place = self._assign_place(queue, now, waiter.loop)
            if not waiter.wake():
                self._take_back_unused_place(waiter.place)
        if self.waiting and (when := self._compute_next_send_time(now)) < math.inf:
            for alarm in [*self._alarms.values()]:
                alarm.set_if_earlier(when)

    def _choose_queue(self, now: float, entered: CallQueue | None = None) -> CallQueue | None:
        """Return the queue whose first call has waited longest, among those that may send."""
        pause = self.pressure.pause
        if pause is not None and now < pause.next:
            return None
        if pause is not None and pause.probing:
            self.pressure.start_probe_or_end_pause(now)
            pause = None
        full = pause is None and self.under_way >= self._width
        best: CallQueue | None = None
        oldest = 0
        for queue in self._queues.values():
            if queue is not self._light and (full or queue.under_way >= queue.ceiling or queue.next_at > now):
                continue
            if queue is entered:
                return queue
            first = queue.find_first()
            if first is not None and (best is None or first.call.number < oldest):
                best, oldest = queue, first.call.number
        return best

    def _assign_place(self, queue: CallQueue, now: float, loop: asyncio.AbstractEventLoop) -> CallPlace:
        place = CallPlace(
            self,
            queue,
            now,
            loop,
            probe=self.pressure.pause is not None,
            concurrent=len(self._under_way) + 1,
            successes=self.pressure.successes,
        )
        self.pressure.start_probe_or_end_pause(now)
        if queue is self._light:
            place.queue = NO_QUEUE
            return place
        self._under_way[place] = None
        queue.under_way += 1
        if queue.gap_s:
            queue.next_at = max(queue.next_at, now - _LATE_S) + queue.gap_s
        return place

    def _take_back_unused_place(self, place: CallPlace) -> None:
        """Take back a place that was not used."""
        place.given_back = True
        if place.probe and self.pressure.pause is not None:
            self.pressure.pause.probing = False
        self._free_place(place)

    def _free_place(self, place: CallPlace) -> None:
        self._streams.discard(place)
        queue = place.queue
        if queue is not NO_QUEUE:
            place.queue = NO_QUEUE
            queue.under_way -= 1
            del self._under_way[place]

    def _free_idle_places(self, now: float) -> None:
        """Take back the places of unread streams and, if none is free, of attempts on loops that no longer run."""
        for place in [*self._streams] if self._streams else ():
            if place.idle_since is not None and now >= place.idle_since + _IDLE_S:
                self._free_place(place)
        if self.under_way >= self._width:
            for place in [place for place in self._under_way if not place.loop.is_running()]:
                self._free_place(place)

    def _abandon_waiter(self, waiter: Waiter) -> None:
        with self.lock:
            if waiter.place is not None:  # admitted and cancelled at the same time: the place is free again
                self._take_back_unused_place(waiter.place)
                self._dispatch_calls(self.clock.monotonic())
            elif not waiter.done:
                waiter.done = True
                self.waiting -= 1

    def _fail_waiters_with_problem(self, problem_of: Callable[[WaitingCall], NotSentError | None]) -> None:
        """End the waiting calls that have a problem."""
        waiters = [waiter for *_, waiter in self._delayed]
        waiters += [waiter for queue in self._queues.values() for _, waiter in queue.ready]
        for waiter in waiters:
            if not waiter.done and (problem := problem_of(waiter.call)) is not None:
                waiter.done = True
                self.waiting -= 1
                waiter.wake(problem)

    def _compute_next_send_time(self, now: float) -> float:
        """Return the time at which the next call may be sent."""
        times = [self._delayed[0][0]] if self._delayed else []
        pause = self.pressure.pause
        ready = [queue for queue in self._queues.values() if queue.find_first() is not None]
        if ready and pause is not None:
            times.append(pause.next)
        if pause is not None or self.under_way < self._width:
            times += [queue.next_at for queue in ready if queue.under_way < queue.ceiling]
        if ready:
            times.append(now + _LOOPS_S)
            times += [place.idle_since + _IDLE_S for place in self._streams if place.idle_since is not None]
        return min((when for when in times if when > now), default=math.inf)


def _build_stopped_error() -> NotSentError:
    return NotSentError("its run was stopped", stopped=True)


_schedulers: dict[tuple[Any, ...], Scheduler] = {}
_schedulers_lock = threading.Lock()


def get_scheduler(
    base_url: str, key: str, service: str, clock: Clock, rng: Random, most: int | None = None
) -> Scheduler:
    """Return the one scheduler of this process for a service and key."""
    whose = None if isinstance(clock, SystemClock) else clock
    with _schedulers_lock:
        whole_key = base_url.rstrip("/"), key, service, whose, most
        if whole_key not in _schedulers:
            _schedulers[whole_key] = Scheduler(clock, rng, most)
        return _schedulers[whole_key]


@register_after_fork
def _reset_schedulers_after_fork() -> None:
    # Another thread may have held a lock when the process was forked; the parent's calls do not exist in the child.
    global _schedulers_lock  # noqa: PLW0603 - a forked child needs its own
    _schedulers_lock = threading.Lock()
    _schedulers.clear()
