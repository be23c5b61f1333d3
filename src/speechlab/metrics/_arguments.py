"""Refusing what cannot be meant: every public function of this room checks its arguments here.

What is wrong with an argument is refused, with the argument's name in the error; what is wrong with one row of a
table is no business of this module, because one row stops nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeGuard

from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    import pandas as pd


def is_frame(value: object) -> TypeGuard[pd.DataFrame]:
    """Whether a value is a pandas table."""
    import pandas as pd

    return isinstance(value, pd.DataFrame)


def is_missing(value: object) -> bool:
    """Whether a cell of a table holds nothing: None, NaN or NA."""
    import pandas as pd

    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and value != value)


def require_columns(frame: object, *names: object, argument: str = "frame", hint: str = "") -> None:
    """Refuse what is no table, a table without one of the columns, or with one of them twice.

    Args:
        frame: What was given as a table.
        names: Columns that are needed.
        argument: What the caller calls the table.
        hint: What to do about a missing column.
    """
    if not is_frame(frame):
        message = f"{argument} is {frame!r:.60} ({type(frame).__name__}), not a pandas DataFrame"
        raise InvalidRequestError(message, parameter=argument)
    columns = list(frame.columns)
    for name in names:
        times = sum(1 for column in columns if column == name) if _hashable(name) else 0
        if times == 0:
            have = ", ".join(map(repr, columns)) or "none"
            message = f"{argument} has no column {name!r:.60}; it has {have}"
            raise InvalidRequestError(f"{message}. {hint}" if hint else message, parameter=str(name)[:60])
        if times > 1:
            message = (
                f"{argument} has {times} columns {name!r}, and which is meant is not said; rename or drop one"
            )
            raise InvalidRequestError(message, parameter=str(name))


def has_column(frame: pd.DataFrame, name: object, argument: str) -> bool:
    """Whether a table has a column that it need not have; refused is what can name none, or two."""
    if not _hashable(name):
        message = f"{argument}={name!r:.60} names no column; give its name"
        raise InvalidRequestError(message, parameter=argument)
    found = any(column == name for column in frame.columns)
    if found:
        require_columns(frame, name)
    return found


def column_names(value: object, argument: str) -> list[Any]:
    """One column, or several, as a list."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Iterable) and not isinstance(value, Mapping | bytes) and not is_frame(value):
        names = list(value)
        if all(map(_hashable, names)):
            return names
    message = f"{argument}={value!r:.60} names no columns; give a column or a list of columns"
    raise InvalidRequestError(message, parameter=argument)


def as_texts(values: object, argument: str, remedy: str = "leave such pairs out") -> list[str]:
    """A list of texts, or what is not a text in it.

    Args:
        values: One text or many.
        argument: What the caller calls them.
        remedy: What to do about missing ones.
    """
    if isinstance(values, str):
        return [values]
    if (
        not isinstance(values, Iterable)
        or isinstance(values, Mapping | set | frozenset | bytes)
        or is_frame(values)
    ):
        message = f"{argument} is {values!r:.60} ({type(values).__name__}); give one text, or a list of texts"
        raise InvalidRequestError(message, parameter=argument)
    texts: list[Any] = list(values)
    if set(map(type, texts)) <= {str}:
        return texts
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            message = f"{argument}[{position}] is {text!r:.60}, not a text; {remedy}"
            raise InvalidRequestError(message, parameter=argument)
    return texts


def check_text(value: object, argument: str) -> None:
    """Refuse what is no text."""
    if not isinstance(value, str):
        message = f"{argument} is {value!r:.60} ({type(value).__name__}); give a text"
        raise InvalidRequestError(message, parameter=argument)


def check_choice(value: object, choices: Iterable[str], argument: str, what: str) -> None:
    """Refuse what is none of the names that are there."""
    names = tuple(choices)
    if not isinstance(value, str) or value not in names:
        message = f"{what} {value!r:.60}; use one of {', '.join(map(repr, names))}"
        raise InvalidRequestError(message, parameter=argument)


def check_level(level: object) -> None:
    """Refuse a level that is no probability."""
    if isinstance(level, bool) or not isinstance(level, Real) or not 0 < float(level) < 1:
        message = f"a confidence level lies between 0 and 1, not at {level!r:.60}; use 0.95 for 95 %"
        raise InvalidRequestError(message, parameter="level")


def check_draws(n: object) -> None:
    """Refuse a bootstrap without draws."""
    if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
        message = f"a bootstrap needs draws, a whole number of them, not n={n!r:.60}; use 1000 or more"
        raise InvalidRequestError(message, parameter="n")


def check_seed(seed: object) -> None:
    """Refuse a seed that would not give the same draws again."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        message = (
            f"seed={seed!r:.60} is no seed; give a whole number from 0 on, so that the same draws come again"
        )
        raise InvalidRequestError(message, parameter="seed")


def check_number(value: object, argument: str, low: float, high: float, unit: str) -> None:
    """Refuse what is no number in a range."""
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
        message = (
            f"{argument}={value!r:.60} is out of range; give a number of {unit} from {low:g} to {high:g}"
        )
        raise InvalidRequestError(message, parameter=argument)


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
