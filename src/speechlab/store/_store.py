"""Results by key, with their files and attempts; runs, with the parts of their tables; facts of replies."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any, Self

import orjson
from platformdirs import user_data_path

from speechlab._sqlite import (
    check_schema,
    check_schema_version,
    create_tables_if_new,
    is_database_writable,
    open_database,
    open_read_only,
    transaction,
)
from speechlab._untrusted import load_json
from speechlab.errors import StoreError
from speechlab.store._blobs import STORE_FILE, Blob, BlobFolder, build_database_error, build_store_error
from speechlab.store._claims import Claims
from speechlab.store._schema import SCHEMA, SCHEMA_VERSION

# Ending of the files that hold the parts of a run's table.
PART_SUFFIX = ".parquet"
_BUSY_TIMEOUT_S = 30.0
_KEYS_AT_ONCE = 500
_RUN_COLUMNS = "id, operation, status, started, ended, manifest"
_ATTEMPT_COLUMNS = "key, started, latency_s, status, http_status, error_type, error"


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A stored result."""

    key: str
    operation: str
    request: dict[str, Any]  # the parameters with defaults filled in, without a credential
    response: dict[str, Any]  # the reply as JSON values
    files: dict[str, Path] = field(default_factory=dict)  # of audio, by role
    created: float = 0.0  # Unix time in seconds


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt at a request, successful or not. Attempts are never removed."""

    key: str
    started: float  # Unix time in seconds
    latency_s: float | None  # until the reply was complete
    status: str  # "ok" or "error"
    http_status: int | None = None
    error_type: str | None = None  # name of the exception class
    error: str | None = None


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
    ended: float | None = None  # ``started`` and the seconds of a monotonic clock since then
    manifest: dict[str, Any] = field(default_factory=dict)  # without a credential
    parts: tuple[RunPart, ...] = ()  # of the table, in order


class Store:
    """A folder of results: the database ``store.sqlite`` and the audio files in ``blobs/``.

    Several threads and processes can use a store at the same time. Each write is one transaction in WAL mode, so a
    killed process loses nothing that it had finished.

    Args:
        path: The folder, created if it does not exist. An existing store without write permission, for example on
            read-only media, can be read.

    Attributes:
        path: The folder.
        blobs: The content-addressed files.
        read_only: Whether the store can only be read.

    Raises:
        StoreError: The folder cannot be created, is not a store, or is one of another version of speechlab.

    Example:
        >>> with sl.Store("results") as store:
        ...     stored = store.put(
        ...         "key", operation="translate", request={"text": "Hi."}, response={"text": "やあ。"}
        ...     )
        ...     store.get("key").response
        {'text': 'やあ。'}
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).expanduser().absolute()
        self.blobs = BlobFolder(self.path / "blobs")
        self._lock = threading.RLock()
        self._depth = 0
        file = self.path / STORE_FILE
        self.read_only = file.exists() and not is_database_writable(file)
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)  # recordings of people are private
        except OSError as error:
            raise build_store_error(error, self.path) from error
        with self._lock_and_convert_errors():
            self._db = open_read_only(file) if self.read_only else open_database(file, busy_s=_BUSY_TIMEOUT_S)
            try:
                if self.read_only:
                    self._db.execute("PRAGMA query_only=ON")
                    check_schema_version(self._db, file, SCHEMA_VERSION)
                else:
                    self._db.execute("PRAGMA foreign_keys=ON")
                    create_tables_if_new(self._db, file, SCHEMA, SCHEMA_VERSION)
                check_schema(self._db, file, SCHEMA)
            except BaseException:
                self._db.close()
                raise

    @classmethod
    def default(cls) -> Store:
        """Open the user's own store: the folder in ``SPEECHLAB_STORE``, or one in the user's data folder."""
        return cls(cls.default_path())

    @staticmethod
    def default_path() -> Path:
        """Return the path of the user's own store."""
        folder = os.environ.get("SPEECHLAB_STORE") or user_data_path("speechlab") / "store"
        return Path(folder).expanduser().absolute()

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database. The folder can be opened again as a new ``Store``."""
        with self._lock:
            self._db.close()

    def __len__(self) -> int:
        ((count,),) = self._query_rows("SELECT count(*) FROM results")
        return int(count)

    def get(self, key: str) -> StoredResult | None:
        """Return a result with all its files; None if there is none, or it or a file is missing or damaged."""
        return self.get_many([key]).get(key)

    def get_many(self, keys: Collection[str]) -> dict[str, StoredResult]:
        """Return the stored results of many keys; results with a missing or truncated file are left out."""
        results: dict[str, StoredResult] = {}
        for some, marks in _batch_unique_keys(keys):
            with self._lock_and_convert_errors():
                rows = self._db.execute(
                    f"SELECT key, operation, request, response, created FROM results WHERE key IN ({marks})",  # noqa: S608 - names of columns and placeholders; values are bound
                    some,
                ).fetchall()
                if not rows:
                    continue
                blob_rows = self._db.execute(
                    f"SELECT key, role, sha256, suffix, size FROM blobs WHERE key IN ({marks})",  # noqa: S608 - names of columns and placeholders; values are bound
                    some,
                ).fetchall()
            blobs: dict[str, dict[str, Blob]] = {}
            for key, role, *about in blob_rows:
                blobs.setdefault(key, {})[role] = Blob(*about)
            for key, operation, request, response, created in rows:
                own_blobs = blobs.get(key, {})
                if all(map(self.blobs.has_blob, own_blobs.values())):
                    try:
                        sent, answered = _parse_object(request), _parse_object(response)
                    except ValueError:
                        continue
                    results[key] = StoredResult(
                        key, operation, sent, answered, self._resolve_blob_paths(own_blobs), created
                    )
        return results

    def failures(self, keys: Collection[str]) -> dict[str, Attempt]:
        """Return the last failed attempt of each request that has no result."""
        attempts: dict[str, Attempt] = {}
        for some, marks in _batch_unique_keys(keys):
            rows = self._query_rows(
                f"SELECT {_ATTEMPT_COLUMNS} FROM attempts WHERE key IN ({marks}) "  # noqa: S608 - names of columns and placeholders; values are bound
                "AND status = 'error' AND key NOT IN (SELECT key FROM results) ORDER BY id",
                some,
            )
            attempts.update((row[0], Attempt(*row)) for row in rows)
        return attempts

    def put(
        self,
        key: str,
        *,
        operation: str,
        request: Mapping[str, Any],
        response: Mapping[str, Any],
        files: Mapping[str, tuple[bytes, str] | Blob] | None = None,
        attempt: Attempt | None = None,
    ) -> StoredResult:
        """Keep a result. An existing result with the same key is replaced.

        Args:
            key: Key of the request.
            operation: Name of the operation.
            request: The parameters, without a credential.
            response: The reply as JSON values.
            files: Audio by role: bytes, and the suffix of the file with its dot; or a file of ``blobs``.
            attempt: The successful attempt.

        Raises:
            StoreError: The result cannot be written, for example because the disk is full.
        """
        file_blobs: dict[str, Blob] = {
            role: file if isinstance(file, Blob) else self.blobs.add_bytes(*file)
            for role, file in (files or {}).items()
        }
        created, paths = time.time(), self._resolve_blob_paths(file_blobs)
        row = (key, operation, _to_json(request), _to_json(response), created)
        with self.transaction():
            # this also removes the blobs of the replaced row
            self._db.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?)", row)
            for role, blob in file_blobs.items():
                about = key, role, blob.sha256, blob.suffix, blob.size
                self._db.execute("INSERT INTO blobs VALUES (?, ?, ?, ?, ?)", about)
            if attempt is not None:
                self.add_attempt(attempt)
        return StoredResult(key, operation, dict(request), dict(response), paths, created)

    def add_attempt(self, attempt: Attempt) -> None:
        """Record an attempt; :meth:`put` does it for one with a result."""
        self._query_rows(
            f"INSERT INTO attempts ({_ATTEMPT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - names of columns and placeholders; values are bound
            astuple(attempt),
        )

    def attempts(self, key: str) -> list[Attempt]:
        """Return all attempts at a request, oldest first."""
        rows = self._query_rows(f"SELECT {_ATTEMPT_COLUMNS} FROM attempts WHERE key = ? ORDER BY id", (key,))  # noqa: S608 - names of columns and placeholders; values are bound
        return [Attempt(*row) for row in rows]

    def _resolve_blob_paths(self, blobs: Mapping[str, Blob]) -> dict[str, Path]:
        return {role: self.blobs.resolve_path(blob.sha256, blob.suffix) for role, blob in blobs.items()}

    def claims(self) -> Claims:
        """Return an empty set of claims, which keep other runs from the same call, and end with their process."""
        return Claims(self.path / "claims")

    def save_run(self, record: RunRecord) -> None:
        """Write or update the record of a run. :meth:`add_part` adds the parts."""
        about = record.id, record.operation, record.status, record.started, record.ended
        self._query_rows(
            f"INSERT INTO runs ({_RUN_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "  # noqa: S608 - names of columns and placeholders; values are bound
            "status = excluded.status, ended = excluded.ended, manifest = excluded.manifest",
            (*about, _to_json(record.manifest)),
        )

    def add_part(self, run: str, table: bytes, rows: int) -> RunPart:
        """Keep the next piece of a run's table: a Parquet file, with its number of rows."""
        part = RunPart(self.blobs.add_bytes(table, PART_SUFFIX).sha256, rows)
        self._query_rows(
            "INSERT INTO run_parts SELECT ?, coalesce(max(number), -1) + 1, ?, ? FROM run_parts WHERE run = ?",
            (run, part.sha256, part.rows, run),
        )
        return part

    def run(self, run: str) -> RunRecord:
        """Return a run by its id."""
        rows = self._query_rows(f"SELECT {_RUN_COLUMNS} FROM runs WHERE id = ?", (run,))  # noqa: S608 - names of columns and placeholders; values are bound
        if not rows:
            latest = ", ".join(record.id for record in self.runs()[-3:]) or "none"
            raise StoreError(f"the store {self.path} has no run {run!r}; its latest are: {latest}")
        return self._build_run_record(rows[0])

    def runs(self) -> list[RunRecord]:
        """Return all runs in the order of their beginnings, independent of the system clock."""
        query = f"SELECT {_RUN_COLUMNS} FROM runs ORDER BY rowid"  # noqa: S608 - names of columns, no values
        return [self._build_run_record(row) for row in self._query_rows(query)]

    def part_path(self, part: RunPart) -> Path:
        """Return the Parquet file of a part."""
        return self.blobs.resolve_path(part.sha256, PART_SUFFIX)

    def _build_run_record(self, row: tuple[Any, ...]) -> RunRecord:
        run, operation, status, started, ended, manifest = row
        rows = self._query_rows("SELECT sha256, rows FROM run_parts WHERE run = ? ORDER BY number", (run,))
        kept = tuple(RunPart(*part) for part in rows)
        try:
            return RunRecord(run, operation, status, started, ended, _parse_object(manifest), kept)
        except ValueError as error:
            raise StoreError(f"the store {self.path} is damaged: of the run {run!r:.60} {error}") from None

    def keep_facts(self, key: str, facts: dict[str, Any]) -> None:
        """Keep the timing and frames of the reply to a request, without a credential; earlier ones are replaced."""
        self._query_rows(
            "INSERT INTO replies VALUES (?, ?) ON CONFLICT(key) DO UPDATE SET facts = excluded.facts",
            (key, orjson.dumps(facts).decode()),
        )

    def facts(self, key: str) -> dict[str, Any]:
        """Return the timing and frames of the reply to a request; empty if the store has none."""
        rows = self._query_rows("SELECT facts FROM replies WHERE key = ?", (key,))
        with suppress(ValueError):
            return _parse_object(rows[0][0]) if rows else {}
        return {}

    def newest(self, operation: str, limit: int = 1) -> list[tuple[str, dict[str, Any]]]:
        """Return keys and parameters of the newest results of an operation, the last written first."""
        query = "SELECT key, request FROM results WHERE operation = ? ORDER BY rowid DESC LIMIT ?"
        return [(key, _parse_object(request)) for key, request in self._query_rows(query, (operation, limit))]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make several writes one commit: all of them or none.

        Other threads wait until the transaction ends. A nested transaction is part of the outer one.

        Raises:
            StoreError: A write failed, or the store's folder was removed or moved.
        """
        with self._lock_and_convert_errors():
            if self._depth:
                yield
                return
            if not (self.path / STORE_FILE).exists():  # SQLite would continue to write to the deleted file
                raise StoreError(
                    f"the store {self.path} is gone: its folder was removed or moved while it was in use; "
                    "no more results can be kept in it"
                )
            with transaction(self._db):
                self._depth += 1
                try:
                    yield
                finally:
                    self._depth -= 1

    @contextmanager
    def _lock_and_convert_errors(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise build_database_error(error, self.path) from error

    def _query_rows(self, query: str, values: Sequence[object] = ()) -> list[Any]:
        """Return the rows of a query; none of a statement that writes."""
        with self._lock_and_convert_errors():
            return self._db.execute(query, values).fetchall()


def _batch_unique_keys(keys: Iterable[str]) -> Iterator[tuple[list[str], str]]:
    """Yield the different keys, some at a time, each time with the placeholders of a query for them."""
    unique = list(dict.fromkeys(keys))
    for start in range(0, len(unique), _KEYS_AT_ONCE):
        some = unique[start : start + _KEYS_AT_ONCE]
        yield some, ",".join("?" * len(some))


def _to_json(value: Mapping[str, Any]) -> str:
    return orjson.dumps(dict(value), option=orjson.OPT_SORT_KEYS).decode()


def _parse_object(text: str) -> dict[str, Any]:
    """Return an object from its JSON; ValueError if it is none."""
    value = load_json(text)
    if not isinstance(value, dict):
        raise ValueError(f"the JSON is {text!r:.60}, no object")  # noqa: TRY004 - what the row holds
    return value
