"""Retries: whether and when a failed call is sent again. Nothing is repeated anywhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from speechlab.contract import RETRYABLE_STATUS

if TYPE_CHECKING:
    from speechlab.client._clock import Random
    from speechlab.errors import SpeechLabError

_BASE_S = 0.5
_CAP_S = 8.0
_MAX_500_RETRIES = 2
"""A 500 may be the recording's fault rather than the moment's, and each try may be metered."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Failure of one attempt.

    Attributes:
        error: What to raise if it is not repeated.
        status: HTTP status, or None if no reply came.
        retry_after_s: Seconds that the service asked to wait.
        sent: Whether the request had been sent in full, so that the work may have been done.
        timed_out: Whether the wait for the reply ran out of time.
        final: Whether it must not be repeated, whatever else is true.
    """

    error: SpeechLabError
    status: int | None = None
    retry_after_s: float | None = None
    sent: bool = False
    timed_out: bool = False
    final: bool = False

    @property
    def throttled(self) -> bool:
        """True if the service says that there is too much at once."""
        return self.status in {429, 503}


class RetryState:
    """The budget of one call.

    Failures are counted against ``max_retries``. A 429 is flow control and no failure: it is repeated for as long
    as ``patience_s`` lasts. Nothing is waited for that would end after the call's time.
    """

    def __init__(self, *, max_retries: int, patience_s: float, free: bool, rng: Random) -> None:
        self._max_retries = max_retries
        self._patience_s = patience_s
        self._free = free
        self._rng = rng
        self._failures = 0
        self._errors_500 = 0
        self._refusals = 0
        self._first_refusal: float | None = None

    def delay(self, failure: Failure, *, now: float, deadline: float | None) -> float | None:
        """Seconds to wait before the next sending, or None to give up.

        Args:
            failure: What happened.
            now: The time, in seconds.
            deadline: When the call's time is up, in seconds of the same clock.
        """
        if self._max_retries == 0 or failure.final:
            return None
        delay = self._after_429(failure, now) if failure.status == 429 else self._after_failure(failure)
        if delay is None or (deadline is not None and now + delay >= deadline):
            return None
        return delay

    def _after_429(self, failure: Failure, now: float) -> float | None:
        if self._first_refusal is None:
            self._first_refusal = now
        delay = self._waiting(failure, self._refusals)
        self._refusals += 1
        return delay if now + delay - self._first_refusal <= self._patience_s else None

    def _after_failure(self, failure: Failure) -> float | None:
        if not self._worth_repeating(failure) or self._failures >= self._max_retries:
            return None
        delay = self._waiting(failure, self._failures)
        self._failures += 1
        return delay if delay <= self._patience_s else None

    def _worth_repeating(self, failure: Failure) -> bool:
        if failure.status is None:
            # After a timeout the work may still be going on, and be paid for: repeating it would double both.
            return not (failure.timed_out and failure.sent) or self._free
        if failure.status == 500:
            self._errors_500 += 1
            return self._errors_500 <= _MAX_500_RETRIES
        return failure.status in RETRYABLE_STATUS

    def _waiting(self, failure: Failure, count: int) -> float:
        if failure.retry_after_s is not None:
            # A little jitter, so that calls that were refused together do not come back together.
            return failure.retry_after_s + self._rng.uniform(0.0, min(0.25, 0.1 * failure.retry_after_s))
        return self._rng.uniform(0.0, min(_CAP_S, _BASE_S * 2.0 ** min(count, 10)))
