"""Sources and targets of readers and writers, with messages for errors and losses."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from speechlab.errors import SegmentError, SegmentFileError
from speechlab.segments._frame.schema import frame
from speechlab.segments._frame.ticks import ticks_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
"""Control characters but tabs, line breaks and carriage returns; and two code points that XML forbids."""


@dataclass(frozen=True)
class SourceFile:
    """A file that is read."""

    path: str  # path of the file, for error messages
    file: str  # the recording of its segments, for formats that do not name it
    data: bytes  # bytes of the file

    def text(self, *, exact: bool = False) -> str:
        """Decode the file: UTF-8, with or without a byte-order mark, and with any line ends, kept if ``exact``."""
        try:
            text = self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = self.data.count(b"\n", 0, error.start) + 1
            self.fault("the text is not UTF-8; convert the file first", line)
        return text if exact else text.replace("\r\n", "\n").replace("\r", "\n")

    def lines(self) -> list[tuple[int, str]]:
        """Return the lines that are not blank, with their numbers."""
        return [(number, line) for number, line in enumerate(self.text().split("\n"), 1) if line.strip()]

    def fault(self, message: str, line: int | None = None, **facts: Any) -> NoReturn:
        """Raise an error that names the file and the line."""
        where = f"{self.path}, line {line}" if line else self.path
        raise SegmentFileError(f"{where}: {message}", path=self.path, line=line, **facts)

    def seconds(self, text: str, line: int, what: str) -> float:
        """Read a number of seconds, 0 or more."""
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 <= value < math.inf or "_" in text:
            self.fault(f"the {what} is {text!r:.40}; expected a number of seconds, 0 or more", line)
        return value

    def table(self, rows: list[dict[str, Any]], lines: list[int]) -> pd.DataFrame:
        """Return rows as a segment frame."""
        try:
            return frame(rows, file=self.file)
        except SegmentError as error:
            line = lines[error.rows[0]] if error.rows and lines else None
            self.fault(error.message, line, column=error.column, rows=error.rows)


@dataclass
class Sink:
    """A file that is written."""

    path: str  # path of the file, for error messages
    notes: list[str] = field(default_factory=list)  # descriptions of the changes that the writer had to make
    before: int = 0  # number of rows in the pieces written so far
    columns: list[str] | None = None  # columns of the pieces written so far, for formats that name them once
    # number of rows of each recording in these pieces, for formats that number them
    numbers: Counter[str] = field(default_factory=Counter)

    def fault(self, message: str, row: int | None = None, column: str | None = None) -> NoReturn:
        """Raise an error that names the file and the row."""
        where = self.path if row is None else f"row {self.before + row} cannot be written to {self.path}"
        rows = () if row is None else (self.before + row,)
        raise SegmentFileError(f"{where}: {message}", path=self.path, column=column, rows=rows)

    def note(self, count: int, what: str) -> None:
        """Add a note about changed values, if there are any; the counts of several pieces are added."""
        for at, note in enumerate(self.notes):
            number, _, words = note.partition(" ")
            if count and words == what:
                self.notes[at] = f"{int(number) + count} {what}"
                return
        if count:
            self.notes.append(f"{count} {what}")

    def name_columns(self, table: pd.DataFrame) -> bool:
        """Remember the columns of a piece, and return whether it is the first piece."""
        names, first = list(table.columns), self.columns is None
        if self.columns not in (None, names):
            self.fault(
                "the pieces of the table have different columns; all need the columns of the first one"
            )
        self.columns = names
        return first

    def words(self, values: list[str], column: str, empty: str | None) -> list[str]:
        """Return names for a line whose fields are separated by spaces."""
        tokens = []
        for row, value in enumerate(values):
            if not value and empty is None:
                self.fault(f"the {column} is missing, which this format needs in each line", row, column)
            if len(value.split()) > 1 or value != value.strip() or value.startswith(";;"):
                message = (
                    f"{column} {value!r:.60} has a space or begins with ';;', as no field can; rename it"
                )
                self.fault(message, row, column)
            tokens.append(value or str(empty))
        return tokens

    def checked(self, table: pd.DataFrame, columns: Iterable[str]) -> pd.DataFrame:
        """Return a table whose texts a file of lines or tags can hold: carriage returns become line breaks."""
        for name in columns:
            texts = column_of(table, name)
            self.refuse(_CONTROL, texts, name, "has the control character {!r}; remove it first")
            cleaned = [text.replace("\r\n", "\n").replace("\r", "\n") for text in texts]
            if self._changed(cleaned, texts, f"{name}s had carriage returns, which became line breaks"):
                table = table.assign(**{name: cleaned})
        return table

    def refuse(self, pattern: re.Pattern[str], texts: list[str], column: str, reason: str) -> None:
        """Raise an error for the first text that has a pattern; the match takes the place of ``{}`` in the reason."""
        for row, text in enumerate(texts):
            if found := pattern.search(text):
                self.fault(f"the {column} {text!r:.60} {reason.format(found[0])}", row, column)

    def one_line(self, texts: list[str]) -> list[str]:
        """Return each text on one line, and note the number of changed texts."""
        cleaned = [" ".join(text.split()) for text in texts]
        self._changed(
            cleaned, texts, "texts had line breaks, tabs or double spaces, which became single spaces"
        )
        return cleaned

    def single_spaces(self, texts: list[str]) -> list[str]:
        """Return each text with single spaces within its lines, and note the number of changed texts."""
        cleaned = ["\n".join(" ".join(line.split()) for line in text.split("\n")) for text in texts]
        self._changed(cleaned, texts, "texts had tabs or double spaces, which became single spaces")
        return cleaned

    def trimmed(self, texts: list[str]) -> list[str]:
        """Return each text without white space at its ends, and note the number of changed texts."""
        cleaned = [text.strip() for text in texts]
        self._changed(cleaned, texts, "texts had spaces at an end, which were removed")
        return cleaned

    def speakers(self, table: pd.DataFrame, without: str = "") -> list[str]:
        """Return the speakers' names on one line, without some characters, and note the number of changed names."""
        names = column_of(table, "speaker")
        spaces = str.maketrans(dict.fromkeys(without, " "))
        cleaned = [" ".join(name.translate(spaces).split()) for name in names]
        also = f", or one of {without}" if without else ""
        self._changed(
            cleaned,
            names,
            f"speakers' names had line breaks or double spaces{also}; single spaces are written",
        )
        return cleaned

    def _changed(self, made: list[str], texts: list[str], what: str) -> int:
        changed = sum(new != old for new, old in zip(made, texts, strict=True))
        self.note(changed, what)
        return changed

    def milliseconds(self, table: pd.DataFrame, step: int = 1) -> tuple[list[int], list[int]]:
        """Return starts and ends in whole milliseconds, and note the number of segments that lose their length."""
        start, end = ticks_of(table["start"]), ticks_of(table["end"])
        starts, ends = ((ticks + step * 500) // (step * 1_000) * step for ticks in (start, end))
        collapsed = int(((end > start) & (ends == starts)).sum())
        self.note(collapsed, f"segments lost their length, as times are rounded to {step} ms")
        return starts.tolist(), ends.tolist()


def column_of(table: pd.DataFrame, name: str) -> list[str]:
    """Return a column of texts; empty texts if the frame does not have the column."""
    return table[name].tolist() if name in table.columns else [""] * len(table)


def decimal(ticks: int) -> str:
    """Write microseconds as seconds, with two decimals or as many more as necessary."""
    seconds, fraction = divmod(int(ticks), 1_000_000)
    digits = f"{fraction:06d}".rstrip("0").ljust(2, "0")
    return f"{seconds}.{digits}"
