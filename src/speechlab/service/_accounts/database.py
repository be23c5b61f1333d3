"""The service's SQLite file, and a thread that writes to it.

Keys and usage are in ``service.sqlite`` of the data folder, in WAL mode, so that the command line can read and change
them while the service runs. One thread writes the usage, many rows in one transaction, so that the event loop never
waits for a disk or for a lock of another process.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from filelock import FileLock, Timeout
from platformdirs import user_data_path

from speechlab._sqlite import create_tables_if_new, open_database, transaction
from speechlab.errors import StoreError
from speechlab.service._logs import log

Statement = tuple[str, "Sequence[Any]"]

_BUSY_S = 10.0
_RETRY_S = 0.5
_SCHEMA = """
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
    recognition INTEGER NOT NULL DEFAULT 1,
    voices TEXT
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
CREATE INDEX usage_by_key ON usage (key_id, time);
CREATE TABLE limits (key_id TEXT PRIMARY KEY, limits TEXT NOT NULL) STRICT;
"""
_SCHEMA_VERSION = 1


def resolve_default_data_dir() -> Path:
    """Return the folder in which ``speechlab serve`` keeps keys and usage by default."""
    return user_data_path("speechlab") / "service"


class Database:
    """``service.sqlite`` in a folder, which is created if it does not exist."""

    def __init__(self, folder: Path, *, serving: bool = False) -> None:
        self.folder = folder
        self._path, self._journal = folder / "service.sqlite", folder / "usage-left.jsonl"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            # SQLite gives its other files (-wal, -shm) the rights of this one.
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise StoreError(
                f"the service's data folder {folder} cannot be used: {error.strerror}; choose another with --data-dir"
            ) from error
        self._lock = threading.Lock()
        self._rows: list[Statement] = []
        self._given = threading.Condition()
        self._writer: threading.Thread | None = None
        self._closing = threading.Event()
        self._serving = FileLock(folder / "service.lock", timeout=0, mode=0o600, thread_local=False)
        self.failing = False
        self.lost = 0
        if serving:
            try:
                self._serving.acquire()
            except Timeout:
                used = f"another service uses the data folder {folder}"
                raise StoreError(f"{used}; stop it, or choose another with --data-dir") from None
        try:
            with self._convert_sqlite_errors():
                self._db = self._open_connection()
            if serving:
                self._import_journal()
        except BaseException:
            self._serving.release()
            raise

    @property
    def pending_count(self) -> int:
        """Number of pending rows."""
        return len(self._rows)

    def read(self, sql: str, parameters: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """Run a query; in WAL mode no writer blocks it."""
        with self._lock, self._convert_sqlite_errors():
            return self._db.execute(sql, parameters).fetchall()

    def write(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> int:
        """Run one statement as a transaction, and return the number of changed rows."""
        with self._lock, self._convert_sqlite_errors():
            return self._db.execute(sql, parameters).rowcount

    def write_later(self, sql: str, parameters: Sequence[Any]) -> None:
        """Pass a statement to the writing thread, without waiting."""
        with self._given:
            if len(self._rows) >= 100_000:
                # If the disk stays full, the pending rows must not fill the memory too.
                self.lost += 1
                return
            self._rows.append((sql, parameters))
            if self._writer is None:
                self._writer = threading.Thread(
                    target=self._write_rows_until_closed, name="speechlab-ledger", daemon=True
                )
                self._writer.start()
            self._given.notify()

    def close(self) -> None:
        """Write the pending rows, or leave them for the next start, and close. Not usable afterwards."""
        self._closing.set()
        if self._writer is not None:
            with self._given:
                self._given.notify()
            self._writer.join(_BUSY_S + _RETRY_S)  # its last try may wait for a lock so long
        with self._given:
            self._write_journal()
        self._db.close()
        self._serving.release()

    def _open_connection(self) -> sqlite3.Connection:
        db = open_database(self._path, busy_s=_BUSY_S)
        db.row_factory = sqlite3.Row
        try:
            create_tables_if_new(db, self._path, _SCHEMA, _SCHEMA_VERSION)
        except BaseException:
            db.close()
            raise
        return db

    def _write_rows_until_closed(self) -> None:
        db: sqlite3.Connection | None = None
        while rows := self._wait_for_rows():
            try:
                db = db or self._open_connection()
                _write_rows(db, rows)
            except (sqlite3.Error, OSError, StoreError) as error:
                self.failing = True
                kind = type(error).__name__
                log("usage cannot be written", level="error", once_a_minute=True, error=kind, rows=len(rows))
                if db is not None:
                    db.close()
                db = None  # the file may be another one by now
                if self._closing.wait(_RETRY_S):
                    break
            else:
                self.failing = False
                with self._given:
                    del self._rows[: len(rows)]
        if db is not None:
            db.close()

    def _wait_for_rows(self) -> list[Statement]:
        """Wait for rows, and return all that are pending; none at the end."""
        with self._given:
            while not (self._rows or self._closing.is_set()):
                self._given.wait()
            return list(self._rows)

    def _write_journal(self) -> None:
        """Write the pending rows to a file for the next start; give them up if that fails, too."""
        if self._rows:
            try:
                self._journal.touch(0o600)
                with self._journal.open("ab") as file:
                    file.write(b"".join(orjson.dumps(row) + b"\n" for row in self._rows))
                    file.flush()
                    os.fsync(file.fileno())
                log("usage is left for the next start", level="warning", rows=len(self._rows))
            except OSError:
                self.lost += len(self._rows)
        if self.lost:
            log("usage was lost", level="error", rows=self.lost)

    def _import_journal(self) -> None:
        """Write the rows that the last service could not write."""
        try:
            lines = self._journal.read_bytes().splitlines() if self._journal.exists() else []
            # The last line of a full disk may be a part of one.
            rows = [orjson.loads(line) for line in lines if line.endswith(b"]]")]
            with self._convert_sqlite_errors():
                _write_rows(self._db, rows)
            self._journal.unlink(missing_ok=True)
        except (OSError, ValueError) as error:
            message = (
                f"the usage in {self._journal}, which the last service left, cannot be read; move it away"
            )
            raise StoreError(message) from error
        if lines:
            log("usage of the last service was taken in", level="warning", rows=len(rows))

    @contextlib.contextmanager
    def _convert_sqlite_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(
                f"the service's file {self._path} cannot be used: {error}; see whether the disk is full, or move the "
                f"file away to begin a new one"
            ) from error


def _write_rows(db: sqlite3.Connection, rows: list[Statement]) -> None:
    with transaction(db):
        for sql, parameters in rows:
            db.execute(sql, parameters)
