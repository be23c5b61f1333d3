"""Rows of manifests that are segments of recordings: their offsets and durations, as clips read on use."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any

from speechlab.audio import FileSegment, recording_length_s
from speechlab.errors import AudioError, InvalidRequestError

if TYPE_CHECKING:
    import pandas as pd

_ENDS = (("start", "end"), ("start_s", "end_s"), ("start_time", "end_time"))
"""Columns of starts and ends in seconds, which stand for segments if all their cells are numbers."""
_FRAGMENT = re.compile(r"(.+)#t=(\d+(?:\.\d+)?)(?:,(\d+(?:\.\d+)?))?$")
_SLACK_S = 0.1
"""Seconds by which a duration may differ from that of its recording, since tools round and estimate it."""


def sound_of(cell: str) -> str | FileSegment:
    """Return the segment that a path names with its seconds, as in ``talk.wav#t=1.5,4``; otherwise the path."""
    fragment = _FRAGMENT.fullmatch(cell)
    if fragment is None:
        return cell
    path, start, end = fragment.groups()
    try:
        return FileSegment(path, float(start), None if end is None else float(end))
    except AudioError:
        return cell


def with_offsets(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with ``offset_s`` and ``duration_s`` where they have starts and ends instead."""
    import pandas as pd

    lower = {str(name).lower(): name for name in rows.columns}
    for first, last in _ENDS:
        if "offset_s" in rows.columns or first not in lower or last not in lower:
            continue
        start, end = (pd.to_numeric(rows[lower[name]], errors="coerce") for name in (first, last))
        if bool(((start >= 0) & (end > start)).fillna(value=False).all()):
            rows = rows.drop(columns=[lower[first], lower[last]])
            return rows.assign(offset_s=start.astype("float64"), duration_s=(end - start).round(9))
    return rows


def cut(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a clip of its segment for each row that has an offset; whole recordings stay paths."""
    import pandas as pd

    durations = rows["duration_s"] if "duration_s" in rows.columns else [float("nan")] * len(rows)
    lengths: dict[str, float] = {}
    cells: list[Any] = []
    late: list[str] = []
    for number, (cell, offset, duration) in enumerate(
        zip(rows["audio"], rows["offset_s"], durations, strict=True), start=1
    ):
        if not isinstance(cell, str) or offset != offset:
            cells.append(cell)
            continue
        if duration == 0:
            message = (
                f"row {number}: the segment has no length; give its duration in seconds, or drop the row"
            )
            raise InvalidRequestError(message, parameter="duration_s")
        end = None if duration != duration else round(offset + duration, 9)
        if cell not in lengths:
            lengths[cell] = _length(cell)
        length = lengths[cell]
        if (offset if end is None else end) > length + _SLACK_S:
            late.append(
                f"row {number} goes from {offset:.10g} s to {end or length:.10g} s of {length:.10g} s"
            )
        is_whole = offset == 0 and (end is None or abs(end - length) <= _SLACK_S)
        cells.append(cell if is_whole else FileSegment(cell, offset, end))
    if late:
        message = f"{len(late):,} of {len(rows):,} segments end after their recordings, and are cut there: {late[0]}"
        warnings.warn(message, stacklevel=3)
    return rows.assign(audio=pd.Series(cells, rows.index, dtype="object"))


def _length(path: str) -> float:
    """Seconds of a recording; infinity if it cannot be read, which its row will say."""
    try:
        return recording_length_s(path)
    except (AudioError, OSError, ValueError):
        return float("inf")
