"""The segment frame: its columns, and the check that a table is one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._arguments import check_text
from speechlab._frames import to_pandas_frame
from speechlab._pandas import pd
from speechlab._platform import get_text_dtype
from speechlab.errors import SegmentError
from speechlab.segments._frame.ticks import LATEST_S, refuse_rows, to_ticks

if TYPE_CHECKING:
    from numpy.typing import NDArray

COLUMNS: dict[str, str] = {
    "file": "the recording: its path, name or id",
    "start": "seconds from the recording's beginning, 0 or more",
    "end": "seconds; the segment includes its start, but not its end",
    "text": "text of the segment; empty if unknown",
    "channel": "name of the channel, such as 1 or A; empty if unknown",
    "speaker": "name of the speaker; empty if unknown",
    "confidence": "0 to 1; NaN if unknown",
    "source": "origin: a recognizer, a person, a file; empty if unknown",
}
"""The columns of a segment frame. The first four are always present; the user's own columns may follow."""

REQUIRED = ("file", "start", "end", "text")
TEXTS = frozenset({"file", "text", "channel", "speaker", "source"})


def frame(data: object, *, file: str | None = None) -> pd.DataFrame:
    """Make a segment frame: one row for each segment, checked, with typed columns.

    >>> from speechlab import segments
    >>> segments.frame([(0.5, 2.0, "Hello."), (3.0, 5.0, "Yes.")], file="talk.wav")
           file  start  end    text
    0  talk.wav    0.5  2.0  Hello.
    1  talk.wav    3.0  5.0    Yes.

    Rows keep their order, which may be any. Segments may overlap, touch, and have no length (instants). Columns that
    are not in :data:`COLUMNS` follow the others, unchanged.

    Args:
        data: A table with the columns ``start`` and ``end``, such as a transcript's ``segments``, or one of words,
            whose column ``word`` becomes ``text``; or mappings, tuples ``(start, end)`` or ``(start, end, text)``, or
            objects with such attributes.
        file: The recording of rows without one; by default the empty name.

    Returns:
        A new frame with a new index from 0.

    Raises:
        SegmentError: A column is missing or has values of a wrong type; a time is missing, negative or not finite; or
            an end is before its start. The message names the first such row.
    """
    table = _to_table(data)
    if not table.columns.is_unique:
        twice = table.columns[table.columns.duplicated()]
        raise SegmentError(f"the column {twice[0]!r} occurs twice; rename one", column=str(twice[0]))
    for name in ("start", "end"):
        if name not in table.columns:
            have = ", ".join(map(str, table.columns)) or "none"
            raise SegmentError(f"a segment frame needs the column {name!r}; there are: {have}", column=name)
    columns: dict[Any, Any] = {}
    for name in COLUMNS:
        if name in TEXTS:
            if name in table.columns:
                columns[name] = _to_text_array(table[name], name)
            elif name in REQUIRED:
                columns[name] = pd.array([""] * len(table), dtype=get_text_dtype())
        elif name in table.columns:
            columns[name] = _to_float_array(table[name], name)
    columns["file"] = _fill_empty_file_names(columns["file"], file)
    _check_times(columns["start"], columns["end"])
    if "confidence" in columns:
        values = columns["confidence"]
        _refuse_values((values < 0) | (values > 1), values, "confidence", "is not between 0 and 1")
    result = pd.DataFrame(columns)
    for name in table.columns:
        if name not in columns:
            result[name] = pd.Series(table[name].array, dtype=table[name].dtype)
    return result


def to_index(given: object, checked: pd.DataFrame) -> pd.Index[Any]:
    """Return the index of a table of pandas; rows of another kind have that of their segment frame."""
    return given.index if isinstance(given, pd.DataFrame) else checked.index


def _to_table(data: object) -> pd.DataFrame:
    """Return a table or rows as a table, with words as texts."""
    given = to_pandas_frame(data)
    table = _build_table_from_rows(data) if given is None else given
    return table if "text" in table.columns else table.rename(columns={"word": "text"})


def _build_table_from_rows(data: object) -> pd.DataFrame:
    if isinstance(data, (str, bytes, Mapping)) or not isinstance(data, Iterable):
        message = f"segments are given as a table or as rows, not as {type(data).__name__}"
        raise SegmentError(f"{message}; read a file with speechlab.segments.read")
    rows = [_to_row(row, number) for number, row in enumerate(data)]
    names = list(dict.fromkeys(name for row in rows for name in row)) or ["start", "end"]
    columns = {name: [row.get(name) for row in rows] for name in names}
    # texts are checked before they become an array, which cannot have half of a character
    kinds = {name: object if name in TEXTS else None for name in names}
    return pd.DataFrame({name: pd.Series(cells, dtype=kinds[name]) for name, cells in columns.items()})


def _to_row(row: object, number: int) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    if isinstance(row, (tuple, list)):
        if len(row) in {2, 3}:
            return dict(zip(("start", "end", "text"), row, strict=False))
        message = f"row {number} has {len(row)} parts; expected (start, end) or (start, end, text)"
        raise SegmentError(message, rows=(number,))
    cells = {name: getattr(row, name) for name in COLUMNS if hasattr(row, name)}
    if {"start", "end"} <= cells.keys():
        return cells
    message = f"row {number} is {row!r:.60}; expected a mapping, a tuple or an object with start and end"
    raise SegmentError(message, rows=(number,))


