"""The table of a report in a terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.markup import escape
from rich.table import Table

from speechlab._arguments import is_missing
from speechlab.cli._console import console, number

if TYPE_CHECKING:
    import pandas as pd

_MISSING = "–"
_GAP = 2
"""Spaces between columns."""
_LEAST_TEXT = 14
"""Letters of a word that are not broken, however narrow the terminal."""
_BREAKS = re.compile(r" (?=\()|(?<= to) |(?<= of) ")
"""Where a cell of figures may be broken: "2.0% (5.0% of characters)", "+1.0 to +2.0"."""


def headline(title: str, head: pd.DataFrame) -> None:
    """Print a table in as few columns as possible.

    A value that all rows share is printed once, above them, and empty columns are left out. On a narrow terminal the
    names of columns wrap first, then texts between words, then figures: before a bracket, within an interval.

    Args:
        title: Title of the table.
        head: The table, as :meth:`speechlab.evaluate.Report.headline` gives it.
    """
    figures = head.attrs.get("figures", ())
    rows = [[_written(cell) for cell in row] for row in head.itertuples(index=False, name=None)]
    columns = {str(name): [row[at] for row in rows] for at, name in enumerate(head.columns)}
    columns = {name: cells for name, cells in columns.items() if any(cell != _MISSING for cell in cells)}
    alike = {
        name: cells[0] for name, cells in columns.items() if name not in figures and len(set(cells)) == 1
    }
    kept = {name: cells for name, cells in columns.items() if name not in alike}
    console.print(f"[bold]{escape(title)}[/]")
    if alike:
        console.print(escape("; ".join(f"{name}: {cell}" for name, cell in alike.items())))
    if not kept:
        return
    parts = [[name, *cells] for name, cells in kept.items()]
    texts = [name not in figures for name in kept]
    room = console.width - _GAP * (len(parts) - 1)
    if sum(map(_longest, parts)) > room:
        parts = [
            [name if text else name.replace(" ", "\n"), *cells]
            for (name, *cells), text in zip(parts, texts, strict=True)
        ]
        if sum(_least(parts, texts)) > room:
            parts = [
                column if text else [_BREAKS.sub("\n", cell) for cell in column]
                for column, text in zip(parts, texts, strict=True)
            ]
    table = Table(header_style="bold", box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    sizes = _sizes(parts, texts, room)
    for (name, *_), size, text in zip(parts, sizes, texts, strict=True):
        table.add_column(
            name, justify="left" if text else "right", overflow="fold", vertical="top", width=size
        )
    for cells in zip(*(column[1:] for column in parts), strict=True):
        table.add_row(*map(escape, cells))
    console.print(table, crop=False)  # lines that are still too long wrap


def _longest(column: list[str], breaks: str = "\n") -> int:
    return max(cell_len(part) for cell in column for part in re.split(breaks, cell))


def _least(columns: list[list[str]], texts: list[bool]) -> list[int]:
    """Widths that columns have at least: words are broken only if they are long, figures never."""
    return [
        min(_longest(column, r"\s"), _LEAST_TEXT) if text else _longest(column)
        for column, text in zip(columns, texts, strict=True)
    ]


def _sizes(columns: list[list[str]], texts: list[bool], room: int) -> list[int]:
    """Widths of columns; what room there is goes to those that need it most."""
    whole, sizes = list(map(_longest, columns)), _least(columns, texts)
    for _ in range(min(room, sum(whole)) - sum(sizes)):
        lack = [wanted / size for wanted, size in zip(whole, sizes, strict=True)]
        sizes[lack.index(max(lack))] += 1
    return sizes


def _written(cell: object) -> str:
    if is_missing(cell):
        return _MISSING
    return number(cell) if isinstance(cell, float) else str(cell)
