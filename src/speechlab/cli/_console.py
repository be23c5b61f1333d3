"""Output of the commands: consoles, sentences, tables, numbers and progress bars."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)


def plain_table(title: str, *columns: str, right: tuple[str, ...] = ()) -> Table:
    """Return an empty table; the columns named in ``right`` hold numbers."""
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="bold",
        box=None,
        pad_edge=False,
        min_width=min(len(title), console.width),  # or a narrow table would break its title
    )
    for name in columns:
        side: Any = "right" if name in right else "left"
        table.add_column(name, justify=side, overflow="fold")
    return table


def say(text: str) -> None:
    """Print a sentence: wrapped between words on a terminal, else in one line, where programs look for it."""
    console.print(escape(text), soft_wrap=not console.is_terminal)


def refuse(message: str) -> None:
    """Print an error, in one line."""
    errors.print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True)


@contextmanager
def stoppable() -> Iterator[None]:
    """Say after an interrupt that nothing is lost, and end."""
    try:
        yield
    except KeyboardInterrupt:
        errors.print("stopped; what was finished is kept, and the same command goes on from there")
        raise typer.Exit(130) from None


@contextmanager
def warnings_told(*, without: str) -> Iterator[None]:
    """Print warnings as sentences, without the line of code that they come from.

    Args:
        without: Pattern of those that are told elsewhere.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", without, UserWarning)
        warnings.showwarning = _told
        yield


def _told(message: Warning | str, *_: object, **__: object) -> None:
    errors.print(f"[yellow]{escape(str(message))}[/]", soft_wrap=True)


def number(value: object, digits: int = 2) -> str:
    """Write a number; a missing one as a dash."""
    return f"{value:.{digits}f}" if isinstance(value, float | int) and value == value else "–"


@contextmanager
def stages() -> Iterator[Callable[[str, int, int], None]]:
    """Show one bar for each stage; yields a function of (stage, done, total)."""
    bars = Progress(
        SpinnerColumn(finished_text="[green]✓"),
        TextColumn("{task.description:<34}"),
        BarColumn(bar_width=32),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )
    tasks: dict[str, Any] = {}

    def told(stage: str, done: int, total: int) -> None:
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage, total=max(total, 1))
            if not console.is_terminal and done < total:
                console.print(f"{stage} …")  # bars show up only at the end there
        bars.update(tasks[stage], completed=done if total else 1, total=max(total, 1))

    with bars:
        yield told
