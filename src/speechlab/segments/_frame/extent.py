"""Extents: the durations of recordings, or the stretches of them that count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from speechlab.errors import SegmentError
from speechlab.segments._frame.schema import frame
from speechlab.segments._frame.ticks import Stretches, ticks_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

Extent: TypeAlias = "float | Mapping[str, float] | pd.Series[float] | pd.DataFrame"
"""Duration of all recordings in seconds; durations by file; or a table of stretches, as in a UEM file."""


def extent_frame(extent: Extent, files: Iterable[str]) -> pd.DataFrame:
    """Return an extent as a segment frame."""
    import pandas as pd

    distinct = list(dict.fromkeys(files))
    if isinstance(extent, pd.DataFrame):
        table = frame(extent)
    else:
        if isinstance(extent, pd.Series):
            extent = {str(name): float(value) for name, value in extent.items()}
        lengths = extent if isinstance(extent, Mapping) else dict.fromkeys(distinct, extent)
        for name, length in lengths.items():
            if isinstance(length, bool) or not isinstance(length, (int, float, np.number)):
                raise SegmentError(
                    f"the extent of {name!r} is {length!r:.60}; expected its duration in seconds"
                )
        rows = [{"file": name, "start": 0.0, "end": float(length)} for name, length in lengths.items()]
        table = frame(rows) if rows else frame([])
    lacking = sorted(set(distinct) - set(table["file"]))
    if lacking:
        some = ", ".join(map(repr, lacking[:3]))
        raise SegmentError(f"the extent lacks {len(lacking)} recordings: {some}", column="file")
    return table


def check_extent(table: pd.DataFrame, extent: Extent) -> None:
    """Refuse segments that do not lie within their recording.

    Args:
        table: A segment frame.
        extent: Durations of the recordings. A table gives the end of the last stretch of each recording.

    Raises:
        SegmentError: A segment ends after its recording. The message names the first such row; the error has all.

    Example:
        >>> try:
        ...     check_extent(frame([(0.0, 2.0)], file="a.wav"), 1.5)
        ... except sl.SegmentError as error:
        ...     print(error)
        row 0 ends at 2 s, but 'a.wav' is only 1.5 s long; crop the table first, or mend the extent
    """
    table = frame(table)
    durations = extent_frame(extent, table["file"]).groupby("file")["end"].max()
    latest = table["file"].map(durations)
    beyond = ticks_of(table["end"]) > ticks_of(latest)
    if beyond.any():
        row = int(np.argmax(beyond))
        message = (
            f"row {row} ends at {table['end'].iloc[row]:.10g} s, but {table['file'].iloc[row]!r} is only "
            f"{latest.iloc[row]:.10g} s long; crop the table first, or mend the extent"
        )
        rows = tuple(int(number) for number in np.flatnonzero(beyond)[:10])
        raise SegmentError(message, column="end", rows=rows)


def numbered(tables: Sequence[pd.DataFrame]) -> tuple[list[Stretches], list[str]]:
    """Return several segment frames as stretches, with the files' names in order of first appearance."""
    import pandas as pd

    lengths = [len(table) for table in tables]
    codes, files = pd.factorize(pd.concat([table["file"] for table in tables], ignore_index=True))
    codes_of = np.split(codes.astype(np.int64), np.cumsum(lengths)[:-1])
    spans = [
        Stretches(table_codes, ticks_of(table["start"]), ticks_of(table["end"]))
        for table_codes, table in zip(codes_of, tables, strict=True)
    ]
    return spans, [str(name) for name in files]
