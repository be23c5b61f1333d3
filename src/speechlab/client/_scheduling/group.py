"""Calls that belong together, as those of a batch do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from speechlab.client._scheduling.retry import Patience


class Stoppable(Protocol):
    """A scheduler, as far as a group knows it."""

    def stop(self, group: CallGroup) -> None:
        """Let the calls of a group that wait end at once."""

    def forget_group(self, group: CallGroup) -> None:
        """Drop the queue of a group that is over."""

    def paused(self) -> tuple[str, float] | None:
        """What everyone waits for, and for how many seconds yet."""


class CallGroup:
    """Calls that belong together: a ceiling, a rate and a patience of their own, and one end.

    Args:
        concurrency: Most attempts under way at once.
        rate: Attempts begun per second, or None for any.
        patience: How long its calls go on.
    """

    def __init__(self, concurrency: int, rate: float | None, patience: Patience) -> None:
        self.concurrency = concurrency
        self.gap_s = 0.0 if rate is None else 1.0 / rate
        self.patience = patience
        self.stopped = False
        self.repeating = 0
        """Calls that wait to be sent again, and so leave their share of ``concurrency`` to others."""
        self.on_repeat: Callable[[], None] | None = None
        """Called when there is one more of them, on the loop of the call."""
        self.schedulers: set[Stoppable] = set()

    def repeats(self, change: int) -> None:
        """Count a call that begins to wait to be sent again (1), or no longer does (-1)."""
        self.repeating += change
        if change > 0 and self.on_repeat is not None:
            self.on_repeat()

    def stop(self) -> None:
        """Send nothing more: calls that wait raise NotSentError, and those under way go on."""
        self.stopped = True
        for scheduler in tuple(self.schedulers):
            scheduler.stop(self)

    def end(self) -> None:
        """Stop, and let the schedulers forget it."""
        self.stop()
        for scheduler in tuple(self.schedulers):
            scheduler.forget_group(self)

    def paused(self) -> tuple[str, float] | None:
        """What all calls wait for, and for how many seconds yet; None if nothing keeps them."""
        found = [paused for scheduler in tuple(self.schedulers) if (paused := scheduler.paused())]
        return max(found, key=lambda one: one[1]) if found else None
