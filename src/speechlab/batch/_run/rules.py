"""Rules by which a run stops early: its budget, too many failures, or a request."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

from speechlab.batch._run.budget import Spending
from speechlab.errors import AudioError, BadRequestError, InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Callable

    from speechlab.batch._outcome import Outcome
    from speechlab.batch._plan.prices import Amounts
    from speechlab.batch._plan.rows import PlannedCall
    from speechlab.batch._run.budget import Budget
    from speechlab.errors import SpeechLabError

_FEW = 20
"""Calls before which a share of errors means nothing."""
_LATELY = 100
"""Calls of which a share of errors is taken: the last ones, so that a run of 10,000 stops as soon as one of 200."""
_FAULTS_OF_ROWS = (InvalidRequestError, AudioError, BadRequestError)
"""Errors that a row causes, and that say nothing about the service."""


class Stop:
    """A request to stop a run; any thread may make it.

    Attributes:
        reason: Why, or None as long as nobody has requested it.
        status: How the run's record says it.
        gently: Whether calls that were admitted are still made.
        hurried: Whether it was interrupted again, so that calls under way have little time left.
    """

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
        """Request it; the first reason counts, and a second request can only make it less gentle."""
        with self._lock:
            if self.reason is not None and (gently or not self.gently):
                return
            self.reason = reason if self.reason is None else self.reason
            self.status, self.gently = status, gently
            listeners = [] if gently else [*self._listeners]
        for listener in listeners:
            listener()

    def hurry(self) -> None:
        """Give calls under way little more time; tells those again that listen."""
        with self._lock:
            self.hurried = True
            listeners = [*self._listeners]
        for listener in listeners:
            listener()

    def listen(self, listener: Callable[[], None]) -> None:
        """Call a function whenever it is requested other than gently, in the thread that does so."""
        with self._lock:
            self._listeners.append(listener)
            late = self.reason is not None and not self.gently
        if late:
            listener()

    def ignore(self, listener: Callable[[], None]) -> None:
        """Do not call a function any more."""
        with self._lock:
            self._listeners.remove(listener)


class Rules:
    """The rules of a run, which watch what it spends and how its calls end.

    Args:
        budget: What it may spend.
        max_error_share: Share of failed calls (0 to 1) among the last ones above which it is hopeless, or None.
        stop: Told when the run should stop.
    """

    def __init__(self, budget: Budget, max_error_share: float | None, stop: Stop) -> None:
        self._spending, self._share, self.stop = Spending(budget), max_error_share, stop
        self._lately: deque[bool] = deque(maxlen=_LATELY)

    def admit(self, call: PlannedCall) -> Amounts | None:
        """Reserve the cost of a call.

        Returns:
            What was reserved, to be given back to :meth:`ended`, or None if there is no room: the run stops, or
            calls under way may leave some.
        """
        reserved = self._spending.reserve(call)
        if reserved is None and not self._spending.under_way:
            self.stop.set(self._spending.reason, gently=True)
        return reserved

    def lost(self, error: SpeechLabError) -> None:
        """Stop the run because the service was given up."""
        self.stop.set(f"the service was given up (give_up_after_s): {error}")

    def ended(self, call: PlannedCall, outcome: Outcome | None, reserved: Amounts) -> None:
        """Count the outcome of a call, or None for one that was not made; stop the run if too many have failed."""
        self._spending.settle(call, outcome, reserved)
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
