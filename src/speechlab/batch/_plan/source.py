"""Tables as a source of rows: in memory, or read in pieces."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from speechlab._arguments import is_dask_frame
from speechlab._files import check_place_exists, expand_user_path
from speechlab._frames import is_polars_frame, to_pandas_frame, to_pandas_series
from speechlab._pandas import pd
from speechlab.datasets import is_recording_file
from speechlab.datasets import read as read_dataset
from speechlab.errors import InvalidRequestError
from speechlab.remote import PREFETCHED_ROWS, hide_secrets, is_remote
from speechlab.tables import FILES_ALLOWED, check_table_path, has_table, read_column_names, read_pieces

# A table: a DataFrame of pandas or polars, a Series, an Arrow table, a list of dicts, of texts or of recordings, a
# path of a Parquet, CSV, TSV or JSON Lines file or of a folder of Parquet files or recordings, a DataFrame of Dask,
# or an iterable of DataFrames or dicts.
Table = Any

# Rows of the first piece of a table with recordings at addresses.
_FIRST_ROWS = 32
_TABLES_ALLOWED = (
    "a DataFrame of pandas or polars, a Series, an Arrow table, a list of dicts, of texts or of recordings, "
    f"{FILES_ALLOWED} or of a folder of Parquet files or recordings, a DataFrame of Dask, or an iterable of "
    "DataFrames or dicts"
)


@dataclass(frozen=True, slots=True)
class TableSource:
    """A table to work on."""

    whole: pd.DataFrame | None = None
    path: Path | None = None
    frames: Iterable[Any] | None = None
    columns: tuple[Any, ...] = ()
    polars: Any = None
    series: bool = False
    recordings: Any = None  # the column of recordings

    @property
    def is_rereadable(self) -> bool:
        """Whether the table can be read more than once."""
        return self.frames is None or not isinstance(self.frames, Iterator)

    def iter_pieces(self, rows: int, texts: Collection[str] = ()) -> Iterator[pd.DataFrame]:
        """Read the table in pieces."""
        if self.whole is not None:
            yield self.whole
        elif self.path is not None:
            yield from (self._hide_secrets(piece) for piece in read_pieces(self.path, rows, texts))
        else:
            for table in _iter_frames(iter(self.frames or ()), rows):
                for start in range(0, max(len(table), 1), rows):
                    yield self._hide_secrets(table.iloc[start : start + rows])

    def with_recordings(self, column: Any) -> TableSource:
        """Return the table with the column of its recordings, whose addresses lose their credentials."""
        source = replace(self, recordings=column)
        return source if self.whole is None else replace(source, whole=source._hide_secrets(self.whole))  # noqa: SLF001 - a copy of itself

    def in_pieces(self) -> TableSource:
        """Return a table in memory with recordings at addresses as pieces, so that its first calls begin soon."""
        if self.whole is None or not any(map(is_remote, self._list_recordings(self.whole))):
            return self
        return replace(self, whole=None, frames=_GrowingPieces(self.whole))

    def _list_recordings(self, frame: pd.DataFrame) -> list[Any]:
        column = self.recordings
        is_there = column is not None and column in frame.columns and frame[column].ndim == 1
        return frame[column].tolist() if is_there else []

    def _hide_secrets(self, frame: pd.DataFrame) -> pd.DataFrame:
        cells = self._list_recordings(frame)
        bare = [hide_secrets(cell) for cell in cells]
        changed = any(new is not old and new != old for new, old in zip(bare, cells, strict=True))
        return (
            frame.assign(**{self.recordings: pd.Series(bare, frame.index, dtype="object")})
            if changed
            else frame
        )


def open_source(source: Table, column: str) -> TableSource:
    """Open a table of any of the kinds allowed, and read the names of its columns."""
    series = to_pandas_series(source)
    if series is not None:
        single = series.to_frame(column if series.name is None else series.name)
        polars = None if series is source else source.to_frame(single.columns[0])
        return TableSource(whole=single, columns=_list_column_labels(single), polars=polars, series=True)
    frame = to_pandas_frame(source)
    if frame is not None:
        polars = source if is_polars_frame(source) else None
        return TableSource(whole=frame, columns=_list_column_labels(frame), polars=polars)
    if isinstance(source, str | os.PathLike):
        if is_remote(source):
            message = (
                f"{hide_secrets(source)} is an address; give sl.datasets.read(…) of it, which knows where the "
                "files lie that it names"
            )
            raise InvalidRequestError(message, parameter="source")
        path = expand_user_path(source)
        if column == "audio" and (is_recording_file(path) or (path.is_dir() and not has_table(path))):
            return open_source(read_dataset(path), column)
        folder = "a folder of recordings, or " if column == "audio" else ""
        check_place_exists(path, f"{folder}{FILES_ALLOWED}", "source")
        check_table_path(path)
        return TableSource(path=path, columns=read_column_names(path))
    if is_dask_frame(source):
        return TableSource(frames=Partitions(source), columns=tuple(source.columns))
    if isinstance(source, Iterable) and not isinstance(source, Mapping | bytes):
        return _build_iterable_source(source, column)
    message = f"the table is a {type(source).__name__}; give {_TABLES_ALLOWED}"
    raise InvalidRequestError(message, parameter="source")


@dataclass(frozen=True)
class _GrowingPieces:
    """A table in memory as pieces, small ones first."""

    frame: pd.DataFrame

    def __iter__(self) -> Iterator[pd.DataFrame]:
        start, rows = 0, _FIRST_ROWS
        while start < len(self.frame):
            yield self.frame.iloc[start : start + rows]
            start, rows = start + rows, min(2 * rows, PREFETCHED_ROWS)


@dataclass(frozen=True)
class Partitions:
    """The partitions of a DataFrame of Dask, computed one after the other."""

    frame: Any

    def __iter__(self) -> Iterator[pd.DataFrame]:
        return (partition.compute() for partition in self.frame.partitions)


def _list_column_labels(frame: pd.DataFrame) -> tuple[Any, ...]:
    """The labels of the columns. A label of several parts, all but the first empty, is replaced by its first part."""
    labels = frame.columns.tolist()
    if frame.columns.nlevels == 1:
        return tuple(labels)
    return tuple(label if any(level != "" for level in label[1:]) else label[0] for label in labels)


def _build_iterable_source(source: Iterable[Any], column: str) -> TableSource:
    pieces = iter(source)
    first = next(pieces, None)
    if first is None:
        return TableSource(frames=source)
    if column == "audio" and isinstance(first, str | os.PathLike):
        return open_source(read_dataset([first, *pieces]), column)
    if column == "text" and isinstance(first, str):
        return open_source(pd.Series([first, *pieces], name=column, dtype=object), column)
    if isinstance(first, Mapping) and isinstance(source, Sequence):
        (frame,) = _iter_frames(iter(source), len(source))
        return TableSource(whole=frame, columns=_list_column_labels(frame))
    # the first piece is taken from an iterator, which can be read only once
    frames = chain([first], pieces) if isinstance(source, Iterator) else source
    columns = _list_column_labels(next(_iter_frames(iter([first]), 1)))
    return TableSource(frames=frames, columns=columns)


def _iter_frames(pieces: Iterator[Any], rows: int) -> Iterator[pd.DataFrame]:
    """Yield the DataFrames of an iterable, or DataFrames of its dicts."""
    for piece in pieces:
        if isinstance(piece, Mapping):
            dicts = [piece, *islice(pieces, rows - 1)]
            for row in dicts:
                if not isinstance(row, Mapping):
                    message = f"the iterable gives dicts, and then a {type(row).__name__}"
                    raise InvalidRequestError(f"{message}; all of its rows must be dicts", parameter="source")
            yield pd.DataFrame(dicts)
        elif (table := to_pandas_frame(piece)) is not None:
            yield table
        else:
            message = f"the iterable gives a {type(piece).__name__}; it must give DataFrames or dicts"
            if isinstance(piece, str):
                message += "; for a list of texts or paths, give pd.Series(…) of it"
            raise InvalidRequestError(message, parameter="source")
