"""Times in whole microseconds, and all files end to end on one line, where one number gives the file and the time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._pandas import pd
from speechlab.errors import SegmentError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

# Ticks in a second; times are compared to the microsecond.
TICKS = 1_000_000

# Latest time in seconds (136 years); up to it, a float represents each microsecond.
LATEST_S = 2.0**32

_LONGEST = 2**62
_FEW = 10


def to_ticks(seconds: ArrayLike) -> NDArray[np.int64]:
    """Return times in whole microseconds."""
    return np.rint(np.asarray(seconds, dtype=np.float64) * TICKS).astype(np.int64)


def to_seconds(ticks: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return whole microseconds as seconds."""
    return ticks / TICKS


def refuse_rows(bad: Any, column: str | None, message: Callable[[int], str]) -> None:
    """Raise an error about the first of the rows at fault, if there are any."""
    rows = tuple(np.flatnonzero(bad)[:_FEW].tolist())
    if rows:
        raise SegmentError(message(rows[0]), column=column, rows=rows)


def check_seconds(value: object, name: str) -> None:
    """Refuse a value that is not a duration."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float, np.number))
        or not 0 <= value <= LATEST_S
    ):
        raise SegmentError(f"{name}={value!r:.60} is not a number of 0 or more seconds")


def assign_group_codes(
    tables: Sequence[pd.DataFrame], by: Sequence[str]
) -> tuple[list[NDArray[np.int64]], int]:
    """Number the groups of the rows of several tables."""
    lengths = [len(table) for table in tables]
    codes: NDArray[np.int64] = np.zeros(sum(lengths), dtype=np.int64)
    count = 1
    for number, name in enumerate(by):
        values: Any = [table[name] for table in tables]
        joined = values[0] if len(values) == 1 else pd.concat(values, ignore_index=True)
        label_codes, labels = pd.factorize(joined)
        if number == 0:
            codes, count = label_codes.astype(np.int64), len(labels)
            continue
        unlabeled = (codes < 0) | (label_codes < 0)
        pairs = codes * max(1, len(labels)) + label_codes
        pair_codes, distinct = pd.factorize(pairs[~unlabeled])
        codes, count = np.full(len(pairs), -1, dtype=np.int64), len(distinct)
        codes[~unlabeled] = pair_codes
    return np.split(codes, np.cumsum(lengths)[:-1]), count


@dataclass(frozen=True, slots=True)
class Stretches:
    """Stretches of time in numbered files: three integer arrays of one length."""

    codes: NDArray[np.int64]  # of the files
    starts: NDArray[np.int64]  # in microseconds
    ends: NDArray[np.int64]  # not before the starts

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> Stretches:
        return Stretches(self.codes[rows], self.starts[rows], self.ends[rows])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Durations in microseconds."""
        return self.ends - self.starts

    def widen_instants(self) -> Stretches:
        """The same, with instants as stretches of one microsecond, which share time with what contains them."""
        return Stretches(self.codes, self.starts, np.maximum(self.ends, self.starts + 1))


class Line:
    """One line with all files end to end, so that one key sorts by file and time.

    Args:
        spans: All stretches for the line.
        count: Number of files.
        room: Free space between two files in microseconds.
    """

    def __init__(self, spans: Sequence[Stretches], count: int, room: int = 1) -> None:
        used = [stretches for stretches in spans if len(stretches)]
        low = min((int(stretches.starts.min()) for stretches in used), default=0)
        high = max((int(stretches.ends.max()) for stretches in used), default=0)
        width = high - low + room
        if width * max(count, 1) < _LONGEST:
            self._offsets = np.arange(count, dtype=np.int64) * width - low
            return
        # Files may have very different times. Each gets only the part of the line that it needs.
        lows = np.full(count, np.iinfo(np.int64).max)
        highs = np.full(count, np.iinfo(np.int64).min)
        for stretches in used:
            np.minimum.at(lows, stretches.codes, stretches.starts)
            np.maximum.at(highs, stretches.codes, stretches.ends)
        empty = highs < lows
        lows[empty] = highs[empty] = 0
        widths = highs - lows + room
        self._offsets = np.cumsum(widths) - widths - lows

    def place_starts(self, spans: Stretches) -> NDArray[np.int64]:
        """Return the starts of stretches on the line."""
        return spans.starts + self._offsets[spans.codes]

    def place_ends(self, spans: Stretches) -> NDArray[np.int64]:
        """Return the ends of stretches on the line."""
        return spans.ends + self._offsets[spans.codes]
