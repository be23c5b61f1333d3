"""The ledger of usage: one row for each operation that reached an engine."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from speechlab.service._accounts.database import Database

Status = Literal["completed", "backend_error", "partial_backend_error", "cancelled"]
"""How an operation ended: as in ``tts.usage``, and ``cancelled`` where the client left."""

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
    """The usage of one operation.

    Attributes:
        time: Unix time in seconds of its end.
        key_id: Whose it was.
        operation: ``"tts"``, ``"asr"`` or ``"translate"``.
        transport: ``"http"`` or ``"websocket"``.
        provider: Which provider or engine.
        model: Id of the model.
        characters: Unicode code points of the text given.
        input_bytes: Bytes of that text in UTF-8, or of the recording given.
        audio_bytes: Bytes of the audio made.
        audio_s: Seconds of the audio made or heard.
        prompt_tokens: Tokens read.
        completion_tokens: Tokens written.
        status: How it ended.
    """

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
    """The summed usage of several operations; see :class:`UsageRow` for the units.

    Attributes:
        group: What they have in common, in the order asked for.
        operations: How many there were.
        failed: How many of them an engine failed.
        cancelled: How many of them their clients left.
    """

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
_INSERT = f"INSERT INTO usage ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608
_SUMMED = ("characters", "input_bytes", "audio_bytes", "audio_s", "prompt_tokens", "completion_tokens")


class Ledger:
    """The usage of a data folder.

    Args:
        database: The folder's database.

    Example:
        >>> database = Database(Path("data"))
        >>> Ledger(database).totals()
        []
        >>> database.close()
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, row: UsageRow) -> None:
        """Write a row, soon; returns at once."""
        self._database.write_later(_INSERT, tuple(asdict(row).values()))

    def carry_over(self, key_ids: Sequence[str]) -> None:
        """Give rows of versions that knew the settings' keys by their position the ids of today.

        Such rows say ``key-1`` for the first key. What no key of the settings stands for any more becomes
        ``former-key-7``, so that no later key takes it over.

        Args:
            key_ids: Ids of the settings' keys, in their order.
        """
        numbers = self._database.read(
            "SELECT DISTINCT key_id FROM usage WHERE key_id GLOB 'key-[0-9]*'"  # what versions before 0.2 wrote
        )
        for (former,) in numbers:
            number = int(former.removeprefix("key-")) - 1
            known = key_ids[number] if 0 <= number < len(key_ids) else f"former-{former}"
            self._database.write("UPDATE usage SET key_id = ? WHERE key_id = ?", (known, former))

    def rows(
        self, *, since: float = 0.0, until: float = float("inf"), key_id: str | None = None
    ) -> list[UsageRow]:
        """Return rows in the order of time.

        Args:
            since: Unix time in seconds, included.
            until: Unix time in seconds, not included.
            key_id: Only those of a key.
        """
        found = self._database.read(
            f"SELECT {', '.join(_COLUMNS)} FROM usage {_WHERE} ORDER BY time, id",  # noqa: S608 - our own names
            _bounds(since, until, key_id),
        )
        return [UsageRow(*row) for row in found]

    def totals(
        self,
        by: tuple[str, ...] = ("key", "operation"),
        *,
        since: float = 0.0,
        until: float = float("inf"),
        key_id: str | None = None,
    ) -> list[UsageTotal]:
        """Sum the rows by what they have in common.

        Args:
            by: Some of ``key``, ``operation``, ``provider``, ``model``, ``status`` and ``day`` (of UTC).
            since: Unix time in seconds, included.
            until: Unix time in seconds, not included.
            key_id: Only those of a key.

        Raises:
            InvalidRequestError: Usage cannot be summed by one of these.
        """
        for name in by:
            if name not in GROUPS:
                raise InvalidRequestError(
                    f"usage cannot be summed by {name!r}; it can by {', '.join(GROUPS)}"
                )
        groups = [GROUPS[name] for name in by]
        ended = "sum(status LIKE '%error'), sum(status = 'cancelled')"
        # Sums of seconds would otherwise end in 0000000001.
        sums = ", ".join(
            f"round(sum({name}), 6)" if name == "audio_s" else f"sum({name})" for name in _SUMMED
        )
        grouping = f"GROUP BY {', '.join(groups)} ORDER BY {', '.join(groups)}" if by else ""
        found = self._database.read(
            f"SELECT {', '.join([*groups, ''])} count(*), {ended}, {sums} "  # noqa: S608
            f"FROM usage {_WHERE} {grouping}",
            _bounds(since, until, key_id),
        )
        return [UsageTotal(tuple(row[: len(by)]), *(value or 0 for value in row[len(by) :])) for row in found]


_WHERE = "WHERE time >= ? AND time < ? AND (? IS NULL OR key_id = ?)"


def _bounds(since: float, until: float, key_id: str | None) -> tuple[Any, ...]:
    return (since, until, key_id, key_id)
