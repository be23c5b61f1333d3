"""Limits of single keys and of services, and the use of quotas by keys; kept in the data folder.

The limits are read for each operation, so that a change takes effect at once. Use is summed from the ledger at the
start, and counted from then on.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import orjson

from speechlab.errors import InvalidRequestError
from speechlab.service._accounts.limits import LIMIT_NAMES, UNLIMITED, KeyLimits, NotAdmitted, counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from speechlab.service._accounts.database import Database
    from speechlab.service._accounts.ledger import UsageRow

EVERY_KEY = "all"
"""Name for all keys without a limit of their own."""
SERVICES = {f"service:{name}": name for name in ("tts", "asr", "translate")}
"""Names for all keys together, in one service."""
_OF_SERVICES = ("requests_per_minute", "concurrent")
_UNITS = ("operations", "characters", "seconds")
_WINDOWS = ("day", "month")
_MOST = 10**15


class Quotas:
    """The limits of the keys of a data folder."""

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock
        self._ends = dict.fromkeys(_WINDOWS, float("-inf"))
        self._used: dict[str, dict[str, list[float]]] = {window: _nothing() for window in _WINDOWS}

    # Limits

    def limits_of(self, key_id: str) -> KeyLimits:
        """Return the effective limits of a key: its own, and those for every key in place of unset ones."""
        rows = self._database.read(
            "SELECT key_id, limits FROM limits WHERE key_id IN (?, ?)", (key_id, EVERY_KEY)
        )
        limits = {row["key_id"]: KeyLimits(**orjson.loads(row["limits"])) for row in rows}
        return limits.get(key_id, UNLIMITED).over(limits.get(EVERY_KEY, UNLIMITED))

    def limits_of_service(self, name: str) -> KeyLimits:
        """Return the limits for all keys together."""
        rows = self._database.read("SELECT limits FROM limits WHERE key_id = ?", (f"service:{name}",))
        return KeyLimits(**orjson.loads(rows[0]["limits"])) if rows else UNLIMITED

    def own_limits(self) -> dict[str, KeyLimits]:
        """Return the limits that were set, by key id."""
        rows = self._database.read("SELECT key_id, limits FROM limits ORDER BY key_id")
        return {row["key_id"]: KeyLimits(**orjson.loads(row["limits"])) for row in rows}

    def change(self, key_id: str, changes: Mapping[str, int | None]) -> KeyLimits:
        """Change limits of a key or a service; takes effect from the next operation on."""
        names = _OF_SERVICES if key_id in SERVICES else LIMIT_NAMES
        for name, value in changes.items():
            if name not in names:
                raise InvalidRequestError(f"{key_id} has no limit {name!r}; there are {', '.join(names)}")
            if value is not None and not 0 <= value <= _MOST:
                raise InvalidRequestError(f"{name} is {value:,}, and must be 0 (no limit) to {_MOST:,}")
        limits = replace(self.own_limits().get(key_id, UNLIMITED), **changes)
        stored = {name: value for name, value in asdict(limits).items() if value is not None}
        if stored:
            self._database.write(
                "INSERT OR REPLACE INTO limits (key_id, limits) VALUES (?, ?)",
                (key_id, orjson.dumps(stored).decode()),
            )
        else:
            self._database.write("DELETE FROM limits WHERE key_id = ?", (key_id,))
        return limits

    # Use

    def load(self) -> None:
        """Sum the use of today and of this month from the ledger. Blocks."""
        now = self._clock()
        for window in _WINDOWS:
            begin, self._ends[window] = _bounds(window, now)
            self._used[window] = _nothing()
            rows = self._database.read(
                "SELECT key_id, count(*), sum(characters), sum(audio_s) FROM usage WHERE time >= ? GROUP BY key_id",
                (begin,),
            )
            self._used[window].update({row[0]: [float(value) for value in row[1:]] for row in rows})

    def used(self, row: UsageRow) -> None:
        """Count an operation."""
        self._turn_over()
        for window in _WINDOWS:
            counts = self._used[window][row.key_id]
            for place, amount in enumerate((1, row.characters, row.audio_s)):
                counts[place] += amount

    def check(self, key_id: str, limits: KeyLimits) -> None:
        """Refuse a key that has used up a quota."""
        self._turn_over()
        for window in reversed(_WINDOWS):  # the longer wait is reported
            counts = self._used[window].get(key_id, (0.0,) * len(_UNITS))
            for unit, used in zip(_UNITS, counts, strict=True):
                limit = getattr(limits, f"{unit}_per_{window}")
                if limit and used >= limit:
                    wait = max(1.0, self._ends[window] - self._clock())
                    reason = f"this key has used its {counted(limit, unit)} of this {window} (UTC)"
                    raise NotAdmitted("key", f"{reason}; try again in {_said(wait)}", retry_after_s=wait)

    def _turn_over(self) -> None:
        """Reset the use at the start of a day or month."""
        now = self._clock()
        for window in _WINDOWS:
            if now >= self._ends[window]:
                self._ends[window] = _bounds(window, now)[1]
                self._used[window] = _nothing()


def _nothing() -> defaultdict[str, list[float]]:
    return defaultdict(lambda: [0.0] * len(_UNITS))


def _bounds(window: str, now: float) -> tuple[float, float]:
    """Unix times of the start and the end of the day or month of a time, in UTC."""
    day = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if window == "day":
        return day.timestamp(), (day + timedelta(days=1)).timestamp()
    first = day.replace(day=1)
    return first.timestamp(), (first + timedelta(days=32)).replace(day=1).timestamp()


def _said(seconds: float) -> str:
    hours = seconds / 3600
    return f"{math.ceil(hours / 24)} days" if hours > 48 else f"{math.ceil(hours)} h"
