"""Finished runs: found again, with their tables and manifests, exported and verified."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import orjson

from speechlab._arguments import build_argument_error
from speechlab._brief import shorten_tracebacks
from speechlab._files import expand_user_path, write_atomically
from speechlab._frames import to_pandas_frame
from speechlab._require import require
from speechlab.batch._plan.columns import build_frame
from speechlab.batch._plan.steps import STEPS
from speechlab.batch._store_options import StoreLike, is_existing_store, use_existing_store, use_store
from speechlab.batch._table.assemble import RUN_ATTRIBUTE, drop_bookkeeping, join_frames
from speechlab.batch._table.failures import FailureCounter
from speechlab.batch._table.timed import resolve_audio_column, write_segments
from speechlab.batch._verify import Verification, update_paths, verify
from speechlab.errors import InvalidRequestError, StoreError
from speechlab.store import PART_SUFFIX, RunPart, RunRecord
from speechlab.tables import TableFormat, read_stored_table, resolve_table_format, write_table

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.segments import WriteResult

    RunLike: TypeAlias = "str | Path | Run | pd.DataFrame"


_RUN_COLUMNS = {
    "run": "string",
    "operation": "category",
    "status": "category",
    "started": "datetime64[us, UTC]",
    "seconds": "float64",
    "rows": "Int64",
    "ok": "Int64",
    "cached": "Int64",
    "error": "Int64",
    "reason": "string",
}


@dataclass(frozen=True, slots=True)
class Run:
    """A run in a store.

    Attributes:
        record: The record: operation, status, manifest and pieces of the table.
        store: The store of the run.
    """

    record: RunRecord
    store: StoreLike = field(repr=False, default=None)

    @property
    def id(self) -> str:
        """Id of the run; the ``attrs`` of its table have it as ``speechlab_run``."""
        return self.record.id

    @property
    def status(self) -> str:
        """``finished``, ``stopped`` (by a rule), ``interrupted``, ``failed``, or ``running`` (also after a crash)."""
        return self.record.status

    @property
    def manifest(self) -> dict[str, Any]:
        """Versions, parameters, counts by status, usage and digests of input and output. It has no credential."""
        return self.record.manifest

    def parts(self) -> Iterator[pd.DataFrame]:
        """Yield the table piece by piece.

        Paths of files in the store, in any column, are those of the store's current folder. Other paths are
        unchanged.

        Raises:
            StoreError: A piece is missing or damaged.
        """
        return map(self._read_part, self.record.parts)

    def _read_part(self, part: RunPart) -> pd.DataFrame:
        with use_store(self.store) as store:
            path = store.part_path(part)
            try:
                frame = read_stored_table(path)
            except (OSError, ValueError) as error:
                message = f"the piece {path.name.removesuffix(PART_SUFFIX)} of a run's table cannot be read: {error}"
                raise StoreError(message) from error
            return update_paths(frame, store)

    @shorten_tracebacks
    def dask(self, *, columns: Literal["all", "result"] = "all") -> Any:
        """Return the table as a DataFrame of Dask, with a partition for each piece; pieces are read when needed.

        Args:
            columns: As for :meth:`export`.

        Raises:
            MissingDependencyError: ``dask`` is not installed.
            StoreError: The run has no table, or a piece is missing or damaged.
        """
        dd = require("dask.dataframe")
        if not self.record.parts:
            self.table()
        with use_store(self.store) as store:
            run = Run(self.record, store.path)  # which other processes can open
        read = run._read_part if columns == "all" else run._read_result_columns
        meta = dd.utils.clear_known_categories(read(self.record.parts[0]).iloc[:0])
        return dd.from_map(read, self.record.parts, meta=meta, enforce_metadata=False)

    @shorten_tracebacks
    def table(self) -> pd.DataFrame:
        """Return the whole table.

        Raises:
            StoreError: The run has no table, because its process was killed, or a piece is missing or damaged.
        """
        frames = list(self.parts())
        if not frames:
            message = (
                f"run {self.id} ended before it had a table (status: {self.status}); the store has its results. "
                "Run the same call again"
            )
            raise StoreError(message)
        prefix = self.manifest.get("prefix", "")
        table = join_frames(frames, STEPS[self.record.operation], prefix, from_files=True)
        table.attrs[RUN_ATTRIBUTE] = self.id
        return table

    @shorten_tracebacks
    def export(self, path: str | os.PathLike[str], *, columns: Literal["all", "result"] = "all") -> Path:
        """Write the table to a file, piece by piece, with at most eight pieces in memory.

        Values that Parquet does not support are converted: unusual categories to their texts, a recording to
        ``sha256:…``, other objects to their text. The metadata of a Parquet file has the manifest, as
        ``speechlab_run``.

        Args:
            path: The file. Its suffix sets the format: ``.parquet``, ``.csv``, ``.tsv`` or ``.jsonl``; all but
                Parquet may be compressed, as in ``.csv.gz``. A name without a suffix is a new folder of Parquet
                files, one for each piece.
            columns: ``"all"``, or ``"result"`` to leave out the bookkeeping.

        Raises:
            InvalidRequestError: The path has another suffix, or ``columns`` is not allowed.
            StoreError: The run has no table, or the file cannot be written.
        """
        import pyarrow as pa

        if columns not in ("all", "result"):
            raise build_argument_error("columns", columns, "'all' or 'result'")
        target = expand_user_path(path)
        format_ = resolve_table_format(target, "path") if target.suffix else TableFormat("folder")
        if not self.record.parts:
            self.table()
        about = orjson.dumps({"id": self.id, "operation": self.record.operation, **self.manifest})
        read, parts = self._read_part if columns == "all" else self._read_result_columns, self.record.parts
        try:
            with write_atomically(target) as draft:
                write_table(
                    lambda: map(read, parts), len(parts), draft, format_, {RUN_ATTRIBUTE.encode(): about}
                )
        except (OSError, pa.ArrowException) as error:
            raise StoreError(f"{target} cannot be written: {error}") from error
        return target

    def _read_result_columns(self, part: RunPart) -> pd.DataFrame:
        return drop_bookkeeping(self._read_part(part), self.manifest.get("prefix", ""))

    @shorten_tracebacks
    def write_segments(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,  # noqa: A002 - as everywhere
    ) -> list[WriteResult]:
        """Write the timed segments of the transcripts, as :func:`to_segments` returns them, piece by piece.

        Formats for one recording need ``{file}`` in the path, which is replaced by the recording's name without
        folder and suffix: ``"subtitles/{file}.srt"``. A warning names rows whose reply has impossible times.

        Args:
            path: The file. Its suffix sets the format, see ``speechlab.segments.formats``.
            format: The format, for a suffix that does not set it.

        Returns:
            The files written, with the content of each and the fields that its format dropped.

        Raises:
            InvalidRequestError: The run is not one of transcriptions.
            SegmentFileError: The format is unknown, or does not support the segments.
            StoreError: A piece of the table is missing or damaged, or a file cannot be written.
        """
        if STEPS[self.record.operation].works_on != "audio":
            raise InvalidRequestError(
                f"run {self.id} has no segments: its operation is {self.record.operation}, not transcribe"
            )
        try:
            return write_segments(
                self.parts(),
                self.store,
                path,
                prefix=self.manifest.get("prefix", ""),
                audio=resolve_audio_column(self.record),
                format=format,
            )
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error}") from error

    @shorten_tracebacks
    def verify(self) -> Verification:
        """Check the table, its results and its audio files against the digests in the record.

        Transcribed recordings are checked if they are in the store, as synthesized speech is. Recordings outside the
        store are not read; ``outside`` counts them.
        """
        with use_store(self.store) as store:
            return verify(self.record, store)

    def __repr__(self) -> str:
        counts = ", ".join(f"{n} {name}" for name, n in self.manifest.get("statuses", {}).items() if n)
        reason = f": {self.manifest['reason']}" if self.manifest.get("reason") else ""
        return f"Run({self.id}, {self.record.operation}, {self.status}{reason}; {counts or 'no rows'})"


@shorten_tracebacks
def load(run: RunLike, store: StoreLike = None) -> Run:
    """Load a run from its store.

    Args:
        run: The id of the run, a table that it made, or a folder that ``speechlab batch`` made (its latest run).
        store: The store of the run; None for the user's own store, or for that of the folder.

    Raises:
        StoreError: The store does not exist, or does not have the run.
        InvalidRequestError: The table does not have the id of its run.
    """
    if isinstance(run, Run):
        return run
    if store is None and isinstance(run, (str, Path)) and is_existing_store(run):
        folder = expand_user_path(run)
        with use_store(folder) as open_store:
            records = open_store.runs()
        if not records:
            raise StoreError(f"the store {folder} has no run yet")
        return Run(records[-1], folder)
    if not isinstance(run, str):
        name = getattr(run, "attrs", {}).get(RUN_ATTRIBUTE)
        if not isinstance(name, str):
            message = (
                f"a {type(run).__name__} whose attrs have no 'speechlab_run' (CSV loses it) does not say which run "
                "made it; give the id of the run"
            )
            raise InvalidRequestError(message, parameter="run")
        run = name
    with use_existing_store(store) as open_store:
        return Run(open_store.run(run), store if store is open_store else open_store.path)


@shorten_tracebacks
def runs(store: StoreLike = None) -> pd.DataFrame:
    """List the runs of a store, oldest first.

    Args:
        store: The store; None for the user's own store.

    Returns:
        One row for each run: ``run``, ``operation``, ``status``, ``started`` (UTC), ``seconds``, ``rows``, ``ok``,
        ``cached``, ``error`` and ``reason``.

    Raises:
        StoreError: The store does not exist.

    Example:
        >>> with sl.Store("results") as store:
        ...     runs(store).columns[:4].tolist()
        ['run', 'operation', 'status', 'started']
    """
    with use_existing_store(store) as open_store:
        records = open_store.runs()
    lines: list[list[Any]] = []
    for record in records:
        counts = record.manifest.get("statuses", {})
        began = datetime.fromtimestamp(record.started, UTC)
        seconds = float("nan") if record.ended is None else record.ended - record.started
        figures = [counts.get(name, 0) for name in ("ok", "cached", "error")]
        rows = record.manifest.get("rows", 0)
        reason = record.manifest.get("reason")
        lines.append([record.id, record.operation, record.status, began, seconds, rows, *figures, reason])
    return build_frame(lines, _RUN_COLUMNS)


@shorten_tracebacks
def failures(result: Any, store: StoreLike = None, *, prefix: str = "") -> pd.DataFrame:
    """List the reasons for failed rows, the most frequent first.

    Errors that differ only in quoted values, paths and numbers are one reason.

    Args:
        result: A table that :func:`synthesize`, :func:`transcribe` or :func:`translate` returned, or a part of it;
            or a :class:`Run`.
        store: The store of the batch. It is needed for a table with ``columns="result"``, which has no statuses.
        prefix: The prefix of the batch's columns.

    Returns:
        One row for each reason: ``rows`` (number of rows), ``error_type``, ``http_status``, ``error`` (message of
        the first such row) and ``first`` (index label of that row).

    Raises:
        InvalidRequestError: The table has neither statuses nor the id of its run.
        StoreError: The run does not exist.

    Example:
        >>> rows = pd.DataFrame({"text": ["", "Hi.", " "], "status": ["error", "ok", "error"]})
        >>> rows["error_type"] = ["InvalidRequestError", None, "InvalidRequestError"]
        >>> rows["http_status"], rows["error"] = None, ["text is empty", None, "text is empty"]
        >>> failures(rows)[["rows", "error", "first"]]
           rows          error  first
        0     2  text is empty      0
    """
    frame = to_pandas_frame(result)
    pieces: Iterable[pd.DataFrame]
    if frame is not None and f"{prefix}status" in frame.columns and f"{prefix}error_type" in frame.columns:
        pieces = [frame]
    else:
        run = load(result, store)
        pieces, prefix = run.parts(), run.manifest.get("prefix", "")
    reasons = FailureCounter(prefix)
    for piece in pieces:
        reasons.count_failures(piece)
    return reasons.to_table()
