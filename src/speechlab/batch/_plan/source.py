"""Tables as a source of rows: in memory, or read in pieces that fit there."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    import pandas as pd

Table = Any
"""A pandas DataFrame, an Arrow table, a path of a Parquet, CSV or JSON Lines file, or an iterable of DataFrames."""

_LINES = 100
# What pandas takes for an empty cell of a CSV file; in a column of texts, "None" and "NA" are texts.
_EMPTY = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
_KINDS = (
    "a DataFrame, an Arrow table, a path that ends in .parquet, .csv or .jsonl, or an iterable of DataFrames"
)


@dataclass(frozen=True, slots=True)
class TableSource:
    """A table to work on.

    Attributes:
        whole: The table, if all of it is in memory.
        path: The file, if it is one.
        frames: The pieces, if they come from elsewhere; they can be read once.
        columns: Names of its columns, of the first piece if it has several.
    """

    whole: pd.DataFrame | None = None
    path: Path | None = None
    frames: Iterable[pd.DataFrame] | None = None
    columns: tuple[Any, ...] = ()

    @property
    def again(self) -> bool:
        """Whether it can be read more than once."""
        return self.frames is None or not isinstance(self.frames, Iterator)

    def pieces(self, rows: int, texts: Collection[str] = ()) -> Iterator[pd.DataFrame]:
        """Read it.

        Args:
            rows: Maximum of rows in a piece of a file or stream; a table in memory comes whole.
            texts: Columns of a CSV file whose cells are texts, whatever they look like: ``007``, ``None``. Without
                that, what a cell is would depend on the cells that happen to stand in the same piece.
        """
        if self.whole is not None:
            yield self.whole
        elif self.path is not None:
            yield from _read(self.path, rows, texts)
        else:
            for frame in self.frames or ():
                table = _given(frame)
                for start in range(0, max(len(table), 1), rows):
                    yield table.iloc[start : start + rows]


def open_source(source: Table) -> TableSource:
    """Open a table of any of the kinds allowed, and read the names of its columns.

    Raises:
        InvalidRequestError: It is none of the kinds allowed, or there is no such file.
    """
    import pandas as pd

    frame = _as_frame(source)
    if frame is not None:
        return TableSource(whole=frame, columns=tuple(frame.columns))
    if isinstance(source, str | os.PathLike):
        path = _file(Path(source))
        return TableSource(path=path, columns=_columns_of(path))
    if isinstance(source, Iterable) and not isinstance(source, dict | bytes | pd.Series):
        return _pieces_of(source)
    more = ": make one of it with .to_frame()" if isinstance(source, pd.Series) else ""
    message = f"the table is a {type(source).__name__}; give {_KINDS}{more}"
    raise InvalidRequestError(message, parameter="source")


def _pieces_of(source: Iterable[Any]) -> TableSource:
    pieces = iter(source)
    first = next(pieces, None)
    if first is None:
        return TableSource(frames=source)
    columns = tuple(_given(first).columns)
    # an iterator can be read only once, and its first piece is taken
    frames = chain([first], pieces) if isinstance(source, Iterator) else source
    return TableSource(frames=frames, columns=columns)


def _given(piece: object) -> pd.DataFrame:
    table = _as_frame(piece)
    if table is None:
        message = f"the iterable gives a {type(piece).__name__}; it must give DataFrames"
        raise InvalidRequestError(message, parameter="source")
    return table


def _as_frame(value: object) -> pd.DataFrame | None:
    import pandas as pd

    if isinstance(value, pd.DataFrame):
        return value
    import pyarrow as pa

    if isinstance(value, pa.Table | pa.RecordBatch):
        frame: pd.DataFrame = value.to_pandas()
        return frame
    return None


def _file(path: Path) -> Path:
    if path.suffix.lower() not in {".parquet", ".csv", ".jsonl"}:
        message = f"{path} ends in {path.suffix or 'nothing'!r}; give {_KINDS}"
        raise InvalidRequestError(message, parameter="source")
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise InvalidRequestError(f"{path} {what}; name a file with a table", parameter="source")
    return path


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Translate errors of reading a file as what its name says.

    Raises:
        InvalidRequestError: It cannot.
    """
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidRequestError):
            raise
        message = f"{path} cannot be read as a table: {error}"
        raise InvalidRequestError(message, parameter="source") from error


def _columns_of(path: Path) -> tuple[Any, ...]:
    """Return the names of a file's columns; of JSON Lines, those of its first lines."""
    import pandas as pd
    import pyarrow.parquet as pq

    with _readable(path):
        if path.suffix.lower() == ".parquet":
            return tuple(pq.read_schema(path).empty_table().to_pandas().columns)
        if path.suffix.lower() == ".csv":
            return tuple(pd.read_csv(path, nrows=0).columns)
        return tuple(pd.read_json(path, lines=True, nrows=_LINES).columns)


def _read(path: Path, rows: int, texts: Collection[str]) -> Iterator[pd.DataFrame]:
    import pandas as pd

    with _readable(path):
        if path.suffix.lower() == ".parquet":
            yield from _read_parquet(path, rows)
        elif path.suffix.lower() == ".csv":
            as_text = dict.fromkeys(texts, str)
            empty = {name: "" if name in as_text else _EMPTY for name in _columns_of(path)}
            options: dict[str, Any] = {"dtype": as_text, "na_values": empty, "keep_default_na": False}
            with pd.read_csv(path, chunksize=rows, **options) as reader:
                yield from reader
        else:
            # JSON says itself what is a text and what a number
            with pd.read_json(path, lines=True, chunksize=rows, dtype=False) as lines:
                yield from lines


def _read_parquet(path: Path, rows: int) -> Iterator[pd.DataFrame]:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    start = 0
    with pq.ParquetFile(path) as file:
        if not file.metadata.num_rows:
            yield file.read().to_pandas()
        for batch in file.iter_batches(batch_size=rows):
            frame: pd.DataFrame = pa.Table.from_batches([batch]).to_pandas()
            if isinstance(frame.index, pd.RangeIndex) and frame.index.name is None:
                frame.index = pd.RangeIndex(start, start + len(frame))
            start += len(frame)
            yield frame
