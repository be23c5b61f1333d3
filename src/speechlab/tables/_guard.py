"""Cells that a spreadsheet would take for formulas: an apostrophe stands before them in CSV, and goes in reading.

Source: OWASP, CSV injection.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
_GUARDED = re.compile(r"\A'(?='*[=+\-@\t\r\n＝＋－＠])")


def guarded(frame: pd.DataFrame) -> pd.DataFrame:
    """The table for a CSV file, with an apostrophe before texts and names that begin as formulas do."""
    out = frame.copy()
    for name in out.select_dtypes(exclude=["number", "bool", "datetime"]):
        out[name] = out[name].astype(object).map(guard)
    return out.rename(columns=guard)


def guard(cell: Any) -> Any:
    """A cell or a name, with an apostrophe if it is a text that begins as a formula does."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


def unguarded(cell: Any) -> Any:
    """A cell or a name of a CSV file without the apostrophe of :func:`guard`."""
    return _GUARDED.sub("", cell) if isinstance(cell, str) else cell
