"""The ledger of usage: one row for each operation that reached an engine."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from speechlab.service._accounts.database import Database

Status = Literal["completed", "backend_error", "partial_backend_error", "cancelled"]
"""Outcome of an operation: as in ``tts.usage``, and ``cancelled`` if the client left."""

GROUPS = {
    "key": "key_id",
    "operation": "operation",
    "provider": "provider",
    "model": "model",
    "status": "status",
    "day": "date(time, 'unixepoch')",
}
"""Columns by which usage can be summed; days are those of UTC."""


@dataclass(frozen=True, slots=True)
class UsageRow:
    """The usage of one operation; its time is the Unix time in seconds of its end."""

    time: float
    key_id: str
    operation: str
    transport: str
    provider: str
    model: str
    characters: int
    input_bytes: int
    audio_bytes: int
    audio_s: float
    prompt_tokens: int
    completion_tokens: int
    status: Status


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """The summed usage of several operations; ``group`` has their common values, in the order of ``by``."""

    group: tuple[str, ...]
    operations: int
    failed: int
    cancelled: int
    characters: int
    input_bytes: int
    audio_bytes: int
    audio_s: float
    prompt_tokens: int
    completion_tokens: int


_COLUMNS = tuple(field.name for field in fields(UsageRow))
_INSERT = f"INSERT INTO usage ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608 - names of columns and placeholders; values are bound
_SUMMED = ("characters", "input_bytes", "audio_bytes", "audio_s", "prompt_tokens", "completion_tokens")


class Ledger:
    """The usage of a data folder."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, row: UsageRow) -> None:
        """Write a row later, without waiting."""
        self._database.write_later(_INSERT, tuple(asdict(row).values()))

    def rows(
        self, *, since: float = 0.0, until: float = float("inf"), key_id: str | None = None
    ) -> list[UsageRow]:
        rows = self._database.read(
            f"SELECT {', '.join(_COLUMNS)} FROM usage {_WHERE} ORDER BY time, id",  # noqa: S608 - our own names
            _bounds(since, until, key_id),
        )
        return [UsageRow(*row) for row in rows]

    def totals(
        self,
        by: tuple[str, ...] = ("key", "operation"),
        *,
        since: float = 0.0,
        until: float = float("inf"),
        key_id: str | None = None,
    ) -> list[UsageTotal]:
        """Sum the rows by common values."""
        for name in by:
            if name not in GROUPS:
                raise InvalidRequestError(
                    f"usage cannot be summed by {name!r}; it can by {', '.join(GROUPS)}"
                )
        groups = [GROUPS[name] for name in by]
        ended = "sum(status LIKE '%error'), sum(status = 'cancelled')"
        # Rounded: sums of seconds would otherwise end in 0000000001.
        sums = ", ".join(
            f"round(sum({name}), 6)" if name == "audio_s" else f"sum({name})" for name in _SUMMED
        )
        grouping = f"GROUP BY {', '.join(groups)} ORDER BY {', '.join(groups)}" if by else ""
        rows = self._database.read(
            f"SELECT {', '.join([*groups, ''])} count(*), {ended}, {sums} "  # noqa: S608 - names of columns and placeholders; values are bound
            f"FROM usage {_WHERE} {grouping}",
            _bounds(since, until, key_id),
        )
        return [UsageTotal(tuple(row[: len(by)]), *(value or 0 for value in row[len(by) :])) for row in rows]


_WHERE = "WHERE time >= ? AND time < ? AND (? IS NULL OR key_id = ?)"


def _bounds(since: float, until: float, key_id: str | None) -> tuple[Any, ...]:
    return (since, until, key_id, key_id)
