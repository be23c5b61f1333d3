"""Rules that stop a run early: its budget, too many failures, or a request."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

from speechlab._arguments import is_number
from speechlab.batch._plan.plan import (
    S_PER_CHARACTER,
    TOKENS_PER_CHARACTER,
    Amounts,
    Prices,
    check_prices,
    estimate_amounts,
)
from speechlab.errors import APIError, AudioError, BadRequestError, InvalidRequestError, SpeechLabError

if TYPE_CHECKING:
    from speechlab.batch._outcome import Outcome, PlannedCall

# Minimum number of calls for a share of errors.
_MIN_CALLS = 20
# Number of last calls in the share of errors. So a run of 10,000 calls stops as early as a run of 200.
_RECENT_CALLS = 100
# Errors that a row causes. They do not count, because they say nothing about the service.
_ROW_ERRORS = (InvalidRequestError, AudioError, BadRequestError)


# The parts of a budget, and their names in messages.
_LIMITS = {
    "calls": "calls",
    "characters": "characters",
    "audio_s": "seconds of audio",
    "tokens": "tokens",
    "cost": "(cost)",
}
_NO_AMOUNTS = Amounts()


@dataclass(frozen=True, slots=True)
class Budget:
    """The maximum that a run may spend. The run stops before a call that would exceed one of the limits.

    The duration of speech and the tokens of a translation are known only after the reply. Before it, they are
    estimated from the run's earlier replies (at first 0.15 seconds of speech or 2 tokens per character). Calls in
    progress may exceed the budget if they need more than their estimates.

    Attributes:
        calls: Number of calls; the client's retries of a failed call do not count.
        characters: Code points of text sent.
        audio_s: Seconds of audio synthesized or transcribed.
        tokens: Tokens read and written.
        cost: Cost, in the currency of ``prices``.
        prices: The price of one unit of ``calls``, ``characters``, ``audio_s`` and ``tokens`` in your contract with
            the service, such as ``{"characters": 15 / 1_000_000, "audio_s": 0.36 / 3600}``; or a ``Price``. With
            prices, the run's ``manifest["usage"]`` has its ``cost``.

    Example:
        >>> Budget(calls=1_000, cost=5.0, prices={"characters": 0.00002})
        Budget(calls=1000, characters=None, audio_s=None, tokens=None, cost=5.0, prices={'characters': 2e-05})
    """

    calls: int | None = None
    characters: int | None = None
    audio_s: float | None = None
    tokens: int | None = None
    cost: float | None = None
    prices: Prices | None = None

    def __post_init__(self) -> None:
        for name in _LIMITS:
            value = getattr(self, name)
            if value is not None and not (is_number(value) and value >= 0):
                message = f"budget {name} is {value!r}; give a number of at least 0, or None for no limit"
                raise InvalidRequestError(message, parameter="budget")
        if self.prices is not None:
            check_prices(self.prices, "budget")
        elif self.cost is not None:
            message = (
                f"a budget with cost={self.cost:g} needs the prices of your contract with the service, as in "
                "prices={'characters': 0.000015}"
            )
            raise InvalidRequestError(message, parameter="budget")


class Spending:
    """Amounts that a run has spent, and amounts that its calls in progress have reserved."""

    def __init__(self, budget: Budget) -> None:
        limits = {name: getattr(budget, name) for name in _LIMITS}
        self._limits = {name: limit for name, limit in limits.items() if limit is not None}
        self._prices = budget.prices
        self.reason = ""
        self._spent = Amounts()
        self._reserved = Amounts()
        self._known = Amounts()
        """Audio and tokens of replies so far, for estimates."""
        self._with_audio = 0
        self._with_tokens = 0

    def copy_with_limits(self, amounts: Amounts) -> Spending:
        """Return a budget of these amounts alone, with the estimates of this one."""
        limited = copy(self)
        values = {**amounts._asdict(), "cost": amounts.compute_cost(self._prices)}
        limits = {name: values[name] for name in self._limits}
        vars(limited).update(_limits=limits, _spent=_NO_AMOUNTS, _reserved=_NO_AMOUNTS)
        return limited

    def reserve(self, call: PlannedCall) -> Amounts | None:
        """Reserve the cost of a call."""
        if not self._limits:
            return _NO_AMOUNTS
        replies = self._known
        amounts = estimate_amounts(
            call,
            replies.audio_s / self._with_audio if self._with_audio else S_PER_CHARACTER,
            replies.tokens / self._with_tokens if self._with_tokens else TOKENS_PER_CHARACTER,
        )
        after = self._spent.compute_sum(self._reserved).compute_sum(amounts)
        values = {**after._asdict(), "cost": after.compute_cost(self._prices)}
        for name, limit in self._limits.items():
            if values[name] > limit:
                why = "is used up"
                if after.calls == 1 and not self._spent.calls:
                    why = f"is less than the first call's estimate of {values[name]:.3g}; nothing was asked"
                self.reason = f"the budget of {limit:g} {_LIMITS[name]} {why}"
                return None
        self._reserved = self._reserved.compute_sum(amounts)
        return amounts

    @property
    def has_reservations(self) -> bool:
        """Whether calls in progress have reserved amounts, which they may not need."""
        return self._reserved.calls > 0

    def release_and_count(self, call: PlannedCall, outcome: Outcome | None, reserved: Amounts) -> None:
        """Release the reserved amounts of a call, and count what it spent. The outcome of an unmade call is None."""
        if not self._limits:
            return
        self._reserved = self._reserved.compute_sum(reserved, -1)
        if outcome is None:
            return
        # the text of a failed call was sent and may be charged for
        spent = Amounts(1, call.characters, outcome.audio_s, outcome.tokens)
        self._spent, self._known = self._spent.compute_sum(spent), self._known.compute_sum(spent)
        self._with_audio += call.characters if outcome.audio_s else 0
        self._with_tokens += call.characters if outcome.tokens else 0


class StopSignal:
    """A request of any thread to stop a run, made once it has a ``reason``; ``gently``: admitted calls continue."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], None]] = []
        self.reason: str | None = None
        self.status = "stopped"
        self.gently = True
        self.hurried = False
        """Whether an interrupt was repeated."""

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

    @contextmanager
    def register_listener_during(self, listener: Callable[[], None]) -> Iterator[None]:
        """Call a function at each request that is not gentle, in the thread of the request, during the block."""
        with self._lock:
            self._listeners.append(listener)
            late = self.reason is not None and not self.gently
        if late:
            listener()
        try:
            yield
        finally:
            with self._lock:
                self._listeners.remove(listener)


