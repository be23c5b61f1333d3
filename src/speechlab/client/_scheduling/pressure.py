"""Estimates of a service's capacity from the ends of attempts: the number of concurrent attempts, and pauses.

A state machine without clocks, locks or tasks; times are seconds of the caller's clock.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from random import Random
from typing import Protocol

_START = 4.0
# Growth of the width with each success until the first refusal. The width is the limit of concurrent
# attempts.
_GROWTH = 0.5
# Minimum growth with each success after the first refusal.
_REGROWTH = 0.1
# A requested wait of at least this length applies to all calls; a shorter one only to the refused call.
_QUOTA_S = 5.0
_FIRST_S = 0.5
_LONGEST_S = 60.0
_FIRST_GONE_S = 0.25
_LONGEST_GONE_S = 5.0
# Maximum wait for the next probe, as a share of the time for which the service has refused or been
# unreachable.
_SHARE = 0.3
_JITTER = 0.05
# Time without another attempt at a refused width, as a multiple of the wait of the refused call.
_HOLD = 10.0
# Assumed wait of such a call if the service asked for none.
_HOLD_S = 0.1
_LONGEST_HOLD_S = 60.0
# Attempts in the history of widths and their outcomes.
_HISTORY = 64
# Refusals among two assumed attempts, so that a few accepted attempts do not imply that all are accepted.
_PRIOR = 0.3
# Ratio of the refusal rate at a width to that at smaller ones from which the width is the reason.
_MORE = 5.0
# Share of the longest silence from which the time of a call matters: below it, a queue is harmless.
_STRAIN = 0.25
# Share of the growth of times in a pure queue, where they double with the width, from which it is one.
_QUEUED = 0.6
# Attempts sent beyond what a service says to work on at once, so that it never waits for the next.
_AHEAD = 1
_TRUST = 4.0
# An attempt counts as accepted after this time, or this many times the duration of the last refusal.
_TRUST_S = 0.03


class End(Enum):
    """The end of an attempt, as evidence about the service."""

    OK = auto()
    """It succeeded."""
    BEGUN = auto()
    """It was accepted, and its stream has started."""
    ANSWERED = auto()
    """The service can be reached, and refused the request as invalid."""
    LATER = auto()
    """The service said "later"."""
    FAILED = auto()
    """No reply came, or a reply that shows that the service cannot be reached."""
    UNKNOWN = auto()
    """It was cancelled, or its end is no evidence."""


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """The end of an attempt."""

    end: End
    crowded: bool = False  # fewer concurrent attempts may help
    retry_after_s: float | None = None  # the wait that the service asked for
    reason: str = ""  # of the service, for errors of calls that wait because of it
    strain: float = 0.0  # time of a successful attempt, as a share of its longest silence


class SentAttempt(Protocol):
    """An attempt under way, as seen by other calls."""

    started: float
    concurrent: int
    probe: bool


@dataclass(slots=True)
class Pause:
    """A time in which only probes are sent, one at a time."""

    since: float  # the last sign of a healthy service
    closed: float
    until: float  # the next probe
    gone: bool  # the service cannot be reached; otherwise it says "later"
    reason: str
    probing: bool = False
    trusted: float = 0.0  # when the current probe counts as accepted

    @property
    def next(self) -> float:
        """The time of the next attempt."""
        return self.trusted if self.probing else self.until


class Pressure:
    """The width and the pause of one service with one key."""

    def __init__(self, rng: Random) -> None:
        self.width = _START
        self.pause: Pause | None = None
        self.successes = 0
        self._rng = rng
        self._paused_s = 0.0
        self._refusal_s = 0.0
        self._lately: deque[tuple[int, bool]] = deque(maxlen=_HISTORY)
        self._refused = math.inf
        self._held = -math.inf
        self._fresh = True
        self._row = 0
        self._row_since = 0.0
        self._most = math.inf
        self._strains: dict[int, float] = {}
        self._queues = False

    def set_capacity(self, at_once: int) -> None:
        """Follow a service that says how many calls it works on at once."""
        self._most = float(at_once + _AHEAD)
        self.width = min(self.width, self._most) if self._lately else self._most

    def compute_unpaused_time(self, now: float) -> float:
        """Return the time without the pauses: a clock that stops while nothing may be sent."""
        pause = self.pause
        return now - self._paused_s - (now - pause.closed if pause is not None else 0.0)

    def add_jitter(self, seconds: float) -> float:
        """Return a wait that a service asked for, with a little jitter, so that calls do not come back together."""
        return seconds + self._rng.uniform(0.0, min(0.25, _JITTER * seconds))

    def record_end(
        self,
        ended: AttemptEnd,
        attempt: SentAttempt,
        now: float,
        under_way: Collection[SentAttempt],
        waiting: int = 0,
    ) -> None:
        """Learn from the end of an attempt, from those under way and the number of calls that wait."""
        began, concurrent = attempt.started, attempt.concurrent
        pause, at_once = self.pause, len(under_way)
        if attempt.probe and pause is not None:
            pause.probing = False
        if ended.end is End.UNKNOWN:
            return
        if ended.end is End.OK:
            self.successes += 1
            self._lately.append((concurrent, True))
            strained = self._learn_whether_service_queues(concurrent, ended.strain)
            # Only a width in use is evidence for a greater one.
            if at_once >= int(self.width) and not strained:
                self._grow_width(concurrent, now)
        if ended.end is End.BEGUN and at_once >= int(self.width) and at_once + 1 < self._refused:
            # A stream holds its place for long, so one more than the accepted ones may be tried at once.
            self.width = min(at_once + 1.0, self._most)
        if ended.end in {End.OK, End.BEGUN, End.ANSWERED}:
            if pause is not None and began >= pause.closed:
                self._end_pause(pause, now)
            elif began >= self._row_since:
                self._row = 0
            return
        borne = min(max(int(_START), int(self.width)), max(1, at_once + waiting))
        self._refusal_s = now - began
        if ended.crowded:
            count = max(concurrent, at_once)  # attempts sent at once may arrive in any order
            self._lately.append((count, False))
            held_s = _HOLD * (_HOLD_S if ended.retry_after_s is None else ended.retry_after_s)
            accepted = [
                (attempt.concurrent, True)
                for attempt in under_way
                if now - attempt.started > self._compute_acceptance_threshold_s()
            ]
            self._shrink_width(count, [*self._lately, *accepted], now + min(_LONGEST_HOLD_S, held_s))
        if pause is not None:
            self._prolong_pause(pause, ended, now, old=began < pause.closed)
        elif self._count_failure_toward_pause(ended, began, now, borne, under_way):
            since = self._row_since
            self.pause = Pause(since, now, now, gone=ended.end is End.FAILED, reason=ended.reason)
            self._prolong_pause(self.pause, ended, now, old=False)

    def start_probe_or_end_pause(self, now: float) -> None:
        """Start a probe, or end the pause if the current probe has lasted longer than refusals do."""
        pause = self.pause
        if pause is not None and pause.probing:
            self._end_pause(pause, now)
        elif pause is not None:
            pause.probing, pause.trusted = True, now + self._compute_acceptance_threshold_s()

    def _end_pause(self, pause: Pause, now: float) -> None:
        self._paused_s += now - pause.closed
        self.pause, self._row = None, 0
        self.width = min(self.width, max(_START, self.width / 2))

    def _learn_whether_service_queues(self, concurrent: int, strain: float) -> bool:
        """Learn a queue in the service from the times of calls, which are longer among more of them."""
        earlier = self._strains.get(concurrent, strain)
        self._strains[concurrent] = typical = (earlier + strain) / 2
        if typical <= _STRAIN:
            return False
        self._queues = self._queues or any(
            typical >= max(1.5, _QUEUED * concurrent / fewer) * its
            for fewer, its in self._strains.items()
            if fewer < concurrent
        )
        if self._queues and concurrent > 1:
            self.width = max(1.0, min(self.width, concurrent * _STRAIN / typical))
        return self._queues

    def _grow_width(self, concurrent: int, now: float) -> None:
        """Grow with each success: fastest until the first refusal, slowest toward a refused width."""
        if concurrent >= self._refused and now >= self._held:
            borne = [(count, well) for count, well in self._lately if well or count > concurrent]
            self._lately = deque(borne, maxlen=_HISTORY)
            self._refused = math.inf
        if self._refused == math.inf:
            width = self.width + (_GROWTH if self._fresh else max(1.0 / self.width, _REGROWTH))
            self.width = min(width, self._most)
            return
        width = self.width + 1.0 / self.width
        if now >= self._held or width < self._refused:
            self.width = min(width, self._most)

    def _shrink_width(self, count: int, known: list[tuple[int, bool]], held: float) -> None:
        """Shrink below a width that is refused more often than smaller ones, and hold it for a while."""
        self._fresh = False
        self._refused = _find_smallest_refused_width(known)
        if count >= self._refused:
            self._held = max(self._held, held)
            self.width = min(self.width, self._refused - 1.0)

    def _count_failure_toward_pause(
        self, ended: AttemptEnd, began: float, now: float, borne: int, under_way: Iterable[SentAttempt]
    ) -> bool:
        """Count failures in a row; a full width of them starts a pause, unless one since then counts as accepted."""
        if self._row == 0:
            self._row, self._row_since = 1, now
        elif began >= self._row_since:
            self._row += 1
        if self._row >= borne:
            oldest = next(
                (attempt.started for attempt in under_way if attempt.started >= self._row_since), math.inf
            )
            if now - oldest <= self._compute_acceptance_threshold_s():
                return True
            self._row = 0
        return (ended.retry_after_s or 0.0) >= _QUOTA_S

    def _compute_acceptance_threshold_s(self) -> float:
        """Duration after which an attempt counts as accepted, because refusals are quicker."""
        return max(_TRUST_S, _TRUST * self._refusal_s)

    def _prolong_pause(self, pause: Pause, ended: AttemptEnd, now: float, *, old: bool) -> None:
        unreachable = ended.end is End.FAILED
        if ended.retry_after_s is not None:
            if now + ended.retry_after_s > pause.until:
                pause.until = now + self.add_jitter(ended.retry_after_s)
        elif not old:
            shortest, longest = (_FIRST_GONE_S, _LONGEST_GONE_S) if unreachable else (_FIRST_S, _LONGEST_S)
            step_s = min(longest, max(shortest, _SHARE * (now - pause.since)))
            pause.until = max(pause.until, now + self._rng.uniform(0.75 * step_s, step_s))
        if not old:
            pause.gone, pause.reason = unreachable, ended.reason


def _find_smallest_refused_width(known: list[tuple[int, bool]]) -> float:
    """The smallest width that is refused mostly, and far more often than smaller ones, of (concurrent, accepted)."""
    for least in sorted({count for count, well in known if not well and count > 1}):
        wide = [well for count, well in known if count >= least]
        narrow = [well for count, well in known if count < least]
        share = (narrow.count(False) + _PRIOR) / (len(narrow) + 2)
        if wide.count(False) >= max(0.5, _MORE * share) * len(wide) + 0.5:
            return least
    return math.inf
