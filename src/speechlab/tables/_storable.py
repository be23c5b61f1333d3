"""Conversion of tables with cells of any kind to tables that a Parquet file keeps without loss.

A column is kept unchanged if it can be written and read. Otherwise the first possible form is used: sparse columns as
dense, unusual categories as categories of their texts, Arrow lists and similar types as objects, long floats as
floats if no digit is lost, and finally texts.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab._platform import get_text_dtype
from speechlab._require import require
from speechlab.audio import AudioClip, FileSegment, unify_recording
from speechlab.errors import SpeechLabError
from speechlab.tables._parquet import check_parquet_unpacked_size

if TYPE_CHECKING:
    import pyarrow as pa

# Key of the column labels in a file's metadata; the file itself has them as texts.
_LABELS_KEY = b"speechlab_columns"
# Maximum nesting of lists and dicts in a cell. Arrow ends the process on a list that contains itself.
_MAX_DEPTH = 50


def to_storable(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the same rows in the same order that a Parquet file can store, with unique names."""
    names = _labels_to_unique_texts(frame.columns)
    columns = {name: _to_storable_column(frame.iloc[:, at]).array for at, name in enumerate(names)}
    storable = pd.DataFrame(columns, index=frame.index)
    if not isinstance(frame.index, pd.RangeIndex):
        levels = [_to_storable_column(_get_index_level(frame.index, at)) for at in range(frame.index.nlevels)]
        if len(levels) > 1:
            storable.index = pd.MultiIndex.from_arrays(levels, names=list(frame.index.names))
        else:
            storable.index = pd.Index(levels[0], name=frame.index.name)
    storable.attrs = {name: value for name, value in frame.attrs.items() if _is_json_item(name, value)}
    return storable


def to_arrow_table(frame: pd.DataFrame) -> pa.Table:
    """Return a table as an Arrow table that can be written. Its metadata has the labels of the columns."""
    require("pyarrow")
    import pyarrow as pa

    table = pa.Table.from_pandas(to_storable(frame))
    labels = [_label_to_json(label) for label in frame.columns.tolist()]
    names = [None if name is None else str(name) for name in frame.columns.names]
    noted = orjson.dumps({"labels": labels, "names": names, "levels": frame.columns.nlevels})
    return table.replace_schema_metadata({**(table.schema.metadata or {}), _LABELS_KEY: noted})


def to_pandas_table(table: pa.Table) -> pd.DataFrame:
    """Convert a table of :func:`to_arrow_table` to pandas, with its original column labels."""
    frame: pd.DataFrame = table.to_pandas()
    if str(get_text_dtype()) == "string":  # pandas 2.2 writes one name for two dtypes of texts
        texts = [name for name, dtype in frame.dtypes.items() if isinstance(dtype, pd.StringDtype)]
        frame = frame.astype(dict.fromkeys(texts, get_text_dtype()))
    noted = (table.schema.metadata or {}).get(_LABELS_KEY)
    if noted is not None:
        frame.columns = _parse_column_labels(noted)
    return frame


def to_parquet_bytes(frame: pd.DataFrame) -> bytes:
    """Return a table as a Parquet file."""
    import pyarrow.parquet as pq

    file = BytesIO()
    pq.write_table(to_arrow_table(frame), file, compression="zstd")
    return file.getvalue()


