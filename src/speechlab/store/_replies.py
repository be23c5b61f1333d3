"""Timing and frames of replies, for replaying them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    import sqlite3
    from contextlib import AbstractContextManager


class ReplyTable:
    """The part of a store that keeps the timing and frames of replies."""

    _db: sqlite3.Connection

    if TYPE_CHECKING:

        def _translated(self) -> AbstractContextManager[None]: ...

    def keep_facts(self, key: str, facts: dict[str, Any]) -> None:
        """Keep the timing and frames of the reply to a request; earlier ones are replaced.

        Args:
            key: Key of the request.
            facts: JSON values, without a credential.

        Raises:
            StoreError: The store cannot be written.
        """
        with self._translated():
            self._db.execute(
                "INSERT INTO replies VALUES (?, ?) ON CONFLICT(key) DO UPDATE SET facts = excluded.facts",
                (key, orjson.dumps(facts).decode()),
            )

    def facts(self, key: str) -> dict[str, Any]:
        """Return the timing and frames of the reply to a request; empty if the store has none."""
        with self._translated():
            row = self._db.execute("SELECT facts FROM replies WHERE key = ?", (key,)).fetchone()
        facts: dict[str, Any] = {} if row is None else orjson.loads(row[0])
        return facts

    def newest(self, operation: str, limit: int = 1) -> list[tuple[str, dict[str, Any]]]:
        """Return keys and parameters of the newest results of an operation, the last written first.

        Args:
            operation: Name of the operation.
            limit: Maximum number of results.
        """
        with self._translated():
            rows = self._db.execute(
                "SELECT key, request FROM results WHERE operation = ? ORDER BY rowid DESC LIMIT ?",
                (operation, limit),
            ).fetchall()
        return [(key, orjson.loads(request)) for key, request in rows]
