"""Rate limits: operations per minute and concurrent operations, for each key and each service. Off by default.

A minute is a moving window: a limit of ten means that no sixty seconds contain more than ten. A refused request does
not count, so retries do not prolong the wait of a client.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections import deque
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

from speechlab.contract import RealtimeCode
from speechlab.service._faults import Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from speechlab.service._config.settings import ServiceConfig

LimitScope = Literal["key", "service"]

_WINDOW_S = 60.0
_CONCURRENT_RETRY_S = 1.0


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """Limits of a key; None leaves a limit unset, and 0 is no limit.

    Days and months are those of UTC; seconds are those of audio made or recognized.
    """

    requests_per_minute: int | None = None
    concurrent: int | None = None
    operations_per_day: int | None = None
    operations_per_month: int | None = None
    characters_per_day: int | None = None
    characters_per_month: int | None = None
    seconds_per_day: int | None = None
    seconds_per_month: int | None = None

    def over(self, other: KeyLimits) -> KeyLimits:
        """Return these limits, with another's in place of unset ones."""
        limits = {
            name: getattr(other, name) if (limit := getattr(self, name)) is None else limit
            for name in LIMIT_NAMES
        }
        return KeyLimits(**limits)


LIMIT_NAMES = tuple(field.name for field in fields(KeyLimits))
"""Names of the limits that a key can have."""
UNLIMITED = KeyLimits()


class NotAdmitted(Exception):  # noqa: N818 - a reply, not a failure of the service
    """A request over a limit, or one for which the limits could not be checked."""

    def __init__(
        self, scope: LimitScope, reason: str, *, retry_after_s: float, available: bool = True
    ) -> None:
        super().__init__(reason)
        self.scope = scope
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.available = available

    def fault(self, service: str) -> Fault:
        """The HTTP reply: 429, or 503 if the limiter failed."""
        headers = {"Retry-After": str(max(1, math.ceil(self.retry_after_s)))}
        kind = "ErrRateLimited" if self.available else "ErrOverloaded"
        return Fault(kind, self.reason, service, f"{self.scope}_limit", headers=headers)

    @property
    def realtime_code(self) -> RealtimeCode:
        """The code of ``tts.error``."""
        if self.scope == "key":
            return RealtimeCode.RATE_LIMITED if self.available else RealtimeCode.RATE_LIMITER_UNAVAILABLE
        if self.available:
            return RealtimeCode.SERVICE_RATE_LIMITED
        return RealtimeCode.SERVICE_RATE_LIMITER_UNAVAILABLE


class Place:
    """The place of one counted request, to be released at its end; only the first call of it has an effect."""

    def __init__(self, window: _Window | None, now: float = 0.0) -> None:
        self._window = window
        self._began = now
        if window is not None:
            window.times.append(now)
            window.running += 1

    def __call__(self) -> None:
        """Release the place at the end of the request."""
        if self._window is not None:
            self._window.running -= 1
            self._window = None

    def undo(self) -> None:
        """Undo the counting, for a request that was refused elsewhere."""
        window = self._window
        self()
        if window is not None:
            with contextlib.suppress(ValueError):  # older than a minute, and removed already
                window.times.remove(self._began)


class RateLimiter:
    """Limits within this process; used from the event loop only."""

    def __init__(self, config: ServiceConfig, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._key_limits = config.key_limits()
        self._rates = {str(name): limit for name, limit in config.service_requests_per_minute.items()}
        self._concurrent = {str(name): limit for name, limit in config.service_concurrent.items()}
        self._windows: dict[tuple[LimitScope, str], _Window] = {}

    def admit(self, scope: LimitScope, name: str, own: KeyLimits = UNLIMITED) -> Place:
        """Admit a request; raises NotAdmitted (a limit was reached)."""
        if scope == "key":
            per_minute, concurrent = self._key_limits
            whose = "this key"
        else:
            per_minute, concurrent = self._rates.get(name, 0), self._concurrent.get(name, 0)
            whose = f"the service {name!r}"
        per_minute = per_minute if own.requests_per_minute is None else own.requests_per_minute
        concurrent = concurrent if own.concurrent is None else own.concurrent
        if not (per_minute or concurrent):
            return Place(None)
        window = self._windows.setdefault((scope, name), _Window())
        now = self._clock()
        while window.times and window.times[0] <= now - _WINDOW_S:
            window.times.popleft()
        if concurrent and window.running >= concurrent:
            running = counted(concurrent, "requests")
            reason = f"{whose} has {running} running, which is its limit; wait for one of them"
            raise NotAdmitted(scope, reason, retry_after_s=_CONCURRENT_RETRY_S)
        if per_minute and len(window.times) >= per_minute:
            wait = window.times[-per_minute] + _WINDOW_S - now
            reason = f"{whose} may make {counted(per_minute, 'requests')} a minute; try again in {math.ceil(wait)} s"
            raise NotAdmitted(scope, reason, retry_after_s=wait)
        return Place(window, now)


def counted(number: int, units: str) -> str:
    """Write a count with its unit: ``1 request``, ``1,000 requests``."""
    return f"{number:,} {units.removesuffix('s') if number == 1 else units}"


class _Window:
    """The last minute of a key or a service."""

    def __init__(self) -> None:
        self.times: deque[float] = deque()
        self.running = 0
