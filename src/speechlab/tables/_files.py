"""Files of tables: their formats, their columns, and their rows in pieces."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechlab._pandas import pd
from speechlab._require import require
from speechlab._untrusted import open_maybe_gzip
from speechlab.errors import InvalidRequestError
from speechlab.tables._delimited import (
    PLAIN_SEPARATORS,
    SURPLUS_CELLS,
    describe_torn_line,
    has_enclosing_quotes,
    unquote_tsv_cell,
)
from speechlab.tables._formulas import unescape_formula

if TYPE_CHECKING:
    import pyarrow as pa

_HEAD_LINES = 100
# The cells of a CSV file that are empty for pandas. In a column of texts, "None" and "NA" are texts.
_EMPTY_TEXTS = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
_FORMATS = {
    ".parquet": ("parquet", ""),
    ".csv": ("csv", ","),
    ".tsv": ("csv", "\t"),
    ".jsonl": ("jsonl", ""),
    ".ndjson": ("jsonl", ""),
}
FILES_ALLOWED = "a path that ends in .parquet, .csv, .tsv or .jsonl (all but the first also with .gz)"


@dataclass(frozen=True, slots=True)
class TableFormat:
    """The format of a table's file."""

    kind: str
    separator: str = ""
    packed: bool = False


def resolve_table_format(path: Path, parameter: str = "source") -> TableFormat:
    """Return the format of a file, by its name."""
    packed = path.suffix.lower() == ".gz"
    ending = (path.with_suffix("") if packed else path).suffix.lower()
    if ending in _FORMATS and not (packed and ending == ".parquet"):
        return TableFormat(*_FORMATS[ending], packed)
    has = f"ends in {path.suffix!r}" if path.suffix.strip(".") else "has no ending that names its format"
    message = f"{str(path)!r:.80} {has}; give {FILES_ALLOWED}"
    raise InvalidRequestError(message, parameter=parameter)


def has_table(folder: Path) -> bool:
    """Return whether a folder has Parquet files."""
    return bool(_list_parquet_files(folder))


def check_table_path(path: Path) -> None:
    """Refuse a path without a table."""
    if path.is_dir():
        if not _list_parquet_files(path):
            message = (
                f"{path} is a folder without Parquet files; name a file with a table, or a folder of them"
            )
            raise InvalidRequestError(message, parameter="source")
        return
    resolve_table_format(path)


def read_column_names(path: Path) -> tuple[Any, ...]:
    """Return the names of a file's columns; for JSON Lines, those in its first lines."""
    require("pyarrow")
    import pyarrow.parquet as pq

    with _translate_read_errors(path):
        if path.is_dir():
            return tuple(_open_dataset(path).schema.empty_table().to_pandas().columns)
        format_ = resolve_table_format(path)
        if format_.kind == "parquet":
            return tuple(pq.read_schema(path).empty_table().to_pandas().columns)
        with open_maybe_gzip(path) as stream:
            if format_.kind == "csv":
                head = pd.read_csv(stream, nrows=0, **_detect_csv_options(path, format_))
                return tuple(map(unescape_formula, head.columns))
            return tuple(pd.read_json(stream, lines=True, nrows=_HEAD_LINES).columns)


def read_pieces(path: Path, rows: int, texts: Collection[str]) -> Iterator[pd.DataFrame]:
    """Read a file, or a folder of Parquet files in the order of their names."""
    with _translate_read_errors(path):
        if path.is_dir() or resolve_table_format(path).kind == "parquet":
            yield from _to_frames(
                _read_folder_batches(path, rows) if path.is_dir() else _read_parquet_batches(path, rows)
            )
        elif (format_ := resolve_table_format(path)).kind == "csv":
            dialect = _detect_csv_options(path, format_)
            with open_maybe_gzip(path) as stream:
                names = pd.read_csv(stream, nrows=0, **dialect).columns
            as_text = {name: str for name in names if unescape_formula(name) in texts}
            empty = {name: ["", '""'] if name in as_text else _EMPTY_TEXTS for name in names}
            options: dict[str, Any] = {"dtype": as_text, "na_values": empty, "keep_default_na": False}
            is_plain = "quoting" in dialect
            with (
                open_maybe_gzip(path) as stream,
                pd.read_csv(stream, chunksize=rows, **options, **dialect) as reader,
            ):
                for frame in reader:
                    if not isinstance(frame.index, pd.RangeIndex):  # surplus cells, which pandas makes labels
                        raise ValueError(SURPLUS_CELLS)  # noqa: TRY004 - what the file holds
                    yield _unescape_frame_cells(frame, is_plain=is_plain)
        else:
            # JSON distinguishes texts from numbers
            with (
                open_maybe_gzip(path) as stream,
                pd.read_json(stream, lines=True, chunksize=rows, dtype=False) as lines,
            ):
                yield from lines


