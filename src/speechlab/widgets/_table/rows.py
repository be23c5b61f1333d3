"""The rows of a table of recordings: its frame, its sounds, and its marks, ratings and notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from speechlab._arguments import is_missing, is_number, to_python_number
from speechlab._pandas import pd
from speechlab._platform import get_text_dtype
from speechlab.errors import InvalidRequestError
from speechlab.widgets._shared.sounds import Sounds
from speechlab.widgets._table.columns import Layout, normalize_language, to_json_value
from speechlab.widgets._table.differences import Piece, compare_texts_in_pieces

# Columns that are filled in the browser.
ANNOTATIONS = ("mark", "rating", "note")
# Their values without a mark, a rating or a note.
NO_ANNOTATION: dict[str, Any] = {"mark": False, "rating": None, "note": ""}


class Rows:
    """A frame addressed by the positions of its rows; values in ``mark``, ``rating`` and ``note`` are taken over."""

    def __init__(self, frame: pd.DataFrame, layout: Layout, max_rating: int) -> None:
        self.frame = frame
        self.layout = layout
        self.max_rating = max_rating
        silent = layout.audio is None
        self.sounds = Sounds([None] * len(frame) if silent else frame[layout.audio].tolist())
        self._langs = [] if layout.language is None else frame[layout.language].tolist()
        self.noted: dict[str, list[Any]] = {
            name: self._check_annotation_column(frame, name)
            if name in frame.columns
            else [NO_ANNOTATION[name]] * len(frame)
            for name in ANNOTATIONS
        }

    def _check_annotation_column(self, frame: pd.DataFrame, name: str) -> list[Any]:
        try:
            return [self.check_annotation(name, value) for value in frame[name].tolist()]
        except InvalidRequestError as error:
            message = (
                f"column {name!r} is filled in the browser, and its values are not allowed: {error.message}"
            )
            hint = f"rename the column, as in frame.rename(columns={{{name!r}: '{name}_given'}})"
            raise InvalidRequestError(f"{message}; {hint}", parameter="frame") from None

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def failed(self) -> list[int]:
        """Positions of the rows that failed, in the table of a batch."""
        names = set(map(str, self.frame.columns))
        steps = (name.removesuffix("status") for name in names if name.endswith("status"))
        prefixes = [step for step in steps if {f"{step}error_type", f"{step}error"} <= names]
        failures = [(self.frame[f"{step}status"] == "error").to_numpy() for step in prefixes]
        return np.flatnonzero(np.logical_or.reduce(failures)).tolist() if failures else []

    def list_keys(self) -> list[str]:
        """Return the key of each row: its index label as text, or its position if labels occur twice."""
        keys = [str(label) for label in self.frame.index]
        return keys if len(set(keys)) == len(keys) else [str(row) for row in range(len(keys))]

    def get_first_text(self, row: int) -> str:
        """Return the beginning of a row's first text, by which a file of marks is compared with the table."""
        column = next((column for column in self.layout.columns if column.kind == "text"), None)
        text = " ".join((self.get_text(row, column.title) or "").split()) if column else ""
        return text.lstrip("=+-@")[:80]

    def find_language(self, row: int) -> str:
        """Return the language code of a row; empty if it is unknown."""
        if self.layout.lang or not self._langs:
            return self.layout.lang
        return normalize_language(self._langs[row])

    def replace_cells(self, row: int, cells: Mapping[Any, Any], sound: Any = None) -> dict[str, Any]:
        """Replace some cells of a row, its sound too. Return those that are shown as plain JSON, by title."""
        if sound is not None or self.layout.audio in cells:
            self.sounds.replace_sound(row, cells[self.layout.audio] if sound is None else sound)
        for name, value in cells.items():
            self.frame.iat[row, list(self.frame.columns).index(name)] = value
        columns = {name: self.layout.by_title.get(str(name)) for name in cells}
        return {
            column.title: to_json_value(cells[name], column.kind)
            for name, column in columns.items()
            if column
        }

    def slice_cells(self, start: int, end: int) -> dict[str, list[Any]]:
        """Return the cells of some rows, by column, as plain JSON."""
        frame = self.frame.iloc[start:end]
        cells = {
            f"c:{column.title}": [to_json_value(value, column.kind) for value in frame[column.name].tolist()]
            for column in self.layout.columns
        }
        noted = {f"n:{name}": values[start:end] for name, values in self.noted.items()}
        return {
            **cells,
            **noted,
            "lang": [self.find_language(row) for row in range(start, min(end, len(self)))],
        }

    def get_text(self, row: int, title: str) -> str | None:
        """Return the text of a cell, or None if the cell is empty or the column does not exist."""
        column = self.layout.by_title.get(title)
        value = None if column is None else to_json_value(self.frame[column.name].iloc[row], "text")
        return value if value is None else str(value)

    def compare_column(self, rows: Iterable[int], reference: str, title: str) -> list[list[Piece] | None]:
        """Return texts of a column as differences from another, with their classes."""
        column = self.layout.by_title.get(title)
        lang = "" if column is None else column.lang
        texts = (
            (self.get_text(row, reference), self.get_text(row, title), lang or self.find_language(row))
            for row in rows
        )
        return compare_texts_in_pieces(texts)

    def check_annotation(self, name: str, value: Any) -> Any:
        """Return a mark, a rating (a whole number from 1) or a note in the form in which it is kept."""
        if is_missing(value):
            return NO_ANNOTATION[name]
        if name == "mark":
            if not (is_number(value) or isinstance(value, bool | np.bool_)) or value not in (0, 1):
                raise InvalidRequestError(f"mark {value!r:.60} must be True or False", parameter="mark")
            return bool(value)
        if name == "note":
            return str(value)
        number = to_python_number(value) if is_number(value) else -1
        if not 0 <= number <= self.max_rating or number != int(number):
            message = f"rating {value!r:.60} must be a whole number from 1 to {self.max_rating}, or None"
            raise InvalidRequestError(message, parameter="rating")
        return int(value) or None

    def to_frame(self) -> pd.DataFrame:
        """Return the table with the columns ``mark``, ``rating`` and ``note``."""
        frame = self.frame.drop(columns=[name for name in ANNOTATIONS if name in self.frame.columns])
        text = get_text_dtype()
        return frame.assign(
            mark=pd.Series(self.noted["mark"], index=frame.index, dtype="bool"),
            rating=pd.Series(pd.array(self.noted["rating"], dtype="Int64"), index=frame.index),
            note=pd.Series([note or None for note in self.noted["note"]], index=frame.index, dtype=text),
        )
