"""The schema of the database, as an ordered list of named migrations that only ever grows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from speechlab._sqlite import in_memory, open_to_read, transaction


def _first_tables(db: sqlite3.Connection) -> None:
    db.execute(
        """
        CREATE TABLE results (
            key TEXT PRIMARY KEY,
            operation TEXT NOT NULL,
            request TEXT NOT NULL,
            response TEXT NOT NULL,
            created REAL NOT NULL
        ) STRICT
        """
    )
    db.execute(
        """
        CREATE TABLE blobs (
            key TEXT NOT NULL REFERENCES results(key) ON DELETE CASCADE,
            role TEXT NOT NULL,
            sha256 TEXT NOT NULL,
            suffix TEXT NOT NULL,
            size INTEGER NOT NULL,
            PRIMARY KEY (key, role)
        ) STRICT
        """
    )
    db.execute(
        """
        CREATE TABLE attempts (
            id INTEGER PRIMARY KEY,
            key TEXT NOT NULL,
            started REAL NOT NULL,
            latency_s REAL,
            status TEXT NOT NULL,
            http_status INTEGER,
            error_type TEXT,
            error TEXT
        ) STRICT
        """
    )
    db.execute("CREATE INDEX attempts_key ON attempts(key)")


def _runs(db: sqlite3.Connection) -> None:
    db.execute(
        """
        CREATE TABLE runs (
            id TEXT PRIMARY KEY,
            operation TEXT NOT NULL,
            status TEXT NOT NULL,
            started REAL NOT NULL,
            ended REAL,
            manifest TEXT NOT NULL
        ) STRICT
        """
    )
    db.execute(
        """
        CREATE TABLE run_parts (
            run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
            number INTEGER NOT NULL,
            sha256 TEXT NOT NULL,
            rows INTEGER NOT NULL,
            PRIMARY KEY (run, number)
        ) STRICT
        """
    )


def _replies(db: sqlite3.Connection) -> None:
    # no reference to results: a result may be replaced without the timing of its reply
    db.execute("CREATE TABLE replies (key TEXT PRIMARY KEY, facts TEXT NOT NULL) STRICT")
    db.execute("CREATE INDEX results_operation ON results(operation, created)")


def _order(db: sqlite3.Connection) -> None:
    # row ids give the order of writing, independent of the clock
    db.execute("DROP INDEX results_operation")
    db.execute("CREATE INDEX results_operation ON results(operation)")


def _failed_attempts(db: sqlite3.Connection) -> None:
    # keys are random, so each row in an index of them rewrites another page: attempts that succeeded need none
    db.execute("DROP INDEX IF EXISTS attempts_key")
    db.execute("CREATE INDEX IF NOT EXISTS attempts_failed ON attempts(key) WHERE status = 'error'")


Migration = Callable[[sqlite3.Connection], None]

MIGRATIONS: tuple[tuple[str, Migration], ...] = (
    ("2026-11 first tables", _first_tables),
    ("2026-11 runs", _runs),
    ("2026-11 replies", _replies),
    ("2026-11 order", _order),
    ("2026-11 failed attempts", _failed_attempts),
)
"""Migrations by name, oldest first. A released migration is never edited; each change is a new migration."""


def is_current(db: sqlite3.Connection) -> bool:
    """Return whether a database has the newest schema, without writing to it."""
    has_table = db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'migrations'").fetchone()[0]
    applied = {name for (name,) in db.execute("SELECT name FROM migrations")} if has_table else set()
    return applied >= {name for name, _ in MIGRATIONS}


def migrate(db: sqlite3.Connection) -> None:
    """Migrate a database to the newest schema. Several processes may do so at the same time."""
    with transaction(db):
        db.execute(
            "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied TEXT NOT NULL) STRICT"
        )
        applied = {name for (name,) in db.execute("SELECT name FROM migrations")}
        for name, step in MIGRATIONS:
            if name not in applied:
                step(db)
                db.execute("INSERT INTO migrations VALUES (?, datetime('now'))", (name,))


def open_migrated(file: Path) -> sqlite3.Connection:
    """Open a database to be read alone; one of an earlier version is migrated in memory."""
    db = open_to_read(file)
    if not is_current(db):
        with closing(db) as earlier:
            db = in_memory(earlier)
        migrate(db)
    db.execute("PRAGMA query_only=ON")
    return db
