"""What a service bears, learned from how attempts end: how many at once, and when not to ask at all.

A state machine without clocks, locks or tasks; times are seconds of the caller's clock.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from speechlab.client._clock import Random

_START = 4.0
_GROWTH = 0.5
"""Growth with each success until the first refusal."""
_REGROWTH = 0.1
"""Least growth with each success after it."""
_QUOTA_S = 5.0
"""A wait of this length that a service asks for concerns everyone at once; a shorter one only its call."""
_FIRST_S = 0.5
_LONGEST_S = 60.0
_FIRST_GONE_S = 0.25
_LONGEST_GONE_S = 5.0
_SHARE = 0.3
"""Longest wait for the next probe, as a share of the time for which a service has refused or not been there."""
_JITTER = 0.05
_HOLD = 10.0
"""A width that was refused is not tried again for this many times as long as the refused call has to wait."""
_HOLD_S = 0.1
"""How long such a call waits if the service asked for no time."""
_LONGEST_HOLD_S = 60.0
_LATELY = 64
"""Attempts that are remembered: how many were under way, and whether it was borne."""
_PRIOR = 0.3
"""Of two attempts that nobody made, how many were refused: few attempts that were borne do not mean that all are."""
_MORE = 5.0
"""How many times as often as smaller widths one has to be refused for the width to be the reason."""
_TRUST = 4.0
_TRUST_S = 0.03
"""An attempt is taken for accepted after this many times as long as the last refusal took, or this time."""


class End(Enum):
    """How an attempt ended, as far as it tells something about the service."""

    OK = auto()
    """It succeeded."""
    BEGUN = auto()
    """It was accepted, and its stream has begun."""
    ANSWERED = auto()
    """The service is there: it refused the request as wrong."""
    LATER = auto()
    """The service said "later"."""
    FAILED = auto()
    """No reply came, or one that says that the service is not there."""
    UNKNOWN = auto()
    """It was cancelled, or its end says nothing."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of an attempt.

    Attributes:
        end: How it ended.
        crowded: Whether fewer attempts at once may help.
        retry_after_s: Seconds that the service asked to wait, or None.
        reason: What the service said, for errors of calls that wait because of it.
    """

    end: End
    crowded: bool = False
    retry_after_s: float | None = None
    reason: str = ""


class SentAttempt(Protocol):
    """An attempt under way, as far as it matters for others.

    Attributes:
        started: When it was sent.
        beside: Attempts under way by then, itself included.
    """

    started: float
    beside: int


@dataclass(slots=True)
class Pause:
    """A time in which nothing is sent but one probe after the other.

    Attributes:
        since: When the service last seemed well.
        closed: When the pause began.
        until: When the next probe may be sent.
        gone: True if the service is not there; False if it says "later".
        reason: What it said last.
        probing: Whether a probe is under way.
        trusted: When the probe has been under way for so long that it was not refused.
    """

    since: float
    closed: float
    until: float
    gone: bool
    reason: str
    probing: bool = False
    trusted: float = 0.0

    @property
    def next(self) -> float:
        """When something may be sent again."""
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
        self._lately: deque[tuple[int, bool]] = deque(maxlen=_LATELY)
        self._refused = math.inf
        self._held = -math.inf
        self._fresh = True
        self._row = 0
        self._row_since = 0.0

    def unpaused(self, now: float) -> float:
        """The time without the pauses: a clock that stands still while nothing may be sent."""
        pause = self.pause
        return now - self._paused_s - (now - pause.closed if pause is not None else 0.0)

    def jittered(self, seconds: float) -> float:
        """A wait that a service asked for, with a little jitter, so that calls do not come back together."""
        return seconds + self._rng.uniform(0.0, min(0.25, _JITTER * seconds))

    def ended(
        self,
        ended: Ended,
        *,
        began: float,
        now: float,
        under_way: Collection[SentAttempt],
        present: int,
        beside: int,
        probe: bool,
    ) -> None:
        """Learn from an attempt.

        Args:
            ended: How it ended.
            began: When it was sent.
            now: The time.
            under_way: Attempts under way, this one included, the oldest first.
            present: Calls under way or waiting, this one included.
            beside: Attempts under way when it was sent, itself included.
            probe: Whether it was the probe of a pause.
        """
        pause, at_once = self.pause, len(under_way)
        if probe and pause is not None:
            pause.probing = False
        if ended.end is End.UNKNOWN:
            return
        if ended.end is End.OK:
            self.successes += 1
            self._lately.append((beside, True))
            # Only a width that is in use proves anything about a greater one.
            if at_once >= int(self.width):
                self._grow(beside, now)
        if ended.end is End.BEGUN and at_once >= int(self.width) and at_once + 1 < self._refused:
            # A stream holds its place for long: one more than those that were accepted may be tried at once.
            self.width = at_once + 1.0
        if ended.end in {End.OK, End.BEGUN, End.ANSWERED}:
            if pause is not None and began >= pause.closed:
                self._open(pause, now)
            elif began >= self._row_since:
                self._row = 0
            return
        borne = min(max(int(_START), int(self.width)), max(1, present))
        self._refusal_s = now - began
        if ended.crowded:
            count = max(beside, at_once)  # those that are sent at once may come there in any order
            self._lately.append((count, False))
            held_s = _HOLD * (_HOLD_S if ended.retry_after_s is None else ended.retry_after_s)
            accepted = [(one.beside, True) for one in under_way if now - one.started > self._accepted_s()]
            self._shrink(count, [*self._lately, *accepted], now + min(_LONGEST_HOLD_S, held_s))
        if pause is not None:
            self._prolong(pause, ended, now, old=began < pause.closed)
        elif self._is_down(ended, began, now, borne, under_way):
            since = self._row_since
            self.pause = Pause(since, now, now, gone=ended.end is End.FAILED, reason=ended.reason)
            self._prolong(self.pause, ended, now, old=False)

    def probe(self, now: float) -> None:
        """Begin a probe, or end the pause because the one under way has outlived what refusals take."""
        pause = self.pause
        if pause is not None and pause.probing:
            self._open(pause, now)
        elif pause is not None:
            pause.probing, pause.trusted = True, now + self._accepted_s()

    def _open(self, pause: Pause, now: float) -> None:
        self._paused_s += now - pause.closed
        self.pause, self._row = None, 0
        self.width = min(self.width, max(_START, self.width / 2))

    def _grow(self, beside: int, now: float) -> None:
        """Grow with each success: most until the first refusal, and least towards a width that was refused."""
        if beside >= self._refused and now >= self._held:
            borne = [(count, well) for count, well in self._lately if well or count > beside]
            self._lately = deque(borne, maxlen=_LATELY)
            self._refused = math.inf
        if self._refused == math.inf:
            self.width += _GROWTH if self._fresh else max(1.0 / self.width, _REGROWTH)
            return
        width = self.width + 1.0 / self.width
        if now >= self._held or width < self._refused:
            self.width = width

    def _shrink(self, count: int, known: list[tuple[int, bool]], held: float) -> None:
        """Shrink below a width that is refused more often than smaller ones, and keep it there for a while.

        Refusals that come at any width have another reason, and a smaller width would not help.
        """
        self._fresh = False
        self._refused = _too_much(known)
        if count >= self._refused:
            self._held = max(self._held, held)
            self.width = min(self.width, self._refused - 1.0)

    def _is_down(
        self, ended: Ended, began: float, now: float, borne: int, under_way: Iterable[SentAttempt]
    ) -> bool:
        """Count failures in a row; as many as may be under way at once are a pause, if nothing is accepted beside."""
        if self._row == 0:
            self._row, self._row_since = 1, now
        elif began >= self._row_since:
            self._row += 1
        if self._row >= borne:
            oldest = next((one.started for one in under_way if one.started >= self._row_since), math.inf)
            if now - oldest <= self._accepted_s():
                return True
            self._row = 0
        return (ended.retry_after_s or 0.0) >= _QUOTA_S

    def _accepted_s(self) -> float:
        """After this time an attempt is taken for accepted: it has outlived what refusals take."""
        return max(_TRUST_S, _TRUST * self._refusal_s)

    def _prolong(self, pause: Pause, ended: Ended, now: float, *, old: bool) -> None:
        gone = ended.end is End.FAILED
        if ended.retry_after_s is not None:
            if now + ended.retry_after_s > pause.until:
                pause.until = now + self.jittered(ended.retry_after_s)
        elif not old:
            shortest, longest = (_FIRST_GONE_S, _LONGEST_GONE_S) if gone else (_FIRST_S, _LONGEST_S)
            step_s = min(longest, max(shortest, _SHARE * (now - pause.since)))
            pause.until = max(pause.until, now + self._rng.uniform(0.75 * step_s, step_s))
        if not old:
            pause.gone, pause.reason = gone, ended.reason


def _too_much(known: list[tuple[int, bool]]) -> float:
    """The smallest width that is refused in most cases, and much more often than smaller ones.

    Args:
        known: Of attempts, how many were under way, and whether it was borne.
    """
    for least in sorted({count for count, well in known if not well and count > 1}):
        wide = [well for count, well in known if count >= least]
        narrow = [well for count, well in known if count < least]
        share = (narrow.count(False) + _PRIOR) / (len(narrow) + 2)
        if wide.count(False) >= max(0.5, _MORE * share) * len(wide) + 0.5:
            return least
    return math.inf