class RunRules:
    """The rules of a run for its spending and its failed calls."""

    def __init__(self, spending: Spending, max_error_share: float | None, stop: StopSignal) -> None:
        self.spending, self._share, self.stop = spending, max_error_share, stop
        self._lately: deque[bool] = deque(maxlen=_RECENT_CALLS)
        self._refusals: Counter[str] | None = Counter()  # of the first calls; None once one was no refusal

    def reserve_or_stop(self, call: PlannedCall) -> Amounts | None:
        """Reserve the cost of a call."""
        reserved = self.spending.reserve(call)
        if reserved is None and not self.spending.has_reservations:
            self.stop.set(self.spending.reason, gently=True)
        return reserved

    def stop_for_lost_service(self, error: SpeechLabError) -> None:
        """Stop the run because the service was given up."""
        self.stop.set(f"the service was given up (give_up_after_s): {error}")

    def count_outcome(self, call: PlannedCall, outcome: Outcome | None, reserved: Amounts) -> None:
        """Count the outcome of a call, None for an unmade call. Stop the run if too many calls failed."""
        self.spending.release_and_count(call, outcome, reserved)
        if outcome is not None and self._refusals is not None:
            self._count_refusal(outcome)
        if outcome is None or isinstance(outcome.error, _ROW_ERRORS):
            return
        if outcome.error is not None and outcome.error.service_lost:
            self.stop_for_lost_service(outcome.error)
        self._lately.append(outcome.error is not None)
        ended, failed = len(self._lately), self._lately.count(True)
        if self._share is not None and ended >= _MIN_CALLS and failed > self._share * ended:
            self.stop.set(
                f"{failed} of the last {ended} calls failed, more than the {self._share:.0%} that "
                f"max_error_share allows; the last error: {outcome.error or 'see the rows before'}"
            )

    def _count_refusal(self, outcome: Outcome) -> None:
        """Stop the run if its first calls were all refused for one and the same reason, which is then of no row."""
        error, refusals = outcome.error, self._refusals
        is_refusal = (
            isinstance(error, APIError) and 400 <= error.status < 500 and error.status not in {408, 429}
        )
        if not is_refusal or refusals is None or self._share in {None, 1}:
            self._refusals = None
            return
        refusals[str(error)] += 1
        if len(refusals) > 1:
            self._refusals = None
        elif refusals.total() >= _MIN_CALLS:
            self.stop.set(
                f"the first {_MIN_CALLS} calls were all refused with one and the same error, as the others would be: "
                f"{error}; correct the call, or give max_error_share=None to send them all the same"
            )
