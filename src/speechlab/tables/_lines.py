"""Lines of tables as text, of which a malformed one costs itself."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from speechlab._untrusted import load_json

# Columns of a table; a file with more is none.
MAX_COLUMNS = 20_000
# Lines with a quote out of place, above which a file is no CSV: for each the rest of the file is read again.
_MAX_STRAY_QUOTES = 100


def split_csv_lines(
    text: str, separator: str, note: Callable[[str, int], object]
) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of CSV with their cells. A quote that is out of place costs its own line, and a note of it.

    Raises:
        ValueError: So many are out of place that the file is none of CSV.
    """
    lines = list(io.StringIO(text, newline=""))
    first, width = 0, 0
    for _ in range(_MAX_STRAY_QUOTES):
        reader = csv.reader(islice(lines, first, None), delimiter=separator, strict=True)
        line = first
        try:
            for cells in reader:
                last = first + reader.line_num
                width = width or len(cells)
                if last - line > 1 and _is_row_swallowed(lines[line + 1 : last], cells, width, separator):
                    raise csv.Error("a quote encloses the lines that follow")  # noqa: TRY301 - as the reader's own
                yield line + 1, cells
                line = last
        except csv.Error as error:
            note(f"this is not valid CSV: {error}", line + 1)
            first = line + 1
        else:
            return
    raise ValueError(f"this is not valid CSV: more than {_MAX_STRAY_QUOTES} quotes are out of place")


def _is_row_swallowed(following: list[str], cells: list[str], width: int, separator: str) -> bool:
    """Return whether the lines that a quote has joined to a row are rows of their own."""
    if len(cells) != width:
        return True
    for line in following:
        try:
            found = next(csv.reader([line], delimiter=separator, strict=True), [])
        except csv.Error:
            continue
        if len(found) == width > 1 and sum(map(_is_number, found)) >= 2:
            return True
    return False


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def parse_json_lines(text: str, faults: list[str] | None = None) -> list[Any]:
    """Return the objects of JSON Lines. With ``faults``, a malformed line costs itself, and is added to them."""
    rows = []
    names: set[str] = set()
    # not at other line separators, which texts may contain
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = load_json(line)
            fault = "" if isinstance(row, dict) else f"line {number:,} is no object"
        except ValueError as error:  # orjson's is one
            fault = f"line {number:,}: {error}"
        if not fault:
            names.update(row)
            if len(names) > MAX_COLUMNS:
                raise ValueError(f"it has more than {MAX_COLUMNS:,} columns, from line {number:,} on")
            rows.append(row)
        elif faults is None:
            raise ValueError(fault)
        else:
            faults.append(fault)
    if faults and not rows:
        raise ValueError(faults[0])
    return rows
