"""The columns of a result and their types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab._platform import get_text_dtype
from speechlab.batch._plan.parameters import MODEL_COLUMN
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from speechlab.batch._plan.steps import RowStep

# The statuses of a row: asked in this run; answered by the store; failed; failed earlier and not retried;
# not asked, because the run stopped.
STATUSES = ("ok", "cached", "error", "skipped", "cancelled")

# Columns that every operation adds besides its results, and their types.
BOOKKEEPING = {
    "processing_s": "float64",
    "status": "status",
    "error_type": "category",
    "error": "string",
    "http_status": "Int64",
    "attempts": "Int64",
    "latency_s": "float64",
    "first_byte_s": "float64",
    "usage_characters": "Int64",
    "usage_audio_s": "float64",
    "usage_tokens": "Int64",
    "answered_at": "string",
    "key": "string",
}


def check_unique_columns(frame: pd.DataFrame) -> None:
    """Refuse a table with several columns of one name."""
    if not frame.columns.is_unique:
        twice = sorted(map(repr, frame.columns[frame.columns.duplicated()]))
        raise InvalidRequestError(f"the table has several columns named {', '.join(twice)}; rename them")


def collect_result_columns(step: RowStep | type[RowStep]) -> dict[str, str]:
    """Return all columns that an operation adds, and their types."""
    return {**step.columns, **BOOKKEEPING}


def pad_label(name: str, columns: pd.Index[Any]) -> Any:
    """Return the label of a new column: its name, padded with empty parts where labels have several parts."""
    return name if columns.nlevels == 1 else (name, *("",) * (columns.nlevels - 1))


def list_earlier_bookkeeping(columns: pd.Index[Any], prefix: str) -> list[str]:
    """Return the bookkeeping columns of an earlier step in a table, with its model: all, or an empty list."""
    names = [prefix + name for name in BOOKKEEPING]
    model = [prefix + MODEL_COLUMN] if prefix + MODEL_COLUMN in columns else []
    return [*names, *model] if all(name in columns for name in names) else []


def list_clashing_columns(columns: pd.Index[Any], prefix: str) -> list[str]:
    """Return the columns of the input that have names of bookkeeping columns but are not bookkeeping."""
    if list_earlier_bookkeeping(columns, prefix):
        return []
    return [prefix + name for name in BOOKKEEPING if prefix + name in columns]


def build_frame(lines: Sequence[Sequence[Any]], kinds: Mapping[str, str]) -> pd.DataFrame:
    """Return a table of lines of plain values, with columns of these types."""
    index = pd.RangeIndex(len(lines))
    columns = list(zip(*lines, strict=True)) or [()] * len(kinds)
    cells = zip(kinds.items(), columns, strict=True)
    return pd.DataFrame({name: build_column(list(values), kind, index) for (name, kind), values in cells})


def build_column(values: list[Any], kind: str, index: pd.Index[Any]) -> pd.Series[Any]:
    """Return a typed column of plain values."""
    # the dtype of pandas for text, also for columns without values
    text = get_text_dtype()
    typed: Any = values
    dtype: Any = kind
    if kind == "status":
        typed, dtype = pd.Categorical(values, categories=STATUSES), None
    elif kind == "category":
        categories = sorted({value for value in values if isinstance(value, str)})
        typed = [value if isinstance(value, str) else None for value in values]
        typed, dtype = pd.Categorical(typed, categories=pd.Index(categories, dtype=text)), None
    elif kind == "string":
        dtype = text
    elif kind == "Int64":
        typed = pd.array([None if is_missing(value) else value for value in values], dtype="Int64")
    column: pd.Series[Any] = pd.Series(typed, index=index, dtype=dtype)
    return column
