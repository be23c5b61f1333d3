"""Records of runs, the parts of their tables, and the timing and frames of replies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from speechlab.errors import StoreError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from speechlab.store._blobs import BlobFolder

PART_SUFFIX = ".parquet"
"""Ending of the files that hold the parts of a run's table."""
_COLUMNS = "id, operation, status, started, ended, manifest"


@dataclass(frozen=True, slots=True)
class RunPart:
    """A piece of a run's table: the SHA-256 of its file and its number of rows."""

    sha256: str
    rows: int


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The record of a run; times are Unix times in seconds."""

    id: str
    operation: str
    status: str  # "running", also after a crash, or how it ended
    started: float
    ended: float | None = None  # by a monotonic clock
    manifest: dict[str, Any] = field(default_factory=dict)  # without a credential
    parts: tuple[RunPart, ...] = ()  # of the table, in order


class RecordTables:
    """The part of :class:`~speechlab.store.Store` that keeps runs, and facts of replies."""

    path: Path
    blobs: BlobFolder
    _db: sqlite3.Connection

    if TYPE_CHECKING:

        def _translated(self) -> AbstractContextManager[None]: ...

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[Any]:
        """The rows of a query."""
        with self._translated():
            return self._db.execute(query, values).fetchall()

    def save_run(self, record: RunRecord) -> None:
        """Write or update the record of a run. :meth:`add_part` adds the parts."""
        manifest = orjson.dumps(record.manifest, option=orjson.OPT_SORT_KEYS).decode()
        row = (record.id, record.operation, record.status, record.started, record.ended, manifest)
        with self._translated():
            self._db.execute(
                f"INSERT INTO runs ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "  # noqa: S608 - names of columns and placeholders; values are bound
                "status = excluded.status, ended = excluded.ended, manifest = excluded.manifest",
                row,
            )

    def add_part(self, run: str, table: bytes, rows: int) -> RunPart:
        """Keep the next piece of a run's table: a Parquet file, with its number of rows."""
        part = RunPart(self.blobs.add(table, PART_SUFFIX).sha256, rows)
        with self._translated():
            self._db.execute(
                "INSERT INTO run_parts SELECT ?, coalesce(max(number), -1) + 1, ?, ? FROM run_parts WHERE run = ?",
                (run, part.sha256, part.rows, run),
            )
        return part

    def run(self, run: str) -> RunRecord:
        """Return a run by its id."""
        rows = self._rows(f"SELECT {_COLUMNS} FROM runs WHERE id = ?", (run,))  # noqa: S608 - names of columns and placeholders; values are bound
        if not rows:
            latest = ", ".join(record.id for record in self.runs()[-3:]) or "none"
            raise StoreError(f"the store {self.path} has no run {run!r}; its latest are: {latest}")
        return self._record(rows[0])

    def runs(self) -> list[RunRecord]:
        """Return all runs in the order of their beginnings, independent of the system clock."""
        return [self._record(row) for row in self._rows(f"SELECT {_COLUMNS} FROM runs ORDER BY rowid")]  # noqa: S608 - names of columns and placeholders; values are bound

    def part_path(self, part: RunPart) -> Path:
        """Return the Parquet file of a part."""
        return self.blobs.path(part.sha256, PART_SUFFIX)

    def _record(self, row: tuple[Any, ...]) -> RunRecord:
        run, operation, status, started, ended, manifest = row
        rows = self._rows("SELECT sha256, rows FROM run_parts WHERE run = ? ORDER BY number", (run,))
        kept = tuple(RunPart(*part) for part in rows)
        return RunRecord(run, operation, status, started, ended, orjson.loads(manifest), kept)

    def keep_facts(self, key: str, facts: dict[str, Any]) -> None:
        """Keep the timing and frames of the reply to a request, without a credential; earlier ones are replaced."""
        with self._translated():
            self._db.execute(
                "INSERT INTO replies VALUES (?, ?) ON CONFLICT(key) DO UPDATE SET facts = excluded.facts",
                (key, orjson.dumps(facts).decode()),
            )

    def facts(self, key: str) -> dict[str, Any]:
        """Return the timing and frames of the reply to a request; empty if the store has none."""
        rows = self._rows("SELECT facts FROM replies WHERE key = ?", (key,))
        facts: dict[str, Any] = orjson.loads(rows[0][0]) if rows else {}
        return facts

    def newest(self, operation: str, limit: int = 1) -> list[tuple[str, dict[str, Any]]]:
        """Return keys and parameters of the newest results of an operation, the last written first."""
        query = "SELECT key, request FROM results WHERE operation = ? ORDER BY rowid DESC LIMIT ?"
        return [(key, orjson.loads(request)) for key, request in self._rows(query, (operation, limit))]
