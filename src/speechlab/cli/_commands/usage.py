"""``speechlab usage``: the usage of the embedded service."""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterable
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

from rich.markup import escape

from speechlab.cli._commands.keys import DATA_DIR, format_local_time, open_database, parse_duration_s
from speechlab.cli._console import build_empty_table, console
from speechlab.cli._options import option, wrap_with_parameters

# Columns of the table, without bytes, which are in the CSV.
_FIGURES = {
    "calls": "operations",
    "failed": "failed",
    "cut\noff": "cancelled",
    "chars": "characters",
    "audio\ns": "audio_s",
    "tokens\nin": "prompt_tokens",
    "tokens\nout": "completion_tokens",
}
_ROW_TEXTS = ("time", "key", "operation", "model")
_ROW_FIGURES = {
    name: figure for name, figure in _FIGURES.items() if figure not in {"operations", "failed", "cancelled"}
}


_OPTIONS = [
    option("by", list[str] | None, None, metavar="WHAT", help="Sum by key, operation, provider, model, status or "
    "day; may be repeated. [default: key, operation]"),
    option("since", str | None, None, metavar="TIME", help="Only the last 24h, 7d, 4w or similar. [default: "
    "everything]"),
    option("key", str | None, None, metavar="ID", help="Only one key, by its id."),
    option("rows", bool, False, "--rows", help="Single operations instead of sums."),
    option("as_csv", bool, False, "--csv", help="Comma-separated values on stdout, including bytes."),
    DATA_DIR,
]  # fmt: skip


def _show_usage(
    *,
    by: list[str] | None,
    since: str | None,
    key: str | None,
    rows: bool,
    as_csv: bool,
    data_dir: Path | None,
) -> None:
    """Show usage: characters, audio and tokens, by key and operation."""
    from speechlab.service import Ledger, UsageRow, UsageTotal

    groups = tuple(by) if by else ("key", "operation")
    first = 0.0 if since is None else time.time() - parse_duration_s(since)
    with open_database(data_dir) as database:
        ledger = Ledger(database)
        usage_rows = ledger.list_rows(since=first, key_id=key) if rows else []
        totals = [] if rows else ledger.sum_usage(groups, since=first, key_id=key)
    if as_csv and rows:
        _print_csv([field.name for field in fields(UsageRow)], map(astuple, usage_rows))
    elif as_csv:
        _, *figures = [field.name for field in fields(UsageTotal)]
        _print_csv([*groups, *figures], [[*total.group, *astuple(total)[1:]] for total in totals])
    elif rows:
        lines: list[tuple[tuple[str, ...], Any]] = []
        for row in usage_rows:
            how = row.operation if row.transport == "http" else f"{row.operation} ws"
            ended = "" if row.status == "completed" else "\n" + row.status.replace("_", "\n")
            at = format_local_time(row.time).replace(" ", "\n")
            lines.append(((at, row.key_id, how + ended, row.model), row))
        _print_usage_table(_ROW_TEXTS, _ROW_FIGURES, lines)
    else:
        _print_usage_table(groups, _FIGURES, [(total.group, total) for total in totals])


usage = wrap_with_parameters(_show_usage, _OPTIONS)


def _print_usage_table(
    names: tuple[str, ...], figures: dict[str, str], lines: list[tuple[tuple[str, ...], Any]]
) -> None:
    """Print the columns that fit 80 characters; bytes are in the CSV only."""
    if not lines:
        console.print("nothing was used in this time")
        return
    # Figures that are 0 everywhere have no column.
    used = {
        head: name for head, name in figures.items() if any(getattr(amounts, name) for _, amounts in lines)
    }
    table = build_empty_table("Usage", *names, *used, right=tuple(used))
    for column in table.columns:
        column.no_wrap = column.header != "model"
    for texts, amounts in lines:
        table.add_row(
            *map(escape, texts), *(_format_figure(getattr(amounts, name)) for name in used.values())
        )
    console.print(table)


def _format_figure(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:,.1f}"


def _print_csv(names: list[str], cells: Iterable[Iterable[object]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(cells)
