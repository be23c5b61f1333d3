"""SQLite databases that several threads and processes use at the same time."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from speechlab.errors import StoreError

_RETRY_S = 0.01
_MAX_VALUE_BYTES = 64 << 20  # of a text in a row; a reply has less


def open_database(path: Path, *, busy_s: float) -> sqlite3.Connection:
    """Open or create a database in WAL mode: reads never wait for writes, and a killed process loses no commit."""
    db = sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
    deadline = time.monotonic() + busy_s
    while True:  # SQLite does not wait here while another process creates the file
        try:
            db.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                db.close()
                raise
            time.sleep(_RETRY_S)
        else:
            break
    db.execute("PRAGMA synchronous=NORMAL")
    return db


def is_database_writable(path: Path) -> bool:
    """Return whether a database and its folder, where SQLite keeps further files, can be written."""
    return os.access(path.parent, os.W_OK | os.X_OK) and (not path.exists() or os.access(path, os.W_OK))


def open_read_only(path: Path) -> sqlite3.Connection:
    """Open a read-only database that :func:`open_database` made.

    SQLite removes the index (``-shm``) with the last connection and cannot create it on read-only media. Without the
    index, a database can only be opened as immutable. SQLite then ignores the log (``-wal``) of a killed process. If
    there is a log, a copy of both files is read.
    """
    with suppress(sqlite3.OperationalError):
        return _open_readable_database(f"{path.absolute().as_uri()}?mode=ro")
    log = path.with_name(f"{path.name}-wal")
    if not log.exists() or not log.stat().st_size:
        return _open_readable_database(f"{path.absolute().as_uri()}?immutable=1")
    with TemporaryDirectory() as folder:
        for file in (path, log):
            shutil.copyfile(file, Path(folder) / file.name)
        with closing(_open_readable_database((Path(folder) / path.name).as_uri())) as copy:
            in_memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            copy.backup(in_memory)
            return in_memory


def create_tables_if_new(db: sqlite3.Connection, file: Path, schema: str, version: int) -> None:
    """Create the tables of a new database; raises StoreError if it has those of another version."""
    if _read_schema_version(db) != version:
        with transaction(db):  # in which another process cannot create them
            if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                for statement in schema.split(";"):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {version}")
    check_schema_version(db, file, version)


def check_schema_version(db: sqlite3.Connection, file: Path, version: int) -> None:
    """Refuse a database with the tables of another version; raises StoreError."""
    if (found := _read_schema_version(db)) != version:
        raise StoreError(
            f"{file} is of another version of speechlab (its schema is {found}, the one known here {version}); use "
            f"that version, or choose another folder"
        )


def check_schema(db: sqlite3.Connection, file: Path, schema: str) -> None:
    """Refuse a stranger's database whose tables compute something, as triggers and views do; raises StoreError."""
    with closing(sqlite3.connect(":memory:")) as own:
        own.executescript(schema)
        known = _read_statements(own)
    if others := sorted(name for name, _ in _read_statements(db) - known):
        raise StoreError(
            f"{file} holds {', '.join(others):.200}, which are not as speechlab makes them (triggers, views, columns "
            "that compute); choose another folder"
        )


def _read_statements(db: sqlite3.Connection) -> set[tuple[str, str]]:
    """Return the names and statements of all but SQLite's own tables."""
    rows = db.execute("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
    return {(str(name), "".join(str(sql).split())) for name, sql in rows}


def _read_schema_version(db: sqlite3.Connection) -> int:
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    return version


def _open_readable_database(uri: str) -> sqlite3.Connection:
    db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
    try:
        db.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.Error:
        db.close()
        raise
    return db


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Make several writes one commit: all of them or none."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk may have ended the transaction
            db.execute("ROLLBACK")
        raise
