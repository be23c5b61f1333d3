"""``speechlab usage``: what the service was used for."""

from __future__ import annotations

import csv
import sys
import time
from contextlib import closing
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from speechlab.cli._console import console, plain_table
from speechlab.cli._keys import DataDir, duration_s, when

if TYPE_CHECKING:
    from collections.abc import Iterable

    from speechlab.service import UsageTotal

__all__ = ["usage"]

_FIGURES = (
    "operations",
    "failed",
    "characters",
    "input_bytes",
    "audio_bytes",
    "audio_s",
    "prompt_tokens",
    "completion_tokens",
)


def usage(
    by: Annotated[
        list[str] | None,
        typer.Option(
            help="What to sum by: key, operation, provider, model, status or day; may be repeated. "
            "[default: key, operation]"
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Only the last such time: 24h, 7d, 4w. [default: everything]")
    ] = None,
    key: Annotated[str | None, typer.Option(help="Only one key, by its id.")] = None,
    rows: Annotated[bool, typer.Option("--rows", help="Every single operation instead of sums.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Comma-separated values on stdout.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Show what was used: characters, audio and tokens, by key and operation."""
    from speechlab.service import Database, Ledger, UsageRow, default_data_dir

    groups = tuple(by) if by else ("key", "operation")
    first = 0.0 if since is None else time.time() - duration_s(since)
    with closing(Database(data_dir or default_data_dir())) as database:
        ledger = Ledger(database)
        found = ledger.rows(since=first, key_id=key) if rows else []
        totals = [] if rows else ledger.totals(groups, since=first, key_id=key)
    if rows:
        names = [field.name for field in fields(UsageRow)]
        cells = [list(asdict(row).values()) for row in found]
        texts = [[when(row.time), *map(str, line[1:])] for row, line in zip(found, cells, strict=True)]
    else:
        names = [*groups, *_FIGURES]
        cells = [[*total.group, *_figures(total)] for total in totals]
        texts = [[*total.group, *map(_shown, _figures(total))] for total in totals]
    if as_csv:
        _write_csv(names, cells)
    elif not cells:
        console.print("nothing was used in this time")
    else:
        # what nobody used has no column: all of them do not fit beside each other on 80 characters
        used = [any(line[number] not in {0, None} for line in cells) for number in range(len(names))]
        kept = [number for number, name in enumerate(names) if used[number] or name not in _FIGURES]
        right = tuple(name.replace("_", " ") for name in names if name in _FIGURES)
        table = plain_table("Usage", *(names[number].replace("_", " ") for number in kept), right=right)
        for line in texts:
            table.add_row(*(escape(line[number]) for number in kept))
        console.print(table)


def _figures(total: UsageTotal) -> list[float]:
    return [getattr(total, name) for name in _FIGURES]


def _shown(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:,.1f}"


def _write_csv(names: list[str], cells: Iterable[list[object]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(cells)
