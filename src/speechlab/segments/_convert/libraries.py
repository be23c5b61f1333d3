"""Segment frames as tables of audformat and annotations of pyannote, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._platform import text_dtype
from speechlab._require import require
from speechlab.errors import SegmentError
from speechlab.segments._frame.extent import Extent, extent_frame
from speechlab.segments._frame.schema import frame
from speechlab.segments._frame.ticks import seconds_of, ticks_of

if TYPE_CHECKING:
    import pandas as pd

_LEVELS = ["file", "start", "end"]


def to_audformat(table: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with audformat's segmented index, and the other columns.

    >>> from speechlab import segments
    >>> segments.to_audformat(segments.frame([(0.5, 2.0, "Hello.")], file="a.wav")).index[0]
    ('a.wav', Timedelta('0 days 00:00:00.500000'), Timedelta('0 days 00:00:02'))

    Raises:
        SegmentError: The table is not a segment frame, or two rows have the same file, start and end, which audformat
            does not allow.
    """
    import pandas as pd

    checked = frame(table)
    times = [pd.to_timedelta(ticks_of(checked[name]) * 1_000, unit="ns") for name in ("start", "end")]
    index = pd.MultiIndex.from_arrays([checked["file"].astype("string"), *times], names=_LEVELS)
    if index.has_duplicates:
        row = int(np.argmax(index.duplicated()))
        message = f"row {row} has the file, start and end of an earlier row, which audformat does not allow"
        raise SegmentError(message, rows=(row,))
    return checked.drop(columns=_LEVELS).set_index(index)


def from_audformat(data: Any, extent: Extent | None = None) -> pd.DataFrame:
    """Make a segment frame of an index, a series or a table of audformat.

    Args:
        data: An index, a series or a table with audformat's segmented or filewise index.
        extent: Durations of the recordings, for rows that go to the end of the file (``NaT``).

    Returns:
        A segment frame; a series becomes a column of its name (``text`` if it has none).

    Raises:
        SegmentError: The index has other levels, or the duration of a recording is required and not given.

    Example:
        >>> table = to_audformat(frame([(0.0, 2.0, "hello")], file="a.wav"))
        >>> from_audformat(table)[["file", "text"]]
            file   text
        0  a.wav  hello
    """
    import pandas as pd

    if isinstance(data, pd.Series):
        data = data.to_frame("text" if data.name is None else data.name)
    index = data.index if isinstance(data, pd.DataFrame) else data
    if not isinstance(index, pd.Index) or list(index.names) not in (_LEVELS, _LEVELS[:1]):
        raise SegmentError("audformat's index has the levels file, start and end, or file alone")
    table = (data if isinstance(data, pd.DataFrame) else pd.DataFrame(index=index)).reset_index()
    files = table["file"].astype(text_dtype())
    start = _seconds(table["start"]) if "start" in table.columns else np.zeros(len(table))
    end = _seconds(table["end"]) if "end" in table.columns else np.full(len(table), np.nan)
    start = np.where(np.isnan(start), 0.0, start)
    if np.isnan(end).any():
        if extent is None:
            row = int(np.argmax(np.isnan(end)))
            message = (
                f"row {row} goes to the end of {files.iloc[row]!r}; give the recording's duration: extent="
            )
            raise SegmentError(message, column="end", rows=(row,))
        lengths = extent_frame(extent, files).groupby("file")["end"].max()
        end = np.where(np.isnan(end), files.map(lengths).to_numpy(dtype="float64"), end)
    return frame(table.assign(file=files, start=start, end=end))


def _seconds(column: pd.Series[Any]) -> Any:
    values = column.to_numpy().astype("timedelta64[ns]")
    ticks = np.where(np.isnat(values), 0, values.astype(np.int64) // 1_000)
    return np.where(np.isnat(values), np.nan, seconds_of(ticks))


def to_pyannote(table: pd.DataFrame) -> dict[str, Any]:
    """Return a ``pyannote.core.Annotation`` for each recording, by file.

    The track of a segment is its row number. Its label is its speaker, or ``"speech"`` without a speaker. Other
    columns are left out.

    Raises:
        SegmentError: The table is not a segment frame, or has segments without length, which pyannote drops silently.
        MissingDependencyError: pyannote.core is not installed.
    """
    core = require("pyannote.core")
    checked = frame(table)
    instant = ticks_of(checked["end"]) == ticks_of(checked["start"])
    if instant.any():
        row = int(np.argmax(instant))
        message = f"row {row} has no length, which pyannote does not support; drop it first"
        raise SegmentError(message, column="end", rows=(row,))
    annotations = {name: core.Annotation(uri=name) for name in checked["file"].unique().tolist()}
    speakers = checked["speaker"] if "speaker" in checked.columns else [""] * len(checked)
    rows = zip(checked["file"], checked["start"], checked["end"], speakers, strict=True)
    for number, (name, start, end, speaker) in enumerate(rows):
        annotations[name][core.Segment(float(start), float(end)), number] = speaker or "speech"
    return annotations


def from_pyannote(data: Any, file: str | None = None) -> pd.DataFrame:
    """Make a segment frame of pyannote's annotations or timelines.

    Args:
        data: An ``Annotation`` or a ``Timeline``; or several, in a list or by file.
        file: The recording of annotations without a ``uri``.

    Returns:
        A segment frame, in pyannote's order. The labels of annotations become the column ``speaker``.

    Raises:
        SegmentError: The value is neither an ``Annotation`` nor a ``Timeline``.
    """
    if isinstance(data, Mapping):
        annotations = [(str(name), annotation) for name, annotation in data.items()]
    elif hasattr(data, "uri"):
        annotations = [(file or data.uri or "", data)]
    elif isinstance(data, Iterable) and not isinstance(data, str):
        annotations = [(file or getattr(annotation, "uri", None) or "", annotation) for annotation in data]
    else:
        raise SegmentError(f"expected an Annotation or a Timeline, not {data!r:.60}")
    rows: list[dict[str, Any]] = []
    for name, annotation in annotations:
        if hasattr(annotation, "itertracks"):
            tracks = annotation.itertracks(yield_label=True)
            rows += [
                {"file": name, "start": segment.start, "end": segment.end, "speaker": str(label)}
                for segment, _, label in tracks
            ]
        elif hasattr(annotation, "support"):
            rows += [{"file": name, "start": segment.start, "end": segment.end} for segment in annotation]
        else:
            raise SegmentError(f"expected an Annotation or a Timeline, not {annotation!r:.60}")
    return frame(rows)
