"""Rules by which a run stops early: a budget, too many failures, or a request."""

from __future__ import annotations

import threading
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from speechlab._arguments import is_number
from speechlab.errors import AudioError, BadRequestError, InvalidRequestError

if TYPE_CHECKING:
    from speechlab.batch._outcome import Outcome
    from speechlab.batch._plan.rows import PlannedCall

_FEW = 20
"""Calls before which a share of errors means nothing."""
_S_PER_CHARACTER = 0.15
"""Seconds of speech per character (slow Japanese), until the run has speech of its own to estimate from."""
_FAULTS_OF_ROWS = (InvalidRequestError, AudioError, BadRequestError)
"""Errors that a row causes, and that say nothing about the service."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The maximum that a run may spend. It stops before a call that would pass one of these.

    Attributes:
        calls: Calls made; repetitions of a failed call by the client do not count again.
        characters: Code points of text sent.
        audio_s: Seconds of audio heard or made. How long speech becomes is known only when it is there; until then
            it is estimated from what has been spoken in this run.
    """

    calls: int | None = None
    characters: int | None = None
    audio_s: float | None = None

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if value is not None and not (is_number(value) and value >= 0):
                message = f"budget {name} is {value!r}; give a number of at least 0, or None for no limit"
                raise InvalidRequestError(message, parameter="budget")


class Stop:
    """A request to stop a run; any thread may make it, and it is granted between calls."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.reason: str | None = None
        self.status = "stopped"

    def __bool__(self) -> bool:
        return self._event.is_set()

    def set(self, reason: str, status: str = "stopped") -> None:
        """Request it; the first reason counts."""
        if not self._event.is_set():
            self.reason, self.status = reason, status
            self._event.set()


class Rules:
    """The rules of a run, which watch what it spends and how its calls end.

    Args:
        budget: What it may spend.
        max_error_share: Share of failed calls (0 to 1) above which it is hopeless, or None.
        stop: Told when the run should stop.
    """

    def __init__(self, budget: Budget, max_error_share: float | None, stop: Stop) -> None:
        self._budget, self._share, self.stop = budget, max_error_share, stop
        self.calls = 0
        self.characters = 0
        self.audio_s = 0.0
        self._reserved_s = 0.0
        self._ended = 0
        self._failed = 0
        self._spoken = 0

    def admit(self, call: PlannedCall) -> float | None:
        """Reserve the cost of a call.

        Returns:
            The seconds of audio reserved, to be given back to :meth:`ended`, or None if the run must stop.
        """
        seconds = call.audio_s or call.characters * self._rate()
        after = {
            "calls": self.calls + 1,
            "characters": self.characters + call.characters,
            "audio_s": self.audio_s + self._reserved_s + seconds,
        }
        for name, value in after.items():
            limit = getattr(self._budget, name)
            if limit is not None and value > limit:
                unit = {"calls": "calls", "characters": "characters", "audio_s": "seconds of audio"}[name]
                self.stop.set(f"the budget of {limit:g} {unit} is used up")
                return None
        self.calls += 1
        self.characters += call.characters
        self._reserved_s += seconds
        return seconds

    def _rate(self) -> float:
        return self.audio_s / self._spoken if self._spoken and self.audio_s else _S_PER_CHARACTER

    def ended(self, call: PlannedCall, outcome: Outcome, reserved_s: float) -> None:
        """Count the outcome of a call, and stop the run if too many have failed."""
        self._reserved_s -= reserved_s
        self.audio_s += outcome.audio_s
        if outcome.audio_s:
            self._spoken += call.characters
        if isinstance(outcome.error, _FAULTS_OF_ROWS):
            return
        self._ended += 1
        self._failed += outcome.error is not None
        if self._share is not None and self._ended >= _FEW and self._failed > self._share * self._ended:
            self.stop.set(
                f"{self._failed} of {self._ended} calls failed, more than the {self._share:.0%} that "
                f"max_error_share allows; the last error: {outcome.error or 'see the rows before'}"
            )
