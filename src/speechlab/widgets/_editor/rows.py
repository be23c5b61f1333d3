"""The edited segments: rows with ids, converted from a segment frame and back to one."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from speechlab._arguments import is_number, is_whole_number
from speechlab._platform import text_dtype
from speechlab.errors import InvalidRequestError
from speechlab.segments import frame as segment_frame

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

MAX_SEGMENTS = 20_000
_MAX_CHARACTERS = 20_000
_TOLERANCE_S = 1e-6
_LATE_S = 0.01
"""Seconds after the end that rounding explains."""
_SHOWN = ("start", "end", "text", "speaker")


class EditedRow(NamedTuple):
    """One segment in the form of the browser, in seconds."""

    start: float
    end: float
    text: str
    speaker: str
    like: int  # position in the given frame of the row whose other columns it has; -1 for none


class EditedRows:
    """The segments of one recording, with ids that they keep when moved; of given ones, the positions."""

    def __init__(self, given: pd.DataFrame, file: str, duration_s: float) -> None:
        files = [name for name in given["file"].unique() if name]
        if len(files) > 1:
            message = (
                f"the segments are of {len(files)} recordings ({files[0]!r}, {files[1]!r} …); give those of one: "
                'frame[frame["file"] == name]'
            )
            raise InvalidRequestError(message, parameter="segments")
        if len(given) > MAX_SEGMENTS:
            message = f"{len(given):,} segments are more than the {MAX_SEGMENTS:,} that a page can hold; give a part"
            raise InvalidRequestError(message, parameter="segments")
        self._tell_late(given, duration_s)
        self.given = given
        self._file = files[0] if files else file
        self._duration_s = duration_s
        speakers = given["speaker"] if "speaker" in given else [""] * len(given)
        cells = zip(given["start"], given["end"], given["text"], speakers, strict=True)
        self._rows = {
            number: EditedRow(float(start), float(end), str(text), str(speaker), number)
            for number, (start, end, text, speaker) in enumerate(cells)
        }
        self._first = dict(self._rows)

    @staticmethod
    def _tell_late(given: pd.DataFrame, duration_s: float) -> None:
        late = given["end"] > duration_s + _LATE_S
        if late.any():
            first = given["end"][late].iloc[0]
            message = (
                f"{int(late.sum()):,} of {len(given):,} segments end after the recording of {duration_s:.2f} s, the "
                f"first at {first:.2f} s; sl.segments.crop(frame, {duration_s:.2f}) cuts them"
            )
            warnings.warn(message, stacklevel=4)

    def in_order(self) -> list[tuple[int, EditedRow]]:
        """Return ids and rows by start and end."""
        return sorted(self._rows.items(), key=lambda item: (item[1].start, item[1].end))

    def edit(self, put: Iterable[Any], removed: Iterable[Any]) -> None:
        """Apply rows ``[id, start, end, text, speaker, like]`` and removals by id: all, or none (ValueError)."""
        rows = dict(self._rows)
        for number in removed:
            rows.pop(number, None)
        for number, *values in put:
            if not is_whole_number(number):
                raise ValueError(f"{number!r} is not an id")
            rows[int(number)] = self._checked(rows.get(number), self._first.get(number), *values)
        if len(rows) > MAX_SEGMENTS:
            raise ValueError(f"there are too many segments; the maximum is {MAX_SEGMENTS:,}")
        self._rows = rows

    def _checked(
        self,
        before: EditedRow | None,
        first: EditedRow | None,
        start: Any,
        end: Any,
        text: Any,
        speaker: Any,
        like: Any,
    ) -> EditedRow:
        for value in (start, end):
            if not is_number(value) or not math.isfinite(value):
                raise ValueError(f"{value!r} is not a time")
        latest = max(self._duration_s, before.end if before else 0.0, self._end_of(like)) + _TOLERANCE_S
        if not 0 <= start <= end <= latest:
            raise ValueError(f"a segment cannot go from {start} to {end} s")
        for value in (text, speaker):
            if not isinstance(value, str) or len(value) > _MAX_CHARACTERS:
                raise ValueError(f"texts have at most {_MAX_CHARACTERS:,} characters")
        copied = is_whole_number(like) and 0 <= like < len(self.given)
        # Edited times are whole microseconds, because sums and multiples in the browser end in …0001.
        begin, stop = (
            float(value) if first and value in (first.start, first.end) else round(float(value), 6)
            for value in (start, end)
        )
        return EditedRow(begin, stop, text, speaker, int(like) if copied else -1)

    def _end_of(self, like: Any) -> float:
        row = self._first.get(like)
        return row.end if row else 0.0

    def frame(self) -> pd.DataFrame:
        """Return the segments as a segment frame, by start and end."""
        return self._table([row for _, row in self.in_order()])

    def _table(self, rows: list[EditedRow]) -> pd.DataFrame:
        import pandas as pd

        likes = [row.like for row in rows]
        table = _whole_numbers_stay(self.given) if -1 in likes else self.given
        table = table.reindex(likes).reset_index(drop=True)
        table["file"] = table["file"].fillna(self._file)
        for name in ("start", "end"):
            table[name] = np.array([getattr(row, name) for row in rows], dtype=np.float64)
        table["text"] = pd.Series([row.text for row in rows], dtype=text_dtype())
        if "speaker" in table or any(row.speaker for row in rows):
            table["speaker"] = pd.Series([row.speaker for row in rows], dtype=text_dtype())
        return segment_frame(table, file=self._file or None)

    def changes(self) -> pd.DataFrame:
        """Return the differences from the given frame, see :attr:`SegmentEditor.changes`."""
        import pandas as pd

        edits: list[tuple[str, int | None, EditedRow | None, EditedRow | None]] = []
        for number, before in self._first.items():
            now = self._rows.get(number)
            if now is None:
                edits.append(("deleted", number, before, None))
            elif now[:-1] != before[:-1]:
                edits.append(("changed", number, before, now))
        edits += [
            ("added", None, None, row) for number, row in self._rows.items() if number not in self._first
        ]
        edits.sort(key=lambda edit: (edit[3] or edit[2] or ())[:2])
        table: dict[str, Any] = {
            "change": pd.Series([edit[0] for edit in edits], dtype=text_dtype()),
            "row": pd.array([edit[1] for edit in edits], dtype="Int64"),
        }
        for suffix, place in (("_before", 2), ("", 3)):
            for name in _SHOWN:
                values = [getattr(edit[place], name) if edit[place] else None for edit in edits]
                kind = "float64" if name in {"start", "end"} else "str"
                table[f"{name}{suffix}"] = pd.Series(values, dtype=kind)
        return pd.DataFrame(table)


def _whole_numbers_stay(given: pd.DataFrame) -> pd.DataFrame:
    """A frame with nullable integer and boolean columns, because added rows have no values in them."""
    kinds = {
        name: "boolean" if column.dtype.kind == "b" else column.dtype.name.replace("i", "I").replace("u", "U")
        for name, column in given.items()
        if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biu"
    }
    return given.astype(kinds)
