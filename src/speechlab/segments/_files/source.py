"""Sources and targets of readers and writers, with messages for errors and losses."""

from __future__ import annotations

import codecs
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar

from speechlab._traces import warn_user
from speechlab.errors import SegmentError, SegmentFileError
from speechlab.segments._frame.schema import frame
from speechlab.segments._frame.ticks import LATEST_S, to_ticks
from speechlab.tables import HELD_ROWS, has_unsplit_rows

if TYPE_CHECKING:
    import pandas as pd

# Control characters but tabs, line breaks and carriage returns; and two code points that XML forbids.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
# Columns that a file without a value for them does not have, unless its format names its columns.
_OPTIONAL = ("speaker", "confidence", "labels")
_DROPS = 20  # how often rows are left out that only the whole table shows to be malformed
_NAMED = 3  # maximum number of parts left out that a warning names
# A row of a file: the number of its line, or None, and its cells by column.
T = TypeVar("T")
Row: TypeAlias = tuple[int | None, dict[str, Any]]


@dataclass(frozen=True)
class SourceFile:
    """The bytes of a file to read, with its path and recording, and notes on what was left out."""

    path: str  # path of the file, for error messages
    file: str  # the recording of its segments, for formats that do not name it
    data: bytes  # bytes of the file
    unit: str | None = None  # unit of times in tables: "s" or "ms"; None if it was not given
    notes: list[tuple[int | None, str]] = field(default_factory=list)  # what was left out: line and reason

    def decode_text(self, *, exact: bool = False) -> str:
        """Decode the file: UTF-8, or UTF-16 with a byte-order mark, and with any line ends, kept if ``exact``."""
        is_wide = self.data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        try:
            text = self.data.decode("utf-16" if is_wide else "utf-8-sig")
        except UnicodeDecodeError as error:
            line = self.data.count(b"\n", 0, error.start) + 1
            self.raise_fault(
                "the text is neither UTF-8 nor UTF-16 with a byte-order mark; convert the file first", line
            )
        return text if exact else _normalize_line_breaks(text)

    def list_lines(self) -> list[tuple[int, str]]:
        """Return the lines that are not blank, with their numbers."""
        return [
            (number, line) for number, line in enumerate(self.decode_text().split("\n"), 1) if line.strip()
        ]

    def raise_fault(self, message: str, line: int | None = None, **facts: Any) -> NoReturn:
        """Raise an error that names the file and the line."""
        where = f"{self.path}, line {line}" if line else self.path
        raise SegmentFileError(f"{where}: {message}", path=self.path, line=line, **facts)

    def parse_rows(
        self, lines: Iterable[tuple[int, T]], parse: Callable[[int, T], dict[str, Any] | None]
    ) -> Iterator[Row]:
        """Yield a row for each line that has one. A line that is malformed costs itself and a note."""
        for number, line in lines:
            try:
                row = parse(number, line)
            except SegmentFileError as error:
                self.note_omission(error.message.removeprefix(f"{self.path}, line {number}: "), number)
                continue
            if row is not None:
                yield number, row

    def note_omission(self, message: str, line: int | None = None) -> None:
        """Note a part of the file that is left out."""
        self.notes.append((line, message))

    def warn_of_omissions(self, stacklevel: int) -> None:
        """Warn of what was left out, with the first lines."""
        if not self.notes:
            return
        self.notes.sort(key=lambda note: note[0] or 0)
        parts = [f"line {line}: {message}" if line else message for line, message in self.notes[:_NAMED]]
        if len(self.notes) > _NAMED:
            parts.append(f"and {len(self.notes) - _NAMED:,} more")
        warn_user(f"{self.path}: left out: {'; '.join(parts)}", stacklevel=stacklevel + 1)

    def parse_seconds(self, text: str, line: int, what: str) -> float:
        """Read a number of seconds, 0 or more."""
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 <= value < math.inf or "_" in text:
            self.raise_fault(f"the {what} is {text!r:.40}; expected a number of seconds, 0 or more", line)
        return value

    def parse_confidence(self, text: str, line: int) -> float:
        """Read a confidence."""
        value = self.parse_seconds(text, line, "confidence")
        if value > 1:
            self.raise_fault(f"the confidence ({value:.10g}) is not between 0 and 1", line)
        return value

    def parse_times(self, start: str, end: str, line: int) -> dict[str, float]:
        """Read the start and the end of a segment."""
        return {
            "start": self.parse_seconds(start, line, "start"),
            "end": self.parse_seconds(end, line, "end"),
        }

    def build_frame(self, rows: Iterable[Row], *, exact: bool, tolerant: bool) -> pd.DataFrame:
        """Return rows as a segment frame, without unknown columns unless ``exact``.

        A row whose text holds parts of the file, or whose times cannot be if ``tolerant``, costs itself and a note.
        """
        lines, cells = [], []
        for line, row in rows:
            text = row.get("text")
            if text and isinstance(text, str) and ("-->" in text or "\t" in text) and has_unsplit_rows(text):
                self.note_omission(f"{text!r:.60} {HELD_ROWS}", line)
            elif tolerant and not 0 <= row["start"] <= row["end"] <= LATEST_S:
                self.note_omission(
                    f"the segment goes from {row['start']:.10g} s to {row['end']:.10g} s", line
                )
            else:
                lines.append(line)
                cells.append(row)
        if self.notes and not cells:
            line, message = self.notes[0]
            self.raise_fault(message, line)
        if not exact:
            unknown = {name for name in _OPTIONAL if all(_is_unknown(row.get(name)) for row in cells)}
            cells = [{name: row[name] for name in row if name not in unknown} for row in cells]
        with self.translate_faults(lines):
            for _ in range(_DROPS if tolerant else 0):
                try:
                    return frame(cells, file=self.file)
                except SegmentError as error:
                    if not error.rows or len(error.rows) >= len(cells):
                        raise
                    self.note_omission(error.message, lines[error.rows[0]])
                    bad = set(error.rows)
                    lines = [line for at, line in enumerate(lines) if at not in bad]
                    cells = [row for at, row in enumerate(cells) if at not in bad]
            return frame(cells, file=self.file)

    def drop_rows_with_multirow_text(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the table without the rows whose text holds several, and note them."""
        held = [has_unsplit_rows(text) for text in table["text"].tolist()]
        if not any(held):
            return table
        for row in (row for row, several in enumerate(held) if several):
            self.note_omission(f"row {row}: {table['text'].iloc[row]!r:.60} {HELD_ROWS}")
        return table[[not several for several in held]].reset_index(drop=True)

    @contextmanager
    def translate_faults(self, lines: Sequence[int | None] = ()) -> Iterator[None]:
        """Raise the faults of a table, whose rows are of these lines, as those of the file."""
        try:
            yield
        except SegmentError as error:
            line = lines[error.rows[0]] if error.rows and lines else None
            self.raise_fault(error.message, line, column=error.column, rows=error.rows)


def _is_unknown(value: object) -> bool:
    return value in ("", None) or value != value


@dataclass
class Sink:
    """A file that is written."""

    path: str  # path of the file, for error messages
    out: Any  # the open file
    closing: ExitStack  # closes what is open when the file is complete
    rows: int = 0  # number of rows that were written
    dropped: dict[str, None] = field(default_factory=dict)  # columns with values that were not written
    notes: Counter[str] = field(default_factory=Counter)  # changes that the writer had to make, and how often
    before: int = 0  # number of rows in the pieces written so far
    columns: list[str] | None = None  # columns of the pieces written so far, for formats that name them once
    # number of rows of each recording in these pieces, for formats that number them
    numbers: Counter[str] = field(default_factory=Counter)
    writer: Any = None  # open writer of a library, for formats that are written in pieces

    def raise_fault(self, message: str, row: int | None = None, column: str | None = None) -> NoReturn:
        """Raise an error that names the file and the row."""
        where = self.path if row is None else f"row {self.before + row} cannot be written to {self.path}"
        rows = () if row is None else (self.before + row,)
        raise SegmentFileError(f"{where}: {message}", path=self.path, column=column, rows=rows)

    def add_note(self, count: int, what: str) -> None:
        """Add a note about changed values, if there are any; the counts of several pieces are added."""
        if count:
            self.notes[what] += count

    def register_columns(self, table: pd.DataFrame) -> bool:
        """Remember the columns of a piece, and return whether it is the first piece."""
        names, first = list(table.columns), self.columns is None
        if self.columns not in (None, names):
            self.raise_fault(
                "the pieces of the table have different columns; all need the columns of the first one"
            )
        self.columns = names
        return first

    def check_and_fill_fields(self, values: list[str], column: str, empty: str | None) -> list[str]:
        """Return names for a line whose fields are separated by spaces."""
        tokens = []
        for row, value in enumerate(values):
            if not value and empty is None:
                self.raise_fault(
                    f"the {column} is missing, which this format needs in each line", row, column
                )
            if len(value.split()) > 1 or value != value.strip() or value.startswith(";;"):
                message = (
                    f"{column} {value!r:.60} has a space or begins with ';;', as no field can; rename it"
                )
                self.raise_fault(message, row, column)
            tokens.append(value or str(empty))
        return tokens

    def clean_table_texts(self, table: pd.DataFrame, columns: Iterable[str]) -> pd.DataFrame:
        """Return a table whose texts a file of lines or tags can hold: carriage returns become line breaks."""
        for name in columns:
            texts = get_column_or_empty(table, name)
            self.refuse_pattern(_CONTROL, texts, name, "has the control character {!r}; remove it first")
            what = f"{name}s had carriage returns, which became line breaks"
            cleaned = self.change_texts_and_note(texts, _normalize_line_breaks, what)
            if cleaned != texts:
                table = table.assign(**{name: cleaned})
        return table

    def refuse_multirow_texts(self, table: pd.DataFrame) -> None:
        """Raise an error for the first text that no reader would take for one."""
        for row, text in enumerate(table["text"].tolist()):
            if has_unsplit_rows(text):
                self.raise_fault(f"the text {text!r:.60} {HELD_ROWS}; correct it first", row, "text")

    def refuse_pattern(self, pattern: re.Pattern[str], texts: list[str], column: str, reason: str) -> None:
        """Raise an error for the first text that has a pattern; the match takes the place of ``{}`` in the reason."""
        for row, text in enumerate(texts):
            if found := pattern.search(text):
                self.raise_fault(f"the {column} {text!r:.60} {reason.format(found[0])}", row, column)

    def to_one_line(self, texts: list[str]) -> list[str]:
        """Return each text on one line."""
        what = "texts had line breaks, tabs or double spaces, which became single spaces"
        return self.change_texts_and_note(texts, lambda text: " ".join(text.split()), what)

    def trim_texts(self, texts: list[str]) -> list[str]:
        """Return each text without white space at its ends."""
        return self.change_texts_and_note(texts, str.strip, "texts had spaces at an end, which were removed")

    def format_speakers(self, table: pd.DataFrame, without: str = "") -> list[str]:
        """Return the speakers' names on one line, without some characters."""
        spaces = str.maketrans(dict.fromkeys(without, " "))
        also = f", or one of {without}" if without else ""
        return self.change_texts_and_note(
            get_column_or_empty(table, "speaker"),
            lambda name: " ".join(name.translate(spaces).split()),
            f"speakers' names had line breaks or double spaces{also}; single spaces are written",
        )

    def change_texts_and_note(self, texts: list[str], change: Callable[[str], str], what: str) -> list[str]:
        """Return each text after a change, and note the number of texts that it changed."""
        cleaned = list(map(change, texts))
        self.add_note(sum(map(str.__ne__, cleaned, texts)), what)
        return cleaned

    def to_milliseconds(self, table: pd.DataFrame, step: int = 1) -> tuple[list[int], list[int]]:
        """Return starts and ends in whole milliseconds, and note the number of segments that lose their length."""
        start, end = to_ticks(table["start"]), to_ticks(table["end"])
        starts, ends = ((ticks + step * 500) // (step * 1_000) * step for ticks in (start, end))
        collapsed = int(((end > start) & (ends == starts)).sum())
        self.add_note(collapsed, f"segments lost their length, as times are rounded to {step} ms")
        return starts.tolist(), ends.tolist()


def _normalize_line_breaks(text: str) -> str:
    return text.replace("\r\r\n", "\n").replace("\r\n", "\n").replace("\r", "\n")


def get_column_or_empty(table: pd.DataFrame, name: str) -> list[str]:
    """Return a column of texts; empty texts if the frame does not have the column."""
    return table[name].tolist() if name in table.columns else [""] * len(table)


def format_ticks_as_seconds(ticks: int) -> str:
    """Write microseconds as seconds, with two decimals or as many more as necessary."""
    seconds, fraction = divmod(int(ticks), 1_000_000)
    digits = f"{fraction:06d}".rstrip("0").ljust(2, "0")
    return f"{seconds}.{digits}"
