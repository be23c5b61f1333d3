"""The rules of retries: which failures allow another attempt, a call's limits, and its place in the scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from speechlab.client._scheduling.pressure import AttemptEnd, End
from speechlab.client._scheduling.waiting import CallGroup, CallPlace, Patience, WaitingCall
from speechlab.contract import RETRYABLE_STATUS, UNREACHED_STATUS
from speechlab.errors import (
    APIConnectionError,
    APIError,
    APITimeoutError,
    SpeechLabError,
    StreamTruncatedError,
)

if TYPE_CHECKING:
    from speechlab.client._scheduling.scheduler import Scheduler

# Retries after a 500: the recording may be the cause, and each attempt may be metered.
_MAX_BROKEN_UPLOADS = 1
_MAX_500_RETRIES = 2
# Retries of requests that were sent in full and may have been processed.
_MAX_METERED_RETRIES = 4
# Seconds that a single call waits for a service that cannot be reached.
UNREACHABLE_S = 10.0
# Retries of a single call after failures.
MAX_FAILURES = 4
_BASE_S = 0.25
_FAILED_CAP_S = 2.0
_REFUSED_CAP_S = 0.5


@dataclass(frozen=True, slots=True)
class Failure:
    """Failure of one attempt."""

    error: SpeechLabError  # to raise without a retry
    status: int | None = None  # of HTTP; None without a reply
    retry_after_s: float | None = None
    sent: bool = False  # in full, so that it may have been processed
    timed_out: bool = False
    final: bool = False  # a retry is excluded, regardless of the other fields
    broke_off: bool = False  # while a large body was sent

    @classmethod
    def from_error(cls, error: SpeechLabError) -> Failure | None:
        """The failure for the error of a call with one attempt; None if it is no evidence about the service."""
        if isinstance(error, APIError):
            return cls(error, status=error.status, retry_after_s=error.retry_after_s)
        if isinstance(error, APIConnectionError):
            timed_out = isinstance(error, APITimeoutError)
            final = not error.retryable
            return cls(error, sent=error.possibly_metered, timed_out=timed_out, final=final)
        if isinstance(error, StreamTruncatedError):
            return cls(error, sent=True, final=True)
        return None

    @property
    def asks_to_wait(self) -> bool:
        """Whether the service says "later", which is not the call's own failure."""
        return self.status == 429 or (self.status in {503, 529} and self.retry_after_s is not None)

    def to_attempt_end(self, *, spared: bool = False) -> AttemptEnd:
        """Return the end of the attempt, as evidence about the service."""
        reason = str(self.error)
        if self.asks_to_wait:
            return AttemptEnd(End.LATER, crowded=True, retry_after_s=self.retry_after_s, reason=reason)
        if self.status in UNREACHED_STATUS or (spared and self.status == 500):
            return AttemptEnd(End.FAILED, retry_after_s=self.retry_after_s, reason=reason)
        if self.status is not None:
            return AttemptEnd(End.ANSWERED)
        if self.final or (self.timed_out and self.sent and not spared):
            return AttemptEnd(End.UNKNOWN)
        return AttemptEnd(End.FAILED, reason=reason)


class ScheduledCall(WaitingCall):
    """One call in a scheduler, and its retries: it waits, is sent, and may wait again."""

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
        self._scheduler, self._direct, self._free = scheduler, direct, free
        self._spared = free and patience.spared
        """Whether failures never count against the call: a batch requests the catalogue until it gives up."""
        self._repeats = False
        self._retries = 0
        self._failures = 0
        self._errors_500 = 0
        self._broken_uploads = 0
        self._metered = 0
        self._refusals = 0
        self._refused_at: float | None = None

    async def wait_for_place(self) -> CallPlace:
        """Wait until an attempt may be sent."""
        if self._direct:
            return CallPlace.build_unscheduled(self._scheduler)
        try:
            return await self._scheduler.wait_for_place(self)
        finally:
            if self._repeats and self.group is not None:
                self._repeats = False
                self.group.change_repeating_count(-1)

    def end_attempt_and_compute_delay(self, failure: Failure, place: CallPlace) -> float | None:
        """Return a place after a failure, and give the wait before the next attempt."""
        place.end(failure.to_attempt_end(spared=self._spared))
        delay_s = self._record_and_compute_delay(failure, place)
        if delay_s is not None and self.group is not None:
            self._repeats = True
            self.group.change_repeating_count(1)
        return delay_s

    def _record_and_compute_delay(self, failure: Failure, place: CallPlace) -> float | None:
        scheduler = self._scheduler
        now = scheduler.clock.monotonic()
        with scheduler.lock:
            pressure = scheduler.pressure
            others = pressure.successes > place.successes
            if not self.record_failure_and_can_retry(
                failure, unpaused=pressure.compute_unpaused_time(now), others=others
            ):
                return None
            asked_s = failure.retry_after_s
            if asked_s:
                earliest = now + pressure.add_jitter(asked_s)
            else:
                count, cap_s = (
                    (self._refusals, _REFUSED_CAP_S)
                    if failure.asks_to_wait
                    else (self._failures, _FAILED_CAP_S)
                )
                longest_s = min(cap_s, _BASE_S * 2.0 ** min(max(count - 1, 0), 10))
                earliest = now + scheduler.rng.uniform(0.0, longest_s)
            if pressure.pause is not None:
                earliest = max(earliest, pressure.pause.until)
                self.lost = scheduler.is_beyond_patience(self, earliest)
            if self.lost or (pressure.pause is None and (asked_s or 0.0) > self.patience.later_s):
                return None
            if self.deadline is not None and earliest >= self.deadline:
                return None
            if place.probe:
                # At the end of the queue: a call that alone is refused then delays no other call, and the probes of a
                # service that cannot be reached use few retries of each call.
                self.number = next(scheduler.numbers)
            self.earliest = earliest
            return earliest - now

    def record_failure_and_can_retry(self, failure: Failure, *, unpaused: float, others: bool) -> bool:
        """Count a failure, at a time without the pauses, while others succeed or not; True if a retry is left."""
        most = self.patience.retries
        if failure.final or (most is not None and self._retries >= most):
            return False
        self._retries += 1
        if not failure.asks_to_wait:
            return self._record_failure_except_refusal(failure, others=others)
        if self._refused_at is None:
            self._refused_at = unpaused
        self._refusals += 1
        return unpaused - self._refused_at <= self.patience.call_s

    def _record_failure_except_refusal(self, failure: Failure, *, others: bool) -> bool:
        if failure.status is None:
            # After a timeout the service may still be working on the request; a retry would double work and cost.
            if failure.timed_out and failure.sent and not self._free:
                return False
            self._metered += failure.sent and not self._free
        elif failure.status not in RETRYABLE_STATUS:
            return False
        self._broken_uploads += failure.broke_off
        own_error = failure.status == 500 and not self._spared
        self._errors_500 += own_error
        self._failures += others or not self.patience.spared or own_error
        return (
            self._errors_500 <= _MAX_500_RETRIES
            and self._broken_uploads <= _MAX_BROKEN_UPLOADS
            and self._metered <= _MAX_METERED_RETRIES
            and self._failures <= self.patience.failures
        )
