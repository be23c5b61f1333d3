"""Argument checks shared by the rooms: texts, numbers, tables, columns and cells."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, TypeGuard

from speechlab._frames import to_pandas_frame, to_pandas_series
from speechlab._pandas import pd
from speechlab.errors import InvalidRequestError


def is_dask_frame(value: object) -> bool:
    """Return whether a value is a DataFrame of Dask."""
    dask = sys.modules.get("dask.dataframe")  # it exists only if Dask is loaded
    return dask is not None and isinstance(value, dask.DataFrame)


def is_pandas_frame(value: object) -> TypeGuard[pd.DataFrame]:
    """Return whether a value is a pandas DataFrame."""
    return isinstance(value, pd.DataFrame)


def convert_table(value: Any) -> Any:
    """Return a table of polars or Arrow, and a column of polars, as pandas has them; other values unchanged."""
    frame = to_pandas_frame(value)
    if frame is not None:
        return frame
    series = to_pandas_series(value)
    return value if series is None else series


def is_missing(value: object) -> bool:
    """Return whether a cell is empty: None, NaN of any kind, NaT or NA."""
    try:
        differs = value != value
        return value is None or (getattr(differs, "ndim", 0) == 0 and bool(differs))
    except TypeError:  # pandas.NA is neither equal nor unequal to anything
        return True
    except ValueError:  # a list of arrays in a cell
        return False


def check_text(value: object, argument: str = "text") -> None:
    """Refuse a value that is not a text."""
    if not isinstance(value, str):
        kind = type(value).__name__
        message = (
            f"{argument} is {value!r:.60} ({kind}); it must be a text. Drop or fill missing values first"
        )
        raise InvalidRequestError(message, parameter=argument)


def is_bool(value: object) -> bool:
    """Return whether a value is True or False."""
    return isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a real number, NumPy's included. A bool is not a number here."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole_number(value: object) -> TypeGuard[int]:
    """Return whether a value is a whole number, NumPy's included. A bool is not a number here."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def to_python_number(value: Any) -> Any:
    """Convert a NumPy number to a Python number, and -0.0 to 0.0. Other values are returned unchanged.

    -0.0 equals 0.0 but is written differently, and so would give another key.
    """
    if value is None or isinstance(value, str) or not is_number(value):  # the common cases first
        return value
    number = value.item() if hasattr(value, "item") else value
    return 0.0 if isinstance(number, float) and number == 0 else number


def to_int_if_whole_rate(value: Any) -> Any:
    """Convert a whole sample rate in Hz to ``int``. Other values are returned unchanged.

    Files, libraries and tables with missing cells have rates such as 16000.0.
    """
    if is_whole_number(value):
        return int(value)
    return int(value) if is_number(value) and float(value).is_integer() else value


def build_argument_error(name: str, value: object, allowed: str) -> InvalidRequestError:
    """Make the error for a value that is not allowed; ``allowed`` describes the values that are."""
    return InvalidRequestError(f"{name} is {value!r}; it must be {allowed}", parameter=name)


def describe_missing_columns(
    have: Iterable[object],
    *names: object,
    table: str = "the table",
    frame: object = None,
    asked: Collection[object] = (),
    arguments: Collection[str] = (),
) -> str:
    """Message for missing columns: their names, the columns of the table, and those that may be meant.

    ``arguments`` are those of the call that name a column, and have its name if none is given.
    """
    missing_names = ", ".join(f"{name!r:.60}" for name in names)
    columns = list(have)
    taken = {name for name in asked if isinstance(name, str)}
    free = [column for column in columns if not isinstance(column, str) or column not in taken]
    likely = [find_likely_column(free, name, frame) for name in names]
    may_be = ", ".join(
        f"{column!r} for {name!r:.60}" for name, column in zip(names, likely, strict=True) if column
    )
    meant = f"; did you mean {may_be}?" if may_be else ""
    examples = [
        f"{name}={column!r}" if column else f"{name}=..."
        for name, column in zip(names, likely, strict=True)
        if isinstance(name, str) and name in arguments
    ]
    how = f"{'' if meant else '.'} Name it by {', '.join(examples)}" if examples else ""
    shown = list_columns(have if is_pandas_frame(have) else columns)
    return f"{table} has no column {missing_names}; it has {shown}{meant}{how}"


# Key of a table's ``attrs``: the names in its file of the columns that have another one here.
OWN_NAMES = "speechlab_own_names"


def list_columns(table: pd.DataFrame | Iterable[object]) -> str:
    """Return the names of columns for a message, with those that they have in the file of a table."""
    own = table.attrs.get(OWN_NAMES, {}) if is_pandas_frame(table) else {}
    shown = [f"{own[name]!r} (read as {name!r})" if name in own else repr(name) for name in list(table)]
    return ", ".join(shown) or "none"


def propose_name(known: Iterable[str], name: object) -> str:
    """Return "; did you mean 'x'?" for the known name that one is nearly; empty if there is none."""
    likely = find_likely_column(list(known), name)
    return f"; did you mean {likely!r}?" if likely else ""


