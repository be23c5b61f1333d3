"""Output of ``speechlab batch``: the cost of a plan, and the outcome of a run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich.markup import escape

from speechlab.cli._console import console, errors, plain_table

if TYPE_CHECKING:
    from pathlib import Path

    from speechlab.batch import Run
    from speechlab.segments import Written

_KINDS_OF_ERRORS = 3


def print_summary(counts: dict[str, float]) -> None:
    """Print the calls and the cost of a plan."""
    rows = ("rows", "invalid", "calls", "cached", "duplicates")
    console.print(", ".join(f"{counts[name]:,g} {name}" for name in rows))
    console.print(
        f"to send: {counts['characters']:,g} characters, {counts['audio_s']:,.0f} seconds of recordings"
    )
    if "cost" in counts:
        console.print(f"cost, estimated: {counts['cost']:,.4g}")


def print_run(run: Run, written: Path) -> None:
    """Print the outcome of a run; the process ends with an error if rows are missing."""
    counts = run.manifest["statuses"]
    table = plain_table(f"Run {run.id}", "status", "rows", right=("rows",))
    for name, count in counts.items():
        table.add_row(name, f"{count:,}")
    console.print(table)
    units = {"audio_s": "seconds of audio"}
    spent = run.manifest["usage"].items()
    usage = ", ".join(
        f"cost {value:,.4g}" if name == "cost" else f"{value:,.0f} {units.get(name, name)}"
        for name, value in spent
        if value
    )
    console.print(f"used: {usage or 'nothing'}")
    console.print(f"table: {escape(str(written))}", soft_wrap=True)
    if run.status != "finished":
        errors.print(f"[yellow]stopped:[/] {escape(str(run.manifest.get('reason')))}", soft_wrap=True)
        sys.exit(3)
    if counts.get("error"):
        _print_errors(run)
        sys.exit(1)


def print_segments(files: list[Written]) -> None:
    """Print the files of segments."""
    if not files:
        return
    rows, first = sum(file.rows for file in files), files[0]
    where = str(first.path) if len(files) == 1 else f"{len(files):,} files, the first {first.path}"
    console.print(f"segments: {rows:,} in {escape(where)}", soft_wrap=True)
    for note in sorted({note for file in files for note in file.notes}):
        console.print(f"  {escape(note)}", soft_wrap=True)


def _print_errors(run: Run) -> None:
    """Print the most frequent reasons, each with its first message; the table contains all of them."""
    from speechlab import batch

    reasons = batch.failures(run).head(_KINDS_OF_ERRORS)
    for kind, error, count in zip(*(reasons[name] for name in ("error_type", "error", "rows")), strict=True):
        such = f", and {count - 1:,} more such" if count > 1 else ""
        errors.print(f"[yellow]{escape(kind)}:[/] {escape(error)}{such}", soft_wrap=True)
