"""The service's SQLite file, and a thread that writes to it.

Keys and usage are in ``service.sqlite`` of the data folder, in WAL mode, so that the command line can read and change
them while the service runs. One thread writes the usage, many rows in one transaction, so that the event loop never
waits for a disk or for a lock of another process.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sqlite3
import threading
import time
from typing import TYPE_CHECKING, Any

from platformdirs import user_data_path

from speechlab._sqlite import open_database, transaction
from speechlab.errors import StoreError
from speechlab.service._logs import log

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_FILE = "service.sqlite"
_BUSY_S = 10.0
_RETRY_S = 0.5
_MAX_WAITING = 100_000
_MIGRATIONS = (
    """
    CREATE TABLE keys (
        id TEXT PRIMARY KEY,
        digest BLOB NOT NULL UNIQUE,
        prefix TEXT NOT NULL,
        name TEXT NOT NULL,
        created REAL NOT NULL,
        expires REAL,
        last_used REAL,
        revoked REAL,
        providers TEXT,
        recognition INTEGER NOT NULL DEFAULT 1
    ) STRICT;
    CREATE TABLE usage (
        id INTEGER PRIMARY KEY,
        time REAL NOT NULL,
        key_id TEXT NOT NULL,
        operation TEXT NOT NULL,
        transport TEXT NOT NULL,
        provider TEXT NOT NULL,
        model TEXT NOT NULL,
        characters INTEGER NOT NULL,
        input_bytes INTEGER NOT NULL,
        audio_bytes INTEGER NOT NULL,
        audio_s REAL NOT NULL,
        prompt_tokens INTEGER NOT NULL,
        completion_tokens INTEGER NOT NULL,
        status TEXT NOT NULL
    ) STRICT;
    CREATE INDEX usage_by_time ON usage (time);
    """,
    "CREATE INDEX usage_by_key ON usage (key_id, time)",
    """
    CREATE TABLE limits (key_id TEXT PRIMARY KEY, limits TEXT NOT NULL) STRICT;
    ALTER TABLE keys ADD COLUMN voices TEXT;
    """,
)


def default_data_dir() -> Path:
    """Return the folder in which ``speechlab serve`` keeps keys and usage by default.

    Example:
        >>> default_data_dir().name
        'service'
    """
    return user_data_path("speechlab") / "service"


class Database:
    """``service.sqlite`` in a folder, which is created if it does not exist.

    Args:
        folder: The data folder.

    Raises:
        StoreError: The folder or the file cannot be used.

    Example:
        >>> database = Database(Path("data"))
        >>> Path("data/service.sqlite").exists()
        True
        >>> database.close()
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / _FILE
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            # SQLite gives the files beside it (-wal, -shm) the rights of this one.
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise StoreError(
                f"the service's data folder {folder} cannot be used: {error.strerror}; choose another with --data-dir"
            ) from error
        self._lock = threading.Lock()
        self._waiting: queue.SimpleQueue[tuple[str, Sequence[Any]] | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._closing = threading.Event()
        self.lost = 0
        with self._translated():
            self._db = self._connect()
            _migrate(self._db)

    @property
    def waiting(self) -> int:
        """Number of pending rows."""
        return self._waiting.qsize()

    def read(self, sql: str, parameters: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """Run a query; in WAL mode no writer blocks it.

        Raises:
            StoreError: The file cannot be read.
        """
        with self._lock, self._translated():
            return self._db.execute(sql, parameters).fetchall()

    def write(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Run one statement as a transaction, and return the number of changed rows.

        Raises:
            StoreError: The file cannot be written.
        """
        with self._lock, self._translated():
            return self._db.execute(sql, parameters).rowcount

    def write_later(self, sql: str, parameters: Sequence[Any]) -> None:
        """Pass a statement to the writing thread, without waiting."""
        if self._waiting.qsize() >= _MAX_WAITING:
            # If the disk stays full, the pending rows must not fill the memory too.
            self.lost += 1
            return
        self._waiting.put((sql, parameters))
        if self._writer is None:
            with self._lock:
                if self._writer is None:
                    self._writer = threading.Thread(
                        target=self._write_all, name="speechlab-ledger", daemon=True
                    )
                    self._writer.start()

    def close(self) -> None:
        """Write the pending rows, and close. The database cannot be used afterwards."""
        self._closing.set()
        if self._writer is not None:
            self._waiting.put(None)
            self._writer.join(_BUSY_S)
        self._db.close()

    def _connect(self) -> sqlite3.Connection:
        db = open_database(self._path, busy_s=_BUSY_S)
        db.row_factory = sqlite3.Row
        return db

    def _write_all(self) -> None:
        ended = False
        with contextlib.closing(self._connect()) as db:
            while not ended:
                rows, ended = self._taken()
                while rows:
                    try:
                        _write_rows(db, rows)
                        rows = []
                    except sqlite3.Error as error:
                        log(
                            "usage could not be written",
                            level="error",
                            error=type(error).__name__,
                            rows=len(rows),
                        )
                        if self._closing.is_set():
                            return
                        time.sleep(_RETRY_S)

    def _taken(self) -> tuple[list[tuple[str, Sequence[Any]]], bool]:
        """Wait for a row, and return all pending rows, and whether they are the last ones."""
        rows = []
        item = self._waiting.get()
        while item is not None:
            rows.append(item)
            try:
                item = self._waiting.get_nowait()
            except queue.Empty:
                return rows, False
        return rows, True

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(
                f"the service's file {self._path} cannot be used: {error}; see whether the disk is full, or move the "
                f"file away to begin a new one"
            ) from error


def _write_rows(db: sqlite3.Connection, rows: list[tuple[str, Sequence[Any]]]) -> None:
    with transaction(db):
        for sql, parameters in rows:
            db.execute(sql, parameters)


def _migrate(db: sqlite3.Connection) -> None:
    newest = len(_MIGRATIONS)
    if db.execute("PRAGMA user_version").fetchone()[0] == newest:
        return
    with transaction(db):
        # Read again, because another process may have migrated the file in the meantime.
        version = _known_version(db)
        for script in _MIGRATIONS[version:]:
            for statement in script.split(";"):
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {newest}")


def _known_version(db: sqlite3.Connection) -> int:
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    if version > len(_MIGRATIONS):
        raise sqlite3.DatabaseError(
            f"it was written by a newer version (schema {version}, known {len(_MIGRATIONS)})"
        )
    return version
