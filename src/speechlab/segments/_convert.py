"""Segment frames as records, as tables of audformat and annotations of pyannote, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from speechlab._pandas import pd
from speechlab._platform import get_text_dtype
from speechlab._require import require
from speechlab.errors import SegmentError
from speechlab.segments._frame.extent import Extent, to_extent_frame
from speechlab.segments._frame.schema import COLUMNS, frame
from speechlab.segments._frame.ticks import refuse_rows, to_seconds, to_ticks

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
    checked = frame(table)
    times = [pd.to_timedelta(to_ticks(checked[name]) * 1_000, unit="ns") for name in ("start", "end")]
    index = pd.MultiIndex.from_arrays([checked["file"].astype("string"), *times], names=_LEVELS)
    fault = "has the file, start and end of an earlier row, which audformat does not allow"
    refuse_rows(index.duplicated(), None, lambda row: f"row {row} {fault}")
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
    if isinstance(data, pd.Series):
        data = data.to_frame("text" if data.name is None else data.name)
    index = data.index if isinstance(data, pd.DataFrame) else data
    if not isinstance(index, pd.Index) or list(index.names) not in (_LEVELS, _LEVELS[:1]):
        raise SegmentError("audformat's index has the levels file, start and end, or file alone")
    table = (data if isinstance(data, pd.DataFrame) else pd.DataFrame(index=index)).reset_index()
    files = table["file"].astype(get_text_dtype())
    start = _timedelta_to_seconds(table["start"]) if "start" in table.columns else np.zeros(len(table))
    end = _timedelta_to_seconds(table["end"]) if "end" in table.columns else np.full(len(table), np.nan)
    start = np.where(np.isnan(start), 0.0, start)
    hint = "give the recording's duration: extent="
    open_ended = np.isnan(end)
    if extent is None:
        refuse_rows(
            open_ended, "end", lambda row: f"row {row} goes to the end of {files.iloc[row]!r}; {hint}"
        )
    elif open_ended.any():
        lengths = to_extent_frame(extent, files).groupby("file")["end"].max()
        end = np.where(open_ended, files.map(lengths).to_numpy(dtype="float64"), end)
    return frame(table.assign(file=files, start=start, end=end))


def _timedelta_to_seconds(column: pd.Series[Any]) -> Any:
    values = column.to_numpy().astype("timedelta64[ns]")
    ticks = np.where(np.isnat(values), 0, values.astype(np.int64) // 1_000)
    return np.where(np.isnat(values), np.nan, to_seconds(ticks))


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
    instant = to_ticks(checked["end"]) == to_ticks(checked["start"])
    fault = "has no length, which pyannote does not support; drop it first"
    refuse_rows(instant, "end", lambda row: f"row {row} {fault}")
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


_SEGLST = {
    "session_id": "file",
    "start_time": "start",
    "end_time": "end",
    "words": "text",
    "speaker": "speaker",
}


def to_records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a dict for each row, suitable for JSON: times to the microsecond, without unknown values.

    >>> from speechlab import segments
    >>> segments.to_records(segments.frame([(0.5, 2.0, "Hello.")], file="a.wav"))
    [{'file': 'a.wav', 'start': 0.5, 'end': 2.0, 'text': 'Hello.'}]

    :func:`frame` converts them back.

    Raises:
        SegmentError: The table is not a segment frame.
    """
    checked = frame(table)
    for name in ("start", "end"):
        checked[name] = to_seconds(to_ticks(checked[name]))
    names = [name for name in COLUMNS if name in checked.columns]
    rows = zip(*(checked[name].tolist() for name in names), strict=True)
    always = {"file", "start", "end", "text"}
    return [
        {
            name: value
            for name, value in zip(names, row, strict=True)
            if name in always or (value != "" and value == value)
        }
        for row in rows
    ]


def to_seglst(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return SegLST, a dict for each row.

    Its keys are ``session_id``, ``start_time``, ``end_time``, ``words`` and ``speaker``. Channel, confidence, source
    and the user's own columns are left out.

    Raises:
        SegmentError: The table is not a segment frame.

    Example:
        >>> to_seglst(frame([(0.0, 2.0, "hello")], file="a"))[0]["words"]
        'hello'
    """
    return [{name: record.get(ours, "") for name, ours in _SEGLST.items()} for record in to_records(table)]


def from_seglst(data: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Make a segment frame of SegLST.

    Args:
        data: Dicts, or meeteval's own SegLST. Keys other than the five are ignored.

    Raises:
        SegmentError: A key is missing, or a value is not valid.

    Example:
        >>> said = {
        ...     "session_id": "a",
        ...     "start_time": 0.0,
        ...     "end_time": 2.0,
        ...     "words": "hello",
        ...     "speaker": "anna",
        ... }
        >>> from_seglst([said])[["file", "text", "speaker"]]
          file   text speaker
        0    a  hello    anna
    """
    entries: object = data  # type hints are not enforced at run time
    if isinstance(entries, (str, bytes, Mapping)) or not isinstance(entries, Iterable):
        raise SegmentError(f"SegLST is given as its entries, not as {type(data).__name__}")
    return frame([parse_seglst_entry(number, item) for number, item in enumerate(data)])


def parse_seglst_entry(number: int, item: object) -> dict[str, Any]:
    """Return the row of an entry of SegLST; raises SegmentError."""
    if not isinstance(item, Mapping):
        raise SegmentError(f"entry {number} is {item!r:.60}, not a mapping", rows=(number,))
    for name in ("session_id", "start_time", "end_time"):
        if name not in item:
            raise SegmentError(f"entry {number} has no key {name!r}", column=_SEGLST[name], rows=(number,))
    row = {ours: item[name] for name, ours in _SEGLST.items() if name in item}
    return row | {name: _to_float_if_number(row[name]) for name in ("start", "end")}


def _to_float_if_number(value: Any) -> Any:
    """Return a time as a number: meeteval stores exact decimals, and writes them as texts."""
    if isinstance(value, bool) or value is None:
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        return value
