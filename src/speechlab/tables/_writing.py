"""Tables in files: Parquet, CSV or JSON Lines, piece by piece, with types that all pieces have."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab._require import require
from speechlab.tables._formulas import escape_frame_formulas
from speechlab.tables._storable import cell_to_text, to_arrow_table

if TYPE_CHECKING:
    import pyarrow as pa

    from speechlab.tables._files import TableFormat

# Number of pieces that are held in memory. More are read twice.
_MAX_PIECES_IN_MEMORY = 8


def write_table(
    parts: Callable[[], Iterator[pd.DataFrame]],
    pieces: int,
    path: Path,
    format: TableFormat,  # noqa: A002 - as everywhere
    about: Mapping[bytes, bytes],
) -> None:
    """Write a table piece by piece, few in memory; many pieces are read twice, for their types and their rows."""
    require("pyarrow")
    import pyarrow.parquet as pq

    few = [to_arrow_table(frame) for frame in parts()] if pieces <= _MAX_PIECES_IN_MEMORY else None
    schema = merge_schemas(table.schema for table in few or map(to_arrow_table, parts()))
    schema = schema.with_metadata({**(schema.metadata or {}), **about})
    tables = (cast_table(table, schema) for table in few or map(to_arrow_table, parts()))
    if format.kind == "parquet":
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for table in tables:
                writer.write_table(table)
        return
    if format.kind == "folder":
        path.mkdir()
        for number, table in enumerate(tables):
            pq.write_table(table, path / f"part-{number:06}.parquet", compression="zstd")
        return
    with (
        gzip.open(path, "wt", encoding="utf-8", newline="")
        if format.packed
        else path.open("w", encoding="utf-8", newline="")
    ) as file:
        for number, table in enumerate(tables):
            rows = _add_index_columns(table.to_pandas())
            if format.kind == "jsonl":
                file.writelines(_format_json_lines(rows))
            else:
                escape_frame_formulas(rows).to_csv(
                    file, sep=format.separator, index=False, header=not number, lineterminator="\n"
                )


def _add_index_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with their index labels as columns, unless the index only counts the rows."""
    if isinstance(frame.index, pd.RangeIndex) and frame.index.name is None:
        return frame
    single = frame.index.nlevels == 1
    names = []
    for at, name in enumerate(frame.index.names):
        text = str(name) if name is not None else "index" if single else f"level_{at}"
        names.append(f"{text} (index)" if text in frame.columns else text)
    return frame.rename_axis(index=names).reset_index()


def _format_json_lines(frame: pd.DataFrame) -> Iterator[str]:
    names = frame.columns.tolist()
    for cells in zip(*(frame[name].tolist() for name in names), strict=True):
        row = {str(name): None if is_missing(cell) else cell for name, cell in zip(names, cells, strict=True)}
        options = orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE
        yield orjson.dumps(row, default=_to_json_value, option=options).decode()


def _to_json_value(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    return value.isoformat() if hasattr(value, "isoformat") else cell_to_text(value)


def merge_schemas(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """Find types that hold the columns of all pieces: fractions for numbers, or else text."""
    import pyarrow as pa

    pieces = list(schemas)
    kinds: dict[str, list[pa.DataType]] = {}
    for schema in pieces:
        for field in schema:
            kinds.setdefault(field.name, []).append(_widen_type(field.type))
    first = pieces[0]
    types = {name: reduce(_merge_types, each) for name, each in kinds.items()}
    unchanged = {field.name for field in first if _widen_type(field.type) == types[field.name]}
    return pa.schema(list(types.items()), metadata=_select_pandas_notes(first.metadata or {}, unchanged))


def cast_table(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Convert a piece to the common columns and types."""
    import pyarrow as pa

    columns = []
    for field in schema:
        if field.name not in table.column_names:
            columns.append(pa.nulls(len(table), field.type))
            continue
        column = table.column(field.name)
        if pa.types.is_dictionary(column.type) and not pa.types.is_dictionary(field.type):
            column = column.cast(column.type.value_type)
        columns.append(_cast_column(column, field.type))
    return pa.table(columns, schema=schema)


def _cast_column(column: pa.ChunkedArray, kind: pa.DataType) -> Any:
    import pyarrow as pa

    if column.type == kind:
        return column  # a cast to their own type makes lists of lists of nothing invalid (pyarrow 26)
    try:
        return column.cast(kind)
    except pa.ArrowException:
        if not pa.types.is_string(kind):
            raise
        return pa.array(
            [cell_to_text(cell) for cell in column.to_pylist()], kind
        )  # lists have no cast to text


def _widen_type(kind: pa.DataType) -> pa.DataType:
    """Return the widest form of a type: the width of codes and offsets depends on the piece."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        values = kind.value_type
        values = pa.string() if pa.types.is_null(values) else _widen_type(values)
        return pa.dictionary(pa.int32(), values, ordered=kind.ordered)
    return pa.string() if pa.types.is_large_string(kind) else kind


def _merge_types(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if pa.types.is_boolean(one) or pa.types.is_boolean(other):  # Arrow would make them 0 and 1
        return pa.string()
    if pa.types.is_dictionary(one) or pa.types.is_dictionary(other):
        return pa.string()
    if pa.types.is_integer(one) and pa.types.is_floating(other):
        return pa.float64()
    if pa.types.is_floating(one) and pa.types.is_integer(other):
        return pa.float64()
    try:
        schemas = [pa.schema([("", kind)]) for kind in (one, other)]
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException:
        return pa.string()


def _select_pandas_notes(metadata: dict[bytes, bytes], kept: set[str]) -> dict[bytes, bytes]:
    """Return the notes of pandas on a piece's columns, without columns whose type has changed."""
    if b"pandas" not in metadata:
        return metadata
    noted: dict[str, Any] = json.loads(metadata[b"pandas"])
    noted["columns"] = [
        column for column in noted["columns"] if column.get("field_name", column["name"]) in kept
    ]
    return {**metadata, b"pandas": json.dumps(noted).encode()}
