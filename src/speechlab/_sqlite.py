"""SQLite files that several threads and processes use at once."""

from __future__ import annotations

import sqlite3
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_AGAIN_S = 0.01


def open_database(path: Path, *, busy_s: float) -> sqlite3.Connection:
    """Open a file, or make it, so that reading never waits for writing (WAL) and a killed process loses no commit.

    Args:
        path: The file.
        busy_s: How long a write waits for those of others, in seconds.

    Returns:
        A connection for any thread, in which every statement is a transaction of its own; see :func:`transaction`.
    """
    db = sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)
    _use_wal(db, time.monotonic() + busy_s)
    db.execute("PRAGMA synchronous=NORMAL")
    return db


def _use_wal(db: sqlite3.Connection, deadline: float) -> None:
    """Switch to WAL; where several make the file at once, SQLite refuses here instead of waiting."""
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                db.close()
                raise
            time.sleep(_AGAIN_S)
        else:
            return


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Make several writes one commit: all of them or none."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk may have ended it already
            db.execute("ROLLBACK")
        raise
