"""Common types for the pieces of a table, which differ where they come from a CSV file."""

from __future__ import annotations

import json
from functools import reduce
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa


def common_schema(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """Find types that hold the columns of all pieces.

    Whole numbers and fractions become fractions, what is empty in one piece is what another says, and types that
    have nothing in common become text.

    Args:
        schemas: Of the pieces, at least one. What pandas noted is taken from the first.
    """
    import pyarrow as pa

    pieces = list(schemas)
    kinds: dict[str, list[pa.DataType]] = {}
    for schema in pieces:
        for field in schema:
            kinds.setdefault(field.name, []).append(_wide(field.type))
    first = pieces[0]
    types = {name: reduce(_both, each) for name, each in kinds.items()}
    kept = {field.name for field in first if _wide(field.type) == types[field.name]}
    return pa.schema(list(types.items()), metadata=_noted(first.metadata or {}, kept))


def fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Give a piece the columns and types of all."""
    import pyarrow as pa

    columns = []
    for field in schema:
        if field.name not in table.column_names:
            columns.append(pa.nulls(len(table), field.type))
            continue
        column = table.column(field.name)
        if pa.types.is_dictionary(column.type) and not pa.types.is_dictionary(field.type):
            column = column.cast(column.type.value_type)
        columns.append(column.cast(field.type))
    return pa.table(columns, schema=schema)


def _wide(kind: pa.DataType) -> pa.DataType:
    """The widest form of a type: the width of codes and offsets depends on the piece."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        values = kind.value_type
        values = pa.string() if pa.types.is_null(values) else _wide(values)
        return pa.dictionary(pa.int32(), values, ordered=kind.ordered)
    return pa.string() if pa.types.is_large_string(kind) else kind


def _both(one: pa.DataType, other: pa.DataType) -> pa.DataType:
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


def _noted(metadata: dict[bytes, bytes], kept: set[str]) -> dict[bytes, bytes]:
    """The notes of pandas on a piece's columns, without columns whose type has changed."""
    if b"pandas" not in metadata:
        return metadata
    noted: dict[str, Any] = json.loads(metadata[b"pandas"])
    noted["columns"] = [
        column for column in noted["columns"] if column.get("field_name", column["name"]) in kept
    ]
    return {**metadata, b"pandas": json.dumps(noted).encode()}
