"""CSV and TSV as text, as strangers write it: encodings, separators, quotes, and lines with too many cells."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterable
from io import StringIO
from pathlib import Path
from typing import Any

from speechlab._pandas import pd
from speechlab._untrusted import check_packed_text, open_maybe_gzip
from speechlab.tables._formulas import unescape_formula
from speechlab.tables._lines import MAX_COLUMNS, split_csv_lines

_QUOTED = re.compile(r'"(?:[^"]|"")*"\Z')
_QUOTED_NAMES = re.compile(r'"(?:[^"\t]|"")*"(?:\t"(?:[^"\t]|"")*")*\s*\Z')


def unquote_tsv_cell(cell: Any) -> Any:
    """Return a cell of TSV without the quotes of a writer that has them: outer ones around doubled ones."""
    if not isinstance(cell, str) or cell[:1] != '"' or not _QUOTED.match(cell):
        return cell
    inner = cell[1:-1]
    return inner.replace('""', '"') if '"' in inner or "\r" in inner or not inner else cell


def has_enclosing_quotes(lines: Iterable[str], separator: str = "\t") -> bool:
    """Return whether quotes enclose cells in TSV or another table without quotes of its own.

    They do if all names are in quotes, or if a line has not as many cells as there are names.
    """
    lines = iter(lines)
    head = next((line for line in lines if line.strip()), "")
    if _QUOTED_NAMES.match(head.replace(separator, "\t")):
        return True
    count, any_quote, is_even = head.count(separator), '"' in head, True
    for line in lines:
        any_quote = any_quote or '"' in line
        is_even = is_even and (line.count(separator) == count or not line.strip())
    return any_quote and not is_even


# Separators of tables without quotes.
PLAIN_SEPARATORS = ("\t", "|")
_CUE_TIME = re.compile(r"\d:[0-5]?\d(?:[.,:]\d+)*\s*-->|-->\s*\d+:[0-5]?\d")
HELD_ROWS = "holds times of captions, or a tab and a line end, so it is several texts"


def has_unsplit_rows(text: str) -> bool:
    """Return whether a text holds rows of a file that a reader has not separated."""
    return ("-->" in text and _CUE_TIME.search(text) is not None) or ("\t" in text and "\n" in text.strip())


def read_delimited(path: Path) -> pd.DataFrame:
    """Return the rows of a CSV or TSV file; ValueError if it is not UTF-8, empty or torn."""
    return parse_delimited(read_text(path), "\t" if ".tsv" in path.suffixes else ",")


def read_text(path: Path) -> str:
    """Text of a file: UTF-8, or UTF-16 with a byte order mark, as spreadsheets write it; also with .gz."""
    with open_maybe_gzip(path) as stream:
        data = stream.read()
    if path.suffix.lower() == ".gz":
        check_packed_text(path.name, data, path.stat().st_size)
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ValueError(f"line {line:,} is not UTF-8; save it as UTF-8") from None
    if not text.strip():
        raise ValueError("it is empty")
    return text


def parse_delimited(text: str, usual: str, faults: list[str] | None = None) -> pd.DataFrame:
    """Rows of CSV or TSV; in some countries, spreadsheets write semicolons or tabs for commas.

    With ``faults``, a malformed line costs itself, and is added to them; else it costs the file.
    """
    # Excel's line that names the separator; its line break stays, so that lines keep their numbers.
    text = re.sub(r"\Asep=[,;\t|](?=\r?\n)", "", text, flags=re.IGNORECASE)
    head = re.search(r"[^\r\n]+", text)
    if head is not None and max(map(head[0].count, ",;\t|")) >= MAX_COLUMNS:
        raise ValueError(f"it has {MAX_COLUMNS:,} columns or more")
    try:
        return _parse_delimited_lines(text, usual)
    except ValueError:
        kept = None if faults is None else _drop_malformed_lines(text, usual, faults)
        if kept is None:
            raise
    return _parse_delimited_lines(kept, usual)


def _drop_malformed_lines(text: str, usual: str, faults: list[str]) -> str | None:
    """Return the text without lines of too many cells or with quotes out of place; None if none is left."""
    separator = _find_separator(text, usual)
    is_plain = separator in PLAIN_SEPARATORS and not has_enclosing_quotes(text.split("\n"), separator)
    found: list[tuple[int, str]] = []
    lines: Iterable[tuple[int, list[str]]] = (
        ((number, line.rstrip("\r").split(separator)) for number, line in enumerate(text.split("\n"), 1))
        if is_plain
        else split_csv_lines(text, separator, lambda message, line: found.append((line, message)))
    )
    kept: list[list[str]] = []
    for number, cells in lines:
        if kept and len(cells) > len(kept[0]):
            torn = f"it has {len(cells)} cells, and the first line names {len(kept[0])}"
            found.append((number, _TORN.format(torn)))
        elif cells and (kept or any(cells)):
            kept.append(cells)
    if len(kept) < 2 or not found:
        return None
    faults += [f"line {line:,}: {message}" for line, message in sorted(found)]
    out = StringIO()
    if is_plain:
        return "\n".join(separator.join(cells) for cells in kept) + "\n"
    csv.writer(out, delimiter=separator, lineterminator="\n").writerows(kept)
    return out.getvalue()


def _find_separator(text: str, usual: str) -> str:
    head = text.lstrip().splitlines()[0]
    return next((character for character in (usual, ";", "\t", "|") if character in head), usual)


def _parse_delimited_lines(text: str, usual: str) -> pd.DataFrame:
    separator = _find_separator(text, usual)
    options: dict[str, Any] = {"sep": separator, "dtype": "string", "keep_default_na": False}
    may_be_plain = separator in PLAIN_SEPARATORS and '"' in text
    plain = options | {"quoting": csv.QUOTE_NONE}
    if may_be_plain and not has_enclosing_quotes(text.split("\n"), separator):
        options = plain
    empty = ["", '""'] if options is plain else [""]
    try:
        rows: pd.DataFrame = pd.read_csv(StringIO(text), na_values=empty, **options)
    except ValueError as error:
        raise ValueError(describe_torn_line(error)) from None
    if may_be_plain and options is not plain and _has_swallowed_lines(rows, separator):
        options = plain
        rows = pd.read_csv(StringIO(text), na_values=["", '""'], **options)
    if not isinstance(rows.index, pd.RangeIndex):  # pandas makes surplus leading cells row labels
        raise ValueError(SURPLUS_CELLS)  # noqa: TRY004 - what the file holds
    first = pd.read_csv(StringIO(text), header=None, nrows=1, **options)
    heads = [str(name) for name in first.iloc[0] if name]
    names = [unescape_formula(name) for name in heads]
    if twice := next((name for name in names if names.count(name) > 1), None):
        but = "" if heads.count(twice) > 1 else ", one of them with an apostrophe before it"
        raise ValueError(f"two columns are named {twice!r}{but}")
    rows.columns = [unescape_formula(str(name)) for name in rows.columns]
    clean = (lambda cell: unescape_formula(unquote_tsv_cell(cell))) if options is plain else unescape_formula
    for name in rows.columns:
        rows[name] = rows[name].map(clean, na_action="ignore").astype("string")
    return rows


_TORN = "{}; put texts with commas into quotes"
SURPLUS_CELLS = _TORN.format("line 2 has more cells than the first line has names")
_TOO_MANY = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")


def describe_torn_line(error: Exception) -> str:
    """Return the message of an error of reading CSV, for a line with too many cells with what to do."""
    if (found := _TOO_MANY.search(str(error))) is None:
        return str(error)
    names, line, cells = found.groups()
    return _TORN.format(f"line {int(line):,} has {cells} cells, and the first line {names} names")


def _has_swallowed_lines(rows: pd.DataFrame, separator: str) -> bool:
    """Return whether a quote at the beginning of a text has taken the following lines for one cell."""
    return any(
        isinstance(cell, str) and "\n" in cell and separator in cell for name in rows for cell in rows[name]
    )
