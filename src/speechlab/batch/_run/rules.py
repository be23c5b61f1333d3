"""Rules that stop a run early: its budget, too many failures, or a request."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

from speechlab.errors import AudioError, BadRequestError, InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Callable

    from speechlab.batch._outcome import Outcome
    from speechlab.batch._plan.budget import Amounts, Spending
    from speechlab.batch._plan.rows import PlannedCall
    from speechlab.errors import SpeechLabError

_FEW = 20
"""Minimum number of calls for a share of errors."""
_LATELY = 100
"""Number of last calls in the share of errors. So a run of 10,000 calls stops as early as a run of 200."""
_FAULTS_OF_ROWS = (InvalidRequestError, AudioError, BadRequestError)
"""Errors that a row causes. They do not count, because they say nothing about the service."""


class Stop:
    """A request of any thread to stop a run: ``gently`` if admitted calls are still made, ``hurried`` if repeated."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], None]] = []
        self.reason: str | None = None
        self.status = "stopped"
        self.gently = True
        self.hurried = False

    def __bool__(self) -> bool:
        return self.reason is not None

    def set(self, reason: str, status: str = "stopped", *, gently: bool = False) -> None:
        """Request a stop. The first reason stays; a second request can only make the stop less gentle."""
        with self._lock:
            if self.reason is not None and (gently or not self.gently):
                return
            self.reason = reason if self.reason is None else self.reason
            self.status, self.gently = status, gently
            listeners = [] if gently else [*self._listeners]
        for listener in listeners:
            listener()

    def hurry(self) -> None:
        """Shorten the time of calls in progress, and notify the listeners again."""
        with self._lock:
            self.hurried = True
            listeners = [*self._listeners]
        for listener in listeners:
            listener()

    def listen(self, listener: Callable[[], None]) -> None:
        """Call a function at each request that is not gentle, in the thread of the request."""
        with self._lock:
            self._listeners.append(listener)
            late = self.reason is not None and not self.gently
        if late:
            listener()

    def ignore(self, listener: Callable[[], None]) -> None:
        """Remove a listener."""
        with self._lock:
            self._listeners.remove(listener)


class Rules:
    """The rules of a run for its spending and its failed calls."""

    def __init__(self, spending: Spending, max_error_share: float | None, stop: Stop) -> None:
        self.spending, self._share, self.stop = spending, max_error_share, stop
        self._lately: deque[bool] = deque(maxlen=_LATELY)

    def admit(self, call: PlannedCall) -> Amounts | None:
        """Reserve the cost of a call."""
        reserved = self.spending.reserve(call)
        if reserved is None and not self.spending.under_way:
            self.stop.set(self.spending.reason, gently=True)
        return reserved

    def lost(self, error: SpeechLabError) -> None:
        """Stop the run because the service was given up."""
        self.stop.set(f"the service was given up (give_up_after_s): {error}")

    def ended(self, call: PlannedCall, outcome: Outcome | None, reserved: Amounts) -> None:
        """Count the outcome of a call, None for an unmade call. Stop the run if too many calls failed."""
        self.spending.settle(call, outcome, reserved)
        if outcome is None or isinstance(outcome.error, _FAULTS_OF_ROWS):
            return
        if outcome.error is not None and outcome.error.service_lost:
            self.lost(outcome.error)
        self._lately.append(outcome.error is not None)
        ended, failed = len(self._lately), self._lately.count(True)
        if self._share is not None and ended >= _FEW and failed > self._share * ended:
            self.stop.set(
                f"{failed} of the last {ended} calls failed, more than the {self._share:.0%} that "
                f"max_error_share allows; the last error: {outcome.error or 'see the rows before'}"
            )
