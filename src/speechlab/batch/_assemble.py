"""Back to a table: the input's rows in the input's order, with typed columns for what came of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab.errors import InvalidRequestError, SpeechLabError

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.batch._plan import Plan
    from speechlab.batch._run import Outcome

__all__ = ["BOOKKEEPING", "STATUSES", "assemble", "check_columns"]

STATUSES = ("ok", "cached", "error", "skipped", "cancelled")
"""How a row can end."""

BOOKKEEPING = {
    "status": "status",
    "error_type": "category",
    "error": "string",
    "http_status": "Int64",
    "attempts": "Int64",
    "latency_s": "float64",
    "key": "string",
}
"""Columns that every operation adds, and their types."""


def check_columns(frame: pd.DataFrame, plan_columns: list[str]) -> None:
    """Refuse to overwrite columns of the input.

    Raises:
        InvalidRequestError: A result column exists already.
    """
    taken = [name for name in plan_columns if name in frame.columns]
    if taken:
        message = (
            f"the table already has the column {', '.join(map(repr, taken))}; give the new columns a prefix, "
            "for example prefix='asr_', or drop the old ones"
        )
        raise InvalidRequestError(message, parameter="prefix")


def assemble(
    frame: pd.DataFrame, plan: Plan, outcomes: dict[str, Outcome], *, prefix: str = ""
) -> pd.DataFrame:
    """Return the input with the result columns added: same index, same order."""
    rows = [_row(row, plan, outcomes) for row in plan.rows]
    columns = {**plan.step.columns, **BOOKKEEPING}
    result = frame.copy()
    for name, kind in columns.items():
        result[prefix + name] = _column([row.get(name) for row in rows], kind, frame.index)
    return result


def _row(row: str | SpeechLabError, plan: Plan, outcomes: dict[str, Outcome]) -> dict[str, Any]:
    if isinstance(row, SpeechLabError):
        return {"status": "error", "attempts": 0, **_error(row)}
    outcome = outcomes[row]
    kept = {
        "status": outcome.status,
        "attempts": outcome.attempts,
        "latency_s": outcome.latency_s,
        "key": row,
    }
    if outcome.error is not None:
        return {**kept, **_error(outcome.error)}
    values = plan.step.values(outcome.stored) if outcome.stored is not None else {}
    return {**kept, **values}


def _error(error: SpeechLabError) -> dict[str, Any]:
    return {
        "error_type": type(error).__name__,
        "error": str(error),
        "http_status": getattr(error, "status", None) or None,
    }


def _column(values: list[Any], kind: str, index: pd.Index[Any]) -> pd.Series[Any]:
    import pandas as pd

    # the dtype that pandas 3 gives to text, on pandas 2 too
    text = pd.StringDtype(storage="pyarrow", na_value=float("nan"))
    made: Any = values
    dtype: Any = kind
    if kind == "status":
        made, dtype = pd.Categorical(values, categories=STATUSES), None
    elif kind == "category":
        known = sorted({value for value in values if isinstance(value, str)})
        made = [value if isinstance(value, str) else None for value in values]
        made, dtype = pd.Categorical(made, categories=pd.Index(known, dtype=text)), None
    elif kind == "string":
        dtype = text
    elif kind == "Int64":
        made = pd.array(values, dtype="Int64")
    column: pd.Series[Any] = pd.Series(made, index=index, dtype=dtype)
    return column