def _to_text_array(column: pd.Series[Any], name: str) -> Any:
    """Return the texts as an array, because a Series for each column takes longer than all checks."""
    if isinstance(column.dtype, pd.StringDtype):
        texts: Any = _to_string_array(column.array, name)
        return texts.fillna("") if texts.isna().any() else texts
    values = ["" if value is None or value is pd.NA or value != value else value for value in column.tolist()]
    kinds = (str,) if name == "text" else (str, int)
    bad = [not isinstance(value, kinds) or isinstance(value, bool) for value in values]
    refuse_rows(bad, name, lambda row: f"{name} of row {row} is {values[row]!r:.60}, not text")
    return _to_string_array([str(value) for value in values], name)


def _to_string_array(values: Any, name: str) -> Any:
    try:
        return pd.array(values, dtype=get_text_dtype())
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        row = next(number for number, value in enumerate(values) if isinstance(value, str) and half in value)
        message = f"{name} of row {row} has {half!r}, half of a character (a lone surrogate); repair it first"
        raise SegmentError(message, column=name, rows=(row,)) from None


def _fill_empty_file_names(files: Any, file: str | None) -> Any:
    if file is not None:
        check_text(file, "file")
    return pd.Series(files).mask(files == "", file).array if file else files


def _to_float_array(column: pd.Series[Any], name: str) -> NDArray[np.float64]:
    if pd.api.types.is_timedelta64_dtype(column):
        message = f"{name} holds time deltas; convert them to seconds: frame[{name!r}].dt.total_seconds()"
        raise SegmentError(message, column=name)
    if column.dtype == np.float64:
        return column.to_numpy(copy=True)
    kind = pd.api.types
    if not kind.is_numeric_dtype(column) or kind.is_bool_dtype(column) or kind.is_complex_dtype(column):
        for number, value in enumerate(column.tolist()):
            is_empty = value is None or value is pd.NA or value != value
            if isinstance(value, bool) or not (is_empty or isinstance(value, (int, float, np.number))):
                message = f"{name} of row {number} is {value!r:.60}; expected a number"
                raise SegmentError(message, column=name, rows=(number,))
    return np.array(pd.to_numeric(column).astype("Float64").to_numpy(dtype="float64", na_value=np.nan))


def _check_times(start: NDArray[np.float64], end: NDArray[np.float64]) -> None:
    for name, values in (("start", start), ("end", end)):
        _refuse_values(np.isnan(values), values, name, "is missing; drop such rows first")
        _refuse_values(values < 0, values, name, "is negative; times count from the recording's beginning")
        _refuse_values(values > LATEST_S, values, name, f"is beyond {LATEST_S:.0f} seconds")
    refuse_rows(
        to_ticks(end) < to_ticks(start),
        "end",
        lambda row: f"row {row} ends at {end[row]:.10g} s, before its start at {start[row]:.10g} s",
    )


def _refuse_values(bad: NDArray[np.bool_], values: NDArray[np.float64], name: str, fault: str) -> None:
    refuse_rows(bad, name, lambda row: f"{name} of row {row} ({values[row]:.10g}) {fault}")


def in_order(table: pd.DataFrame) -> pd.DataFrame:
    """Sort a segment frame by file (in order of first appearance), start and end; equal rows keep their order.

    Raises:
        SegmentError: The table is not a segment frame.

    Example:
        >>> in_order(frame([(2.0, 3.0), (0.0, 1.0)]))["start"].tolist()
        [0.0, 2.0]
    """
    table = frame(table)
    codes = pd.factorize(table["file"])[0]
    order = np.lexsort((to_ticks(table["end"]), to_ticks(table["start"]), codes))
    return table.iloc[order].reset_index(drop=True)


def keys(table: pd.DataFrame) -> pd.MultiIndex:
    """Return the keys by which segments are compared: file, and start and end in whole microseconds.

    >>> from speechlab import segments
    >>> table = segments.frame([(0.1 + 0.2, 1.0)], file="a.wav")
    >>> segments.keys(table).tolist()
    [('a.wav', 300000, 1000000)]

    Raises:
        SegmentError: The table is not a segment frame.
    """
    checked = frame(table)
    columns: list[Any] = [checked["file"], to_ticks(checked["start"]), to_ticks(checked["end"])]
    return pd.MultiIndex.from_arrays(columns, names=["file", "start_us", "end_us"])


def equal(first: pd.DataFrame, second: pd.DataFrame) -> bool:
    """Return whether two segment frames have the same rows in the same order, with times compared to the microsecond.

    A column that only one of them has makes them different. The index is ignored.

    Raises:
        SegmentError: One of them is not a segment frame.

    Example:
        >>> said = frame([(0.0, 2.0)])
        >>> equal(said, frame([(0.0, 2.0000001)])), equal(said, frame([(0.0, 2.1)]))
        (True, False)
    """
    left_frame, right_frame = frame(first), frame(second)
    if set(left_frame.columns) != set(right_frame.columns) or not keys(left_frame).equals(keys(right_frame)):
        return False
    names = [name for name in left_frame.columns if name not in {"file", "start", "end"}]
    return left_frame[names].equals(right_frame[names])
