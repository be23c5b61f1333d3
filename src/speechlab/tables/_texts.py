"""Tables as people and spreadsheets write them, as CSV, TSV or JSON Lines: every cell is a text.

Cells that a spreadsheet would take for formulas have an apostrophe before them in CSV, which goes in reading (OWASP,
CSV injection).
"""

from __future__ import annotations

import codecs
import gzip
import re
from io import StringIO
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from pathlib import Path

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


def read_texts(path: Path) -> pd.DataFrame:
    """The rows of a CSV or TSV file; ValueError if it is not UTF-8, empty or torn."""
    return delimited(text_of(path), "\t" if ".tsv" in path.suffixes else ",")


def text_of(path: Path) -> str:
    """Text of a file: UTF-8, or UTF-16 with a byte order mark, as spreadsheets write it; also with .gz."""
    with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb") as stream:
        data = stream.read()
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ValueError(f"line {line:,} is not UTF-8; save it as UTF-8") from None
    if not text.strip():
        raise ValueError("it is empty")
    return text


def delimited(text: str, usual: str) -> pd.DataFrame:
    """Rows of CSV or TSV; in some countries, spreadsheets write semicolons or tabs for commas."""
    import pandas as pd

    head = text.lstrip().splitlines()[0]
    separator = next((character for character in (usual, ";", "\t", "|") if character in head), usual)
    rows = pd.read_csv(StringIO(text), sep=separator, dtype="string", keep_default_na=False, na_values=[""])
    if not isinstance(rows.index, pd.RangeIndex):  # pandas makes surplus leading cells row labels
        message = "line 2 has more cells than the first line has names; put texts with commas into quotes"
        raise ValueError(message)  # noqa: TRY004 - what the file holds
    first = pd.read_csv(
        StringIO(text), sep=separator, dtype="string", keep_default_na=False, header=None, nrows=1
    )
    heads = [str(name) for name in first.iloc[0] if name]
    names = [unguarded(name) for name in heads]
    if twice := next((name for name in names if names.count(name) > 1), None):
        but = "" if heads.count(twice) > 1 else ", one of them with an apostrophe before it"
        raise ValueError(f"two columns are named {twice!r}{but}")
    rows.columns = [unguarded(str(name)) for name in rows.columns]
    for name in rows.columns:
        rows[name] = rows[name].map(unguarded, na_action="ignore").astype("string")
    return rows


def json_lines(text: str) -> list[Any]:
    rows = []
    # not at other line separators, which texts may contain
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise ValueError(f"line {number:,}: {error}") from None
        if not isinstance(row, dict):
            raise ValueError(f"line {number:,} is no object")  # noqa: TRY004 - what the file holds
        rows.append(row)
    return rows
