"""Sources and targets of readers and writers, with messages for errors and losses."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from speechlab.errors import SegmentError, SegmentFileError
from speechlab.segments._frame.schema import frame
from speechlab.segments._frame.ticks import ticks_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class SourceFile:
    """A file that is read.

    Attributes:
        path: Where it is, for errors.
        file: The recording that its segments belong to, where the format does not say.
        data: Its bytes.
    """

    path: str
    file: str
    data: bytes

    def text(self) -> str:
        """Decode the file: UTF-8, with or without a mark, and any ends of lines.

        Raises:
            SegmentFileError: It is not UTF-8.
        """
        try:
            text = self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = self.data.count(b"\n", 0, error.start) + 1
            self.fault("this is not UTF-8 text; convert the file first", line)
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def lines(self) -> list[tuple[int, str]]:
        """Return the numbered lines that are not blank."""
        return [(number, line) for number, line in enumerate(self.text().split("\n"), 1) if line.strip()]

    def fault(self, message: str, line: int | None = None, **facts: Any) -> NoReturn:
        """Raise the error that names file and line."""
        where = f"{self.path}, line {line}" if line else self.path
        raise SegmentFileError(f"{where}: {message}", path=self.path, line=line, **facts)

    def seconds(self, text: str, line: int, what: str) -> float:
        """Read a number of seconds, 0 or more.

        Raises:
            SegmentFileError: It is something else.
        """
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 <= value < math.inf or "_" in text:
            self.fault(f"the {what} is {text!r:.40}; a number of seconds, 0 or more, is meant", line)
        return value

    def table(self, rows: list[dict[str, Any]], lines: list[int]) -> pd.DataFrame:
        """Return rows as a segment frame.

        Args:
            rows: What was read.
            lines: Which line each row is from.

        Raises:
            SegmentFileError: A row cannot be right.
        """
        try:
            return frame(rows, file=self.file)
        except SegmentError as error:
            line = lines[error.rows[0]] if error.rows and lines else None
            self.fault(error.message, line, column=error.column, rows=error.rows)


@dataclass
class Sink:
    """A file that is written.

    Attributes:
        path: Where it will be, for errors.
        notes: What the writer had to change, in words.
        before: How many rows the pieces had that are written already.
        columns: Those of the pieces that are written already, for formats that name them once.
        numbers: How many rows of each recording those had, for formats that count them.
    """

    path: str
    notes: list[str] = field(default_factory=list)
    before: int = 0
    columns: list[str] | None = None
    numbers: Counter[str] = field(default_factory=Counter)

    def fault(self, message: str, row: int | None = None, column: str | None = None) -> NoReturn:
        """Raise the error that names file and row."""
        where = self.path if row is None else f"row {self.before + row} cannot be written to {self.path}"
        rows = () if row is None else (self.before + row,)
        raise SegmentFileError(f"{where}: {message}", path=self.path, column=column, rows=rows)

    def note(self, count: int, what: str) -> None:
        """Note what was changed, if anything was; of several pieces, in all."""
        for at, note in enumerate(self.notes):
            number, _, words = note.partition(" ")
            if count and words == what:
                self.notes[at] = f"{int(number) + count} {what}"
                return
        if count:
            self.notes.append(f"{count} {what}")

    def name_columns(self, table: pd.DataFrame) -> bool:
        """Note a table's columns, and return whether it is the first piece.

        Raises:
            SegmentFileError: An earlier piece had others.
        """
        names, first = list(table.columns), self.columns is None
        if self.columns not in (None, names):
            self.fault("the pieces of the table differ in their columns, which the file names once")
        self.columns = names
        return first

    def words(self, values: list[str], column: str, empty: str | None) -> list[str]:
        """Return names that stand between spaces in a line.

        Args:
            values: The names.
            column: Their column.
            empty: What stands for none; None if there has to be one.

        Raises:
            SegmentFileError: A name holds white space, or is missing and must not be.
        """
        made = []
        for row, value in enumerate(values):
            if not value and empty is None:
                self.fault(f"there is no {column}, which this format needs in each line", row, column)
            if len(value.split()) > 1 or value != value.strip() or value.startswith(";;"):
                message = f"{column} {value!r:.60} cannot stand where spaces part the fields; rename it"
                self.fault(message, row, column)
            made.append(value or str(empty))
        return made

    def one_line(self, texts: list[str]) -> list[str]:
        """Return texts on one line each, and note how many had to be changed for it."""
        made = [" ".join(text.split()) for text in texts]
        changed = sum(one != other for one, other in zip(made, texts, strict=True))
        self.note(changed, "texts had line breaks, tabs or double spaces, which became single spaces")
        return made

    def milliseconds(self, table: pd.DataFrame, step: int = 1) -> tuple[list[int], list[int]]:
        """Return starts and ends in whole milliseconds, and note which segments lose their length.

        Args:
            table: A segment frame.
            step: How many milliseconds the format's times are apart.
        """
        start, end = ticks_of(table["start"]), ticks_of(table["end"])
        starts, ends = ((ticks + step * 500) // (step * 1_000) * step for ticks in (start, end))
        lost = int(((end > start) & (ends == starts)).sum())
        self.note(lost, f"segments lost their length, as times are rounded to {step} ms")
        return starts.tolist(), ends.tolist()


def column_of(table: pd.DataFrame, name: str) -> list[str]:
    """Return a column of texts, empty where the frame does not have it."""
    return table[name].tolist() if name in table.columns else [""] * len(table)


def decimal(ticks: int) -> str:
    """Write microseconds as seconds: two digits, and as many more as are needed.

    >>> decimal(1_500_000), decimal(123_456)
    ('1.50', '0.123456')
    """
    whole, rest = divmod(int(ticks), 1_000_000)
    digits = f"{rest:06d}".rstrip("0").ljust(2, "0")
    return f"{whole}.{digits}"
