"""Limits of each key and each service by the minute and at once.

A minute is a moving window: a limit of ten means that no sixty seconds contain more than ten. A refused request does
not count, so retries do not prolong the wait of a client. Limits in the data folder are read for each operation, so
that a change takes effect at once.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Literal

import orjson

from speechlab.contract import RealtimeCode
from speechlab.display import format_count
from speechlab.errors import InvalidRequestError
from speechlab.service._faults import Fault

if TYPE_CHECKING:
    from speechlab.service._accounts.database import Database
    from speechlab.service._config import ServiceConfig

LimitScope = Literal["key", "service"]

_WINDOW_S = 60.0


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """Limits of a key or a service; None leaves a limit unset, and 0 is no limit."""

    requests_per_minute: int | None = None
    concurrent: int | None = None

    def fill_unset(self, other: KeyLimits) -> KeyLimits:
        """Return these limits, with another's in place of unset ones."""
        return replace(other, **self.to_dict_without_unset())

    def to_dict_without_unset(self) -> dict[str, int]:
        return {name: limit for name, limit in asdict(self).items() if limit is not None}


# Names of the limits that a key or a service can have.
LIMIT_NAMES = tuple(field.name for field in fields(KeyLimits))
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

    def to_fault(self, service: str) -> Fault:
        """Return the HTTP reply: 429, or 503 if the limiter failed."""
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

    def release_and_uncount(self) -> None:
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
        self._of_keys = KeyLimits(config.key_requests_per_minute, config.key_concurrent)
        rates, concurrent = config.service_requests_per_minute, config.service_concurrent
        self._of_services = {
            str(name): KeyLimits(rates.get(name), concurrent.get(name)) for name in rates | concurrent
        }
        self._windows: dict[tuple[LimitScope, str], _Window] = {}

    def admit_request(self, scope: LimitScope, name: str, own: KeyLimits = UNLIMITED) -> Place:
        """Admit a request; raises NotAdmitted (a limit was reached)."""
        if scope == "key":
            limits, whose = own.fill_unset(self._of_keys), "this key"
        else:
            limits = own.fill_unset(self._of_services.get(name, UNLIMITED))
            whose = f"the service {name!r}"
        per_minute, concurrent = limits.requests_per_minute, limits.concurrent
        if not (per_minute or concurrent):
            return Place(None)
        window = self._windows.setdefault((scope, name), _Window())
        now = self._clock()
        while window.times and window.times[0] <= now - _WINDOW_S:
            window.times.popleft()
        if concurrent and window.running >= concurrent:
            running = format_count(concurrent, "request")
            reason = f"{whose} has {running} running, which is its limit; wait for one of them"
            raise NotAdmitted(scope, reason, retry_after_s=1.0)
        if per_minute and len(window.times) >= per_minute:
            wait = window.times[-per_minute] + _WINDOW_S - now
            allowed = format_count(per_minute, "request")
            reason = f"{whose} may make {allowed} a minute; try again in {math.ceil(wait)} s"
            raise NotAdmitted(scope, reason, retry_after_s=wait)
        return Place(window, now)


class _Window:
    """The last minute of a key or a service."""

    def __init__(self) -> None:
        self.times: deque[float] = deque()
        self.running = 0


# Name for all keys without a limit of their own.
EVERY_KEY = "all"
_MOST = 10**15


class StoredLimits:
    """The limits of keys and services in a data folder."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read_effective_limits(self, key_id: str) -> KeyLimits:
        """Return the effective limits of a key: its own, and those for every key in place of unset ones."""
        limits = self._read_limits("WHERE key_id IN (?, ?)", key_id, EVERY_KEY)
        return limits.get(key_id, UNLIMITED).fill_unset(limits.get(EVERY_KEY, UNLIMITED))

    def read_service_limits(self, name: str) -> KeyLimits:
        """Return the limits of a service, for all keys together."""
        key_id = f"service:{name}"
        return self._read_limits("WHERE key_id = ?", key_id).get(key_id, UNLIMITED)

    def read_set_limits(self) -> dict[str, KeyLimits]:
        """Return the limits that were set, by key id."""
        return self._read_limits("ORDER BY key_id")

    def _read_limits(self, which: str, *parameters: str) -> dict[str, KeyLimits]:
        rows = self._database.read(f"SELECT key_id, limits FROM limits {which}", parameters)  # noqa: S608 - our own
        return {row["key_id"]: KeyLimits(**orjson.loads(row["limits"])) for row in rows}

    def change_limits(self, key_id: str, changes: Mapping[str, int | None]) -> KeyLimits:
        """Change limits of a key or a service; takes effect from the next operation on."""
        for name, value in changes.items():
            if name not in LIMIT_NAMES:
                raise InvalidRequestError(
                    f"{key_id} has no limit {name!r}; there are {', '.join(LIMIT_NAMES)}"
                )
            if value is not None and not 0 <= value <= _MOST:
                raise InvalidRequestError(f"{name} is {value:,}, and must be 0 (no limit) to {_MOST:,}")
        limits = replace(self.read_set_limits().get(key_id, UNLIMITED), **changes)
        if stored := limits.to_dict_without_unset():
            self._database.write(
                "INSERT OR REPLACE INTO limits (key_id, limits) VALUES (?, ?)",
                (key_id, orjson.dumps(stored).decode()),
            )
        else:
            self._database.write("DELETE FROM limits WHERE key_id = ?", (key_id,))
        return limits
