"""Formulas of spreadsheets: texts that would be taken for one get an apostrophe in CSV, and lose it when read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
_GUARD_MARK = re.compile(r"\A'(?='*[=+\-@\t\r\n＝＋－＠])")


def escape_frame_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table for a CSV file, with an apostrophe before texts and names that begin as formulas do."""
    out = frame.copy()
    for name in out.select_dtypes(exclude=["number", "bool", "datetime"]):
        out[name] = out[name].astype(object).map(escape_formula)
    return out.rename(columns=escape_formula)


def escape_formula(cell: Any) -> Any:
    """Return a cell or a name, with an apostrophe if it is a text that begins as a formula does."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


def unescape_formula(cell: Any) -> Any:
    """Return a cell or a name of a CSV file without the apostrophe of :func:`escape_formula`."""
    return _GUARD_MARK.sub("", cell) if isinstance(cell, str) else cell
