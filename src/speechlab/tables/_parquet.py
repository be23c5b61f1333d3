"""Parquet files of strangers: how much memory their tables take, found out before they are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechlab._files import check_is_regular_file
from speechlab._require import require
from speechlab._untrusted import check_unpacked_size, compute_max_unpacked
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_CELL_BYTES = 8
# Names and statistics of a column take 30 KB of memory when it is read, and 50 bytes of a file.
_MAX_COLUMNS = 20_000
_ROWS, _NESTED_ROWS = 16_384, 1_024  # read at once


def check_parquet_unpacked_size(source: Path | bytes) -> None:
    """Refuse a file whose table takes far more memory than the file is large.

    A column of one value takes some bytes for any number of rows, and a long text that all rows have stands once in
    the file.

    Raises:
        InvalidRequestError: The table exceeds the limit of :func:`speechlab._untrusted.compute_max_unpacked`.
        OSError, ValueError: It is no Parquet file; most errors of Arrow are of these kinds.
    """
    require("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    if isinstance(source, Path):
        check_is_regular_file(source)
    packed, name = (len(source), "it") if isinstance(source, bytes) else (source.stat().st_size, source.name)
    try:
        with pq.ParquetFile(_to_parquet_source(source)) as file:
            if file.metadata.num_columns > _MAX_COLUMNS:
                message = (
                    f"{name} has {file.metadata.num_columns:,} columns; at most {_MAX_COLUMNS:,} are read"
                )
                raise InvalidRequestError(message, parameter="source")
            total, texts = _measure_column_bytes(file.metadata)
        check_unpacked_size(name, total, packed)
        for column, bound in texts.items():
            if total + bound > compute_max_unpacked(packed):  # a text may be repeated
                for size in _measure_text_bytes(source, column):
                    total += size
                    check_unpacked_size(name, total, packed)
    except pa.ArrowException as error:
        raise ValueError(f"it is no Parquet file: {error}") from error


def _to_parquet_source(source: Path | bytes) -> Any:
    return BytesIO(source) if isinstance(source, bytes) else source


def _measure_column_bytes(metadata: pq.FileMetaData) -> tuple[int, Counter[str]]:
    """Return the bytes of all cells, and of each column of texts at most: as if each cell had all of its texts."""
    total, texts = 0, Counter[str]()
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(number)
            total += max(chunk.num_values * _CELL_BYTES, chunk.total_uncompressed_size)
            if chunk.physical_type == "BYTE_ARRAY" and chunk.has_dictionary_page:
                texts[chunk.path_in_schema] += chunk.num_values * chunk.total_uncompressed_size
    return total, texts


def _measure_text_bytes(source: Path | bytes, column: str) -> Iterator[int]:
    """Yield the bytes of the texts of a column, some rows at a time, of which each different text is read once."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    rows = _NESTED_ROWS if "." in column else _ROWS
    with pq.ParquetFile(_to_parquet_source(source), read_dictionary=[column]) as file:
        for batch in file.iter_batches(rows, columns=[column]):
            for values in map(_flatten_lists, batch.columns):
                if pa.types.is_dictionary(values.type) and len(values.dictionary):
                    lengths = pc.binary_length(values.dictionary.cast(pa.binary()))
                    yield pc.sum(lengths.take(values.indices)).as_py() or 0
                else:
                    yield values.nbytes


def _flatten_lists(values: pa.Array) -> pa.Array:
    """Return the innermost values of lists."""
    import pyarrow as pa

    while pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        values = values.flatten()
    return values