# What the cells of a column that is meant look like, by the usual names of such columns.
_AUDIO_CELL = re.compile(r".+\.(wav|wave|flac|mp3|ogg|oga|opus)(#.*)?", re.IGNORECASE)
_CODE_CELL = re.compile(r"[a-z]{2,3}([-_][A-Za-z]{2,4})?")
_ROLES = {
    "audio": _AUDIO_CELL,
    "language": _CODE_CELL,
    "source_lang": _CODE_CELL,
    "target_lang": _CODE_CELL,
}
_TEXTS = frozenset(
    {"text", "reference", "hypothesis", "sentence", "transcript", "transcription", "translation"}
)
_NO_LETTERS = re.compile(r"[\s\d!-/:-@\[-`{-~]")
_REMARKS = frozenset({"error", "why"})  # columns of prose that is about a row
_LOOKED_AT = 20  # cells
_ALIKE = 0.75  # of two names


def find_likely_column(columns: Sequence[object], name: object, frame: object = None) -> str | None:
    """Return the column that a missing one may be: of nearly its name, or else with cells such as it would have."""
    names = [column for column in columns if isinstance(column, str)]
    if not isinstance(name, str):
        return None
    folded = {column.strip().casefold(): column for column in reversed(names)}
    if close := get_close_matches(name.strip().casefold(), folded, 1, _ALIKE):
        return folded[close[0]]
    if not is_pandas_frame(frame) or not frame.columns.is_unique:
        return None
    cells = {
        column: [c for c in frame[column].head(_LOOKED_AT) if isinstance(c, str) and c] for column in names
    }
    if name in _TEXTS:
        prose = {column: some for column, some in cells.items() if column not in _REMARKS and _is_prose(some)}
        return find_text_column(prose)
    if name in _ROLES:
        fitting = (
            column for column, some in cells.items() if some and all(map(_ROLES[name].fullmatch, some))
        )
        return next(fitting, None)
    return None


def _is_prose(cells: Sequence[str]) -> bool:
    """Return whether half of the cells have several words, or are not ASCII, and are no times or digests."""
    prose = [cell for cell in cells if " " in cell.strip() or not cell.isascii()]
    return 2 * sum(2 * len(_NO_LETTERS.findall(cell)) < len(cell) for cell in prose) >= len(cells)


def find_text_column(cells: Mapping[str, Sequence[str]]) -> str | None:
    """Return the column whose cells look most like sentences: with letters, long, and no paths, codes or numbers."""
    scores = {}
    for column, some in cells.items():
        words = [cell for cell in some if not _AUDIO_CELL.fullmatch(cell) and "/" not in cell]
        if some and 2 * len(words) > len(some) and any(map(str.isalpha, "".join(words))):
            prose = [cell for cell in words if " " in cell.strip() or not cell.isascii()]
            is_prose, is_code = 2 * len(prose) > len(words), all(map(_CODE_CELL.fullmatch, words))
            scores[column] = (is_prose, not is_code, sum(map(len, words)) / len(words))
    return max(scores, key=scores.__getitem__, default=None)


def require_columns(frame: object, *names: object, argument: str = "frame", hint: str = "") -> pd.DataFrame:
    """Return a table, of pandas, polars or Arrow, as a pandas DataFrame; it must have each of the columns once."""
    frame = convert_table(frame)
    if not is_pandas_frame(frame):
        message = f"{argument} is {frame!r:.60} ({type(frame).__name__}), not a pandas DataFrame"
        raise InvalidRequestError(message, parameter=argument)
    columns = list(frame.columns)
    counts: Counter[object] = Counter(columns)  # by their hashes: pandas.NA cannot be compared
    for name in names:
        times = counts[name] if is_hashable(name) else 0
        if times == 0:
            message = describe_missing_columns(columns, name, table=argument, frame=frame, asked=names)
            hint = f"{'' if message.endswith('?') else '.'} {hint}" if hint else ""
            raise InvalidRequestError(f"{message}{hint}", parameter=str(name)[:60])
        if times > 1:
            message = (
                f"{argument} has {times} columns named {name!r}, so the name is ambiguous; rename or drop one"
            )
            raise InvalidRequestError(message, parameter=str(name))
    return frame


def has_column(frame: pd.DataFrame, name: object, argument: str) -> bool:
    """Return whether a table has an optional column; an error if it has two of this name."""
    if not is_hashable(name) or (name is not None and is_missing(name)):
        message = f"{argument}={name!r:.60} names no column; give its name"
        raise InvalidRequestError(message, parameter=argument)
    is_column = name in set(frame.columns)
    if is_column:
        require_columns(frame, name)
    return is_column


def to_column_names(value: object, argument: str) -> list[Any]:
    """Convert the name of one column, or an iterable of names, to a list."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Iterable) and not isinstance(value, Mapping | bytes) and not is_pandas_frame(value):
        names = list(value)
        if all(map(is_hashable, names)):
            return names
    message = f"{argument}={value!r:.60} names no columns; give a column or a list of columns"
    raise InvalidRequestError(message, parameter=argument)


def is_hashable(value: object) -> bool:
    """Return whether a value has a hash, as a name or a key must have."""
    try:
        hash(value)
    except TypeError:
        return False
    return True
