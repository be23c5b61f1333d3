"""Output of the commands: consoles, sentences, tables, numbers and progress bars."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.cells import cell_len
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
from rich.text import Text

from speechlab._arguments import is_missing
from speechlab._traces import to_printable

if TYPE_CHECKING:
    import pandas as pd


# What a console that cannot write them shows in place of the marks of success and failure.
_MARKS_IN_ASCII = str.maketrans({"✓": "ok", "✗": "FAILED", "–": "-", "…": "..."})


class _SafeConsole(Console):
    """A console whose texts, which may come from a service or a file, do not steer the terminal."""

    def render_str(self, text: str, *args: Any, **options: Any) -> Text:
        text = to_printable(text)
        if not self.encoding.startswith("utf"):  # a console of Windows that is redirected, or LANG=C
            text = text.translate(_MARKS_IN_ASCII)
        return super().render_str(text, *args, **options)


console = _SafeConsole(highlight=False)
errors = _SafeConsole(stderr=True, highlight=False)


def build_empty_table(title: str, *columns: str, right: tuple[str, ...] = ()) -> Table:
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


def print_table(table: Table) -> None:
    """Print a table: folded to a terminal's width, else with each row in one line, where programs look for it."""
    width = console.width
    if not console.is_terminal:
        console.width = max(
            width, console.measure(table, options=console.options.update(max_width=10_000)).maximum
        )
    try:
        console.print(table)
    finally:
        console.width = width


def say(text: str) -> None:
    """Print a sentence: wrapped between words on a terminal, else in one line, where programs look for it."""
    console.print(escape(text), soft_wrap=not console.is_terminal)


def print_plain(text: str) -> None:
    """Print a text of a service in one piece, as it is but for characters that steer a terminal."""
    console.print(Text(to_printable(text)), soft_wrap=True)


def print_error(message: str) -> None:
    """Print an error, in one line."""
    errors.print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True)


@contextmanager
def exit_on_interrupt() -> Iterator[None]:
    """Say after an interrupt that nothing is lost, and end."""
    try:
        yield
    except KeyboardInterrupt:
        errors.print("stopped; what was finished is kept, and the same command resumes from there")
        raise typer.Exit(130) from None


@contextmanager
def print_warnings() -> Iterator[None]:
    """Print warnings as sentences, without their lines of code; failed rows are counted at the end."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"[\d,]+ of [\d,]+ rows failed", UserWarning)
        warnings.showwarning = _print_warning
        yield


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    errors.print(f"[yellow]{escape(str(message))}[/]", soft_wrap=True)


def format_number(value: object, digits: int = 2) -> str:
    """Write a number; a missing one as a dash."""
    return f"{value:.{digits}f}" if isinstance(value, float | int) and value == value else "–"


@contextmanager
def show_stages() -> Iterator[Callable[[str, int, int], None]]:
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

    def show_stage(stage: str, done: int, total: int) -> None:
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage, total=max(total, 1))
            if not console.is_terminal and done < total:
                console.print(f"{stage} …")  # bars show up only at the end there
        bars.update(tasks[stage], completed=done if total else 1, total=max(total, 1))

    with bars:
        yield show_stage


_DASH = "–"
# Spaces between columns.
_GAP = 2
# Letters of a word that are not broken, however narrow the terminal.
_MIN_TEXT_WIDTH = 14
# Where a cell of figures may be broken: "2.0% (5.0% of characters)", "+1.0 to +2.0", "needs 17 more clips".
_BREAK_PLACES = re.compile(r" (?=\()|(?<= to) |(?<= of) |(?<=[0-9]) (?=more )")


def print_headline(title: str, head: pd.DataFrame) -> None:
    """Print a table in as few columns as possible.

    A value that all rows share is printed once, above them, and empty columns are left out. On a narrow terminal the
    names of columns wrap first, then texts between words, then figures: before a bracket, within an interval.
    """
    figures = head.attrs.get("figures", ())
    rows = [[_format_cell(cell) for cell in row] for row in head.itertuples(index=False, name=None)]
    columns = {str(name): [row[at] for row in rows] for at, name in enumerate(head.columns)}
    columns = {name: cells for name, cells in columns.items() if any(cell != _DASH for cell in cells)}
    shared = {
        name: cells[0]
        for name, cells in columns.items()
        if len(set(cells)) == 1
        and (name not in figures or cells[0][:1].isalpha())  # words in place of a figure
    }
    differing = {name: cells for name, cells in columns.items() if name not in shared}
    console.print(f"[bold]{escape(title)}[/]")
    if shared:
        facts = [str(cell) if name == "language" else f"{name} {cell}" for name, cell in shared.items()]
        console.print(escape(f"All rows: {', '.join(facts)}"))
    if not differing:
        return
    printed = [[name, *cells] for name, cells in differing.items()]
    texts = [name not in figures for name in differing]
    room = console.width - _GAP * (len(printed) - 1)
    if sum(map(_measure_longest_line, printed)) > room:
        printed = [
            [name if text else re.sub(" (?!%)", "\n", name), *cells]
            for (name, *cells), text in zip(printed, texts, strict=True)
        ]
        if sum(_measure_minimum_widths(printed, texts)) > room:
            printed = [
                column if text else [_BREAK_PLACES.sub("\n", cell) for cell in column]
                for column, text in zip(printed, texts, strict=True)
            ]
    table = Table(header_style="bold", box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    sizes = _compute_column_widths(printed, texts, room)
    for (name, *_), size, text in zip(printed, sizes, texts, strict=True):
        table.add_column(
            name, justify="left" if text else "right", overflow="fold", vertical="top", width=size
        )
    for cells in zip(*(column[1:] for column in printed), strict=True):
        table.add_row(*map(escape, cells))
    console.print(table, crop=False)  # lines that are still too long wrap
    if note := head.attrs.get("note"):
        say(note)


def _measure_longest_line(column: list[str], breaks: str = "\n") -> int:
    return max(cell_len(line) for cell in column for line in re.split(breaks, cell))


def _measure_minimum_widths(columns: list[list[str]], texts: list[bool]) -> list[int]:
    """Widths that columns have at least: words are broken only if they are long, figures never."""
    return [
        min(_measure_longest_line(column, r"\s"), _MIN_TEXT_WIDTH) if text else _measure_longest_line(column)
        for column, text in zip(columns, texts, strict=True)
    ]


def _compute_column_widths(columns: list[list[str]], texts: list[bool], room: int) -> list[int]:
    """Widths of columns; what room there is goes to those that need it most."""
    widths, sizes = list(map(_measure_longest_line, columns)), _measure_minimum_widths(columns, texts)
    for _ in range(min(room, sum(widths)) - sum(sizes)):
        lack = [width / size for width, size in zip(widths, sizes, strict=True)]
        sizes[lack.index(max(lack))] += 1
    return sizes


def _format_cell(cell: object) -> str:
    if is_missing(cell):
        return _DASH
    return format_number(cell) if isinstance(cell, float) else str(cell)
