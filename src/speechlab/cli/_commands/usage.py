"""``speechlab usage``: the usage of the embedded service."""

from __future__ import annotations

import csv
import sys
import time
from contextlib import closing
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from speechlab.cli._commands.keys import DataDir, duration_s, local_time
from speechlab.cli._console import console, plain_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from speechlab.service import UsageRow, UsageTotal

_FIGURES = (
    "operations",
    "failed",
    "cancelled",
    "characters",
    "input_bytes",
    "audio_bytes",
    "audio_s",
    "prompt_tokens",
    "completion_tokens",
)

# Columns of the table, without bytes, which are in the CSV.
_SHOWN = {
    "calls": "operations",
    "failed": "failed",
    "cut\noff": "cancelled",
    "chars": "characters",
    "audio\ns": "audio_s",
    "tokens\nin": "prompt_tokens",
    "tokens\nout": "completion_tokens",
}
_ROW_TEXTS = ("time", "key", "operation", "model")
_ROW_FIGURES = ("chars", "audio\ns", "tokens\nin", "tokens\nout")


def usage(
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT",
            help="Sum by key, operation, provider, model, status or day; may be repeated. "
            "[default: key, operation]",
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only the last 24h, 7d, 4w or similar. [default: everything]"),
    ] = None,
    key: Annotated[str | None, typer.Option(metavar="ID", help="Only one key, by its id.")] = None,
    rows: Annotated[bool, typer.Option("--rows", help="Single operations instead of sums.")] = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Comma-separated values on stdout, including bytes.")
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Show usage: characters, audio and tokens, by key and operation."""
    from speechlab.service import Database, Ledger, UsageRow, default_data_dir

    groups = tuple(by) if by else ("key", "operation")
    first = 0.0 if since is None else time.time() - duration_s(since)
    with closing(Database(data_dir or default_data_dir())) as database:
        ledger = Ledger(database)
        usage_rows = ledger.rows(since=first, key_id=key) if rows else []
        totals = [] if rows else ledger.totals(groups, since=first, key_id=key)
    if as_csv:
        if rows:
            _write_csv(
                [field.name for field in fields(UsageRow)], [asdict(row).values() for row in usage_rows]
            )
        else:
            _write_csv([*groups, *_FIGURES], [[*total.group, *_figures(total)] for total in totals])
    elif rows:
        _print_table(_ROW_TEXTS, _ROW_FIGURES, [[*_texts(row), *_row_figures(row)] for row in usage_rows])
    else:
        lines = [[*total.group, *(getattr(total, name) for name in _SHOWN.values())] for total in totals]
        _print_table(groups, tuple(_SHOWN), lines)


def _print_table(names: tuple[str, ...], figures: tuple[str, ...], lines: list[list[Any]]) -> None:
    """Print the columns that fit 80 characters; bytes are in the CSV only."""
    if not lines:
        console.print("nothing was used in this time")
        return
    # Figures that are 0 everywhere have no column.
    used = [number < len(names) or any(line[number] for line in lines) for number in range(len(lines[0]))]
    heads = [name for name, is_used in zip((*names, *figures), used, strict=True) if is_used]
    table = plain_table("Usage", *heads, right=figures)
    for column in table.columns:
        column.no_wrap = column.header != "model"
    for line in lines:
        cells = [cell if isinstance(cell, str) else _shown(cell) for cell in line]
        table.add_row(*(escape(cell) for cell, is_used in zip(cells, used, strict=True) if is_used))
    console.print(table)


def _texts(row: UsageRow) -> list[str]:
    how = row.operation if row.transport == "http" else f"{row.operation} ws"
    ended = "" if row.status == "completed" else "\n" + row.status.replace("_", "\n")
    return [local_time(row.time).replace(" ", "\n"), row.key_id, how + ended, row.model]


def _row_figures(row: UsageRow) -> list[float]:
    return [row.characters, row.audio_s, row.prompt_tokens, row.completion_tokens]


def _figures(total: UsageTotal) -> list[float]:
    return [getattr(total, name) for name in _FIGURES]


def _shown(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:,.1f}"


def _write_csv(names: list[str], cells: Iterable[Iterable[object]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(cells)