def read_stored_table(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a table that :func:`to_parquet_bytes` wrote, with its original column labels."""
    require("pyarrow")
    import pyarrow.parquet as pq

    check_parquet_unpacked_size(Path(path))
    return to_pandas_table(pq.read_table(path, partitioning=None))


def cell_to_text(value: object) -> str | None:
    """Return the text of a cell in a file: ``sha256:…`` of a recording, path and times of a segment, or None."""
    value = _unify_mapping(value)
    if isinstance(value, AudioClip) and not isinstance(value, FileSegment):
        return f"sha256:{hashlib.sha256(value.samples.tobytes()).hexdigest()}"
    if isinstance(value, bytes | bytearray | memoryview):
        return f"sha256:{hashlib.sha256(value).hexdigest()}"
    try:
        if is_missing(value):
            return None
        return str(value).encode("utf-8", "replace").decode()
    except Exception:  # noqa: BLE001 - any object may fail here, and the table must not be lost
        return f"<{type(value).__name__}>"


def _unify_mapping(value: object) -> object:
    """Return the recording in a cell of a data set of Hugging Face; other values unchanged."""
    try:
        found = unify_recording(value) if isinstance(value, Mapping) else None
    except SpeechLabError:
        found = None
    return value if found is None else found


def _parse_column_labels(noted: bytes) -> pd.Index[Any]:
    header = orjson.loads(noted)
    names = header["names"]
    labels = [tuple(label) if isinstance(label, list) else label for label in header["labels"]]
    index: pd.Index[Any] = pd.Index(labels, name=names[0], dtype=object, tupleize_cols=False)
    if header["levels"] > 1:
        index = pd.MultiIndex.from_tuples(labels, names=names)
    elif all(isinstance(label, str) for label in labels):
        index = pd.Index(labels, name=names[0], dtype=pd.Index([""]).dtype)  # as pandas makes them
    return index


def _label_to_json(label: Any) -> Any:
    """Return a label of a column as JSON; one without a JSON form becomes a text."""
    if isinstance(label, tuple):
        return [_label_to_json(part) for part in label]
    label = label.item() if hasattr(label, "item") and not hasattr(label, "isoformat") else label
    if label is None or (isinstance(label, bool | int | float) and -(2**53) < label < 2**53):
        return label
    return _label_to_text(label)


def _labels_to_unique_texts(columns: pd.Index[Any]) -> list[str]:
    """Return the labels as unique texts: 1 and "1" are two columns."""
    unique: dict[str, None] = {}
    for label in columns.tolist():
        text, number = _label_to_text(label), 1
        name = text
        while name in unique:
            number += 1
            name = f"{text} ({number})"
        unique[name] = None
    return list(unique)


def _label_to_text(label: object) -> str:
    return str(label).encode("utf-8", "replace").decode()


def _get_index_level(index: pd.Index[Any], at: int) -> pd.Series[Any]:
    return pd.Series(index.get_level_values(at), index=pd.RangeIndex(len(index)))


def _is_json_item(name: object, value: object) -> bool:
    try:
        json.dumps({name: value})
    except (TypeError, ValueError, RecursionError):
        return False
    return isinstance(name, str)


def _to_storable_column(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return the first form of a column that a file keeps without loss."""
    for form in _list_form_builders(column):
        try:
            converted = form()
            fits = _is_lossless_column(converted)
        except Exception:  # noqa: BLE001 - from pandas, from Arrow, or from an object of any kind
            fits = False
        if fits:
            return converted
    return pd.Series([cell_to_text(cell) for cell in column], dtype=get_text_dtype())


def _has_object_cells(column: pd.Series[Any]) -> bool:
    """Return whether the cells of a column are objects of any kind."""
    return str(column.dtype) == "object"


def _list_form_builders(column: pd.Series[Any]) -> list[Callable[[], pd.Series[Any]]]:
    dtype: Any = column.dtype
    if isinstance(dtype, pd.SparseDtype):
        sparse: Any = column.sparse
        return [lambda: _to_storable_column(sparse.to_dense())]
    if _has_object_cells(column):
        cells = column.tolist()
        if any(
            isinstance(_unify_mapping(cell), bytes | bytearray | memoryview | AudioClip) for cell in cells
        ):
            return []  # recordings, which the store has already
        if any(_is_too_deep(cell) for cell in cells):
            return []
        if pd.api.types.infer_dtype(column, skipna=True) == "integer":
            return [
                lambda: column.astype("Int64")
            ]  # without it, an empty cell makes fractions of large numbers
        return [lambda: column]
    if isinstance(dtype, pd.CategoricalDtype):
        return [lambda: column, lambda: _rename_categories_to_texts(column)]
    if isinstance(dtype, pd.ArrowDtype):
        binary = dtype.kind == "S" or "binary" in str(dtype.pyarrow_dtype).partition("<")[0]
        if "view" in str(dtype.pyarrow_dtype):
            return [lambda: column.astype(get_text_dtype())]  # which pandas cannot write to a CSV file
        return [] if binary else [lambda: column, lambda: _to_storable_column(column.astype(object))]
    if dtype.kind == "f" and getattr(dtype, "itemsize", 8) > 8:
        return [lambda: _to_exact_floats(column)]
    return [lambda: column]


def _is_lossless_column(column: pd.Series[Any]) -> bool:
    """Return whether a file keeps a column without loss: from its type if that decides, otherwise by a trial."""
    require("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    if _is_plain_type(column.dtype):
        return True
    table = pa.Table.from_pandas(column.to_frame("x"), preserve_index=False)
    kind = table.schema.field(0).type
    if _has_object_cells(column) and pa.types.is_timestamp(
        kind
    ):  # Arrow drops zones where cells differ in them
        return len({str(cell.tzinfo) for cell in column if not is_missing(cell)}) < 2
    if _is_simple_arrow_type(kind) and not isinstance(column.dtype, pd.ArrowDtype):
        return True
    file = BytesIO()
    pq.write_table(table, file)
    return len(pq.read_table(file).to_pandas()) == len(column)


def _is_plain_type(dtype: Any) -> bool:
    """Whether any column of a type can be written: numbers of up to 64 bits, and texts that Arrow holds already."""
    import numpy as np

    if isinstance(dtype, np.dtype):
        return dtype.kind in "biuf" and dtype.itemsize <= 8
    if isinstance(dtype, pd.StringDtype):
        return dtype.storage == "pyarrow"
    return isinstance(dtype, pd.Int64Dtype | pd.Float64Dtype | pd.BooleanDtype)


def _is_simple_arrow_type(kind: pa.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_primitive(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_too_deep(cell: object, levels: int = _MAX_DEPTH) -> bool:
    if not isinstance(cell, list | tuple | dict | set | frozenset):
        return False
    inner = [*cell.keys(), *cell.values()] if isinstance(cell, dict) else cell
    return not levels or any(_is_too_deep(item, levels - 1) for item in inner)


def _rename_categories_to_texts(column: pd.Series[Any]) -> pd.Series[Any]:
    texts = [cell_to_text(category) for category in column.cat.categories]
    renamed: pd.Series[Any] = column.cat.rename_categories(texts)  # which refuses two that are the same
    return renamed


def _to_exact_floats(column: pd.Series[Any]) -> pd.Series[Any]:
    shorter = column.astype("float64")
    if not ((shorter == column) | column.isna()).all():
        raise ValueError("digits would be lost")
    return shorter
