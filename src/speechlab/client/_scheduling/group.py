"""Groups of calls, such as those of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from speechlab.client._scheduling.retry import Patience


class Stoppable(Protocol):
    """The part of a scheduler that a group uses."""

    def stop(self, group: CallGroup) -> None:
        """End the waiting calls of a group at once."""

    def forget_group(self, group: CallGroup) -> None:
        """Drop the queue of a group that has ended."""

    def paused(self) -> tuple[str, float] | None:
        """The reason of the current pause, and its remaining seconds; None without a pause."""


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
        self.schedulers: set[Stoppable] = set()

    def limit_rate(self, rate: float | None) -> None:
        """Set the maximum of attempts started per second; it applies from the next attempt on."""
        self.gap_s = 0.0 if rate is None else 1.0 / rate

    def repeats(self, change: int) -> None:
        """Count a call that starts (1) or ends (-1) its wait for a retry."""
        self.repeating += change
        for listener in tuple(self.on_repeat) if change > 0 else ():
            listener()

    def stop(self) -> None:
        """Send no more calls: waiting calls raise NotSentError, and calls under way continue."""
        self.stopped = True
        for scheduler in tuple(self.schedulers):
            scheduler.stop(self)

    def end(self) -> None:
        """Stop, and remove the group from the schedulers."""
        self.stop()
        for scheduler in tuple(self.schedulers):
            scheduler.forget_group(self)

    def paused(self) -> tuple[str, float] | None:
        """The reason for which all calls wait, and the remaining seconds; None if they do not wait."""
        pauses = [paused for scheduler in tuple(self.schedulers) if (paused := scheduler.paused())]
        return max(pauses, key=lambda one: one[1]) if pauses else None
