"""Lists of dicts: records with the columns of segment frames, and SegLST as meeteval defines it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from speechlab.errors import SegmentError
from speechlab.segments._frame.schema import COLUMNS, frame
from speechlab.segments._frame.ticks import seconds_of, ticks_of

if TYPE_CHECKING:
    import pandas as pd

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
        checked[name] = seconds_of(ticks_of(checked[name]))
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
    rows: list[dict[str, Any]] = []
    for number, item in enumerate(data):
        if not isinstance(item, Mapping):
            raise SegmentError(f"entry {number} is {item!r:.60}, not a mapping", rows=(number,))
        for name in ("session_id", "start_time", "end_time"):
            if name not in item:
                raise SegmentError(
                    f"entry {number} has no key {name!r}", column=_SEGLST[name], rows=(number,)
                )
        row = {ours: item[name] for name, ours in _SEGLST.items() if name in item}
        for name in ("start", "end"):
            row[name] = _seconds(row[name])
        rows.append(row)
    return frame(rows)


def _seconds(value: Any) -> Any:
    """A time as a number: meeteval stores exact decimals, and writes them as texts."""
    if isinstance(value, bool) or value is None:
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        return value