def _detect_csv_options(path: Path, format_: TableFormat) -> dict[str, Any]:
    """Return the options of pandas for a file of CSV or TSV."""
    if format_.separator not in PLAIN_SEPARATORS:
        return {"sep": format_.separator}
    with open_maybe_gzip(path) as stream:
        quoted = has_enclosing_quotes((line.decode("utf-8") for line in stream), format_.separator)
    return {"sep": format_.separator} | ({} if quoted else {"quoting": csv.QUOTE_NONE})


def _unescape_frame_cells(frame: pd.DataFrame, *, is_plain: bool) -> pd.DataFrame:
    for name in frame.columns[[kind.kind not in "biufM" for kind in frame.dtypes]]:
        cells = frame[name].map(unquote_tsv_cell) if is_plain else frame[name]
        frame[name] = cells.map(unescape_formula)
    return frame.rename(columns=unescape_formula)


@contextmanager
def _translate_read_errors(path: Path) -> Iterator[None]:
    """Translate the errors of reading a table file."""
    try:
        yield
    # Arrow has errors of these kinds, and a torn or damaged gzip is made one of them.
    except (OSError, ValueError, TypeError) as error:
        if isinstance(error, InvalidRequestError):
            raise
        why = (
            "it is no UTF-8; save it as such"
            if isinstance(error, UnicodeDecodeError)
            else describe_torn_line(error)
        )
        message = f"{path} cannot be read as a table: {why}"
        raise InvalidRequestError(message, parameter="source") from error


def _read_parquet_batches(path: Path, rows: int) -> Iterator[pa.Table]:
    require("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        if not file.metadata.num_rows:
            yield file.read()
        for batch in file.iter_batches(batch_size=rows):
            yield pa.Table.from_batches([batch])


def _list_parquet_files(folder: Path) -> list[Path]:
    """The Parquet files of a folder in the order of their names, without files that begin with ``_`` or ``.``."""
    files = sorted(file for file in folder.rglob("*.parquet") if file.is_file())
    return [file for file in files if not any(name[0] in "_." for name in file.relative_to(folder).parts)]


def _open_dataset(folder: Path) -> Any:
    """A folder as an Arrow dataset, with the columns that the names of its folders define (``language=ja``)."""
    require("pyarrow")
    import pyarrow as pa
    import pyarrow.dataset as ds

    files = [str(file) for file in _list_parquet_files(folder)]
    options: dict[str, Any] = {"format": "parquet", "partition_base_dir": str(folder)}
    options["partitioning"] = ds.partitioning(flavor="hive")
    dataset = ds.dataset(files, **options)
    schemas = [fragment.physical_schema for fragment in dataset.get_fragments()]
    merged = pa.unify_schemas([*schemas, dataset.schema], promote_options="permissive")
    return ds.dataset(files, schema=merged.with_metadata(schemas[0].metadata), **options)


def _read_folder_batches(folder: Path, rows: int) -> Iterator[pa.Table]:
    import pyarrow as pa

    dataset, any_row = _open_dataset(folder), False
    for file in dataset.get_fragments():
        for batch in file.to_batches(schema=dataset.schema, batch_size=rows, batch_readahead=1):
            if len(batch):
                any_row = True
                yield pa.Table.from_batches([batch])
    if not any_row:
        yield dataset.schema.empty_table()


def _to_frames(tables: Iterator[pa.Table]) -> Iterator[pd.DataFrame]:
    start = 0
    for table in tables:
        frame: pd.DataFrame = table.to_pandas()
        if isinstance(frame.index, pd.RangeIndex) and frame.index.name is None:
            frame.index = pd.RangeIndex(start, start + len(frame))
        start += len(frame)
        yield frame
