"""The gaps between segments, and the covered time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from speechlab._platform import text_dtype
from speechlab.segments._frame.extent import Extent, extent_frame, layers_of, length_by_file, numbered, union
from speechlab.segments._frame.schema import frame
from speechlab.segments._frame.ticks import Stretches, seconds_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd


def gaps(table: pd.DataFrame, extent: Extent | None = None) -> pd.DataFrame:
    """Return the stretches without a segment.

    >>> from speechlab import segments
    >>> table = segments.frame([(1.0, 2.0), (1.5, 3.0), (4.0, 5.0)], file="a.wav")
    >>> segments.gaps(table, extent=6.0)[["start", "end"]].to_numpy().tolist()
    [[0.0, 1.0], [3.0, 4.0], [5.0, 6.0]]

    Args:
        table: A segment frame; segments may overlap.
        extent: Durations of the recordings in seconds (one for all, or by file), or a table of stretches. A recording
            without a segment is one gap. Without an extent, only the silence between two segments is a gap.

    Returns:
        A segment frame, sorted by file and start. Touching segments leave no gap.

    Raises:
        SegmentError: The table is not a segment frame, or the extent lacks a recording.
    """
    spans, within, files = _laid(table, extent)
    layers = layers_of([spans, within], len(files))
    silent = (layers.depths[0] == 0) & (layers.depths[1] > 0)
    # An edge of the extent may separate two pieces of one silence. Pieces that touch are joined.
    return as_frame(union(layers.spans[silent], len(files)), files)


def coverage(table: pd.DataFrame, extent: Extent | None = None) -> pd.DataFrame:
    """Return the covered time of each recording.

    Args:
        table: A segment frame; segments may overlap.
        extent: See :func:`gaps`. Only time within it counts. Without it, the extent of a recording is the time from
            the first start to the last end.

    Returns:
        A row for each recording: ``file``, ``segments`` (their number), ``extent_s``, ``covered_s``, ``overlapped_s``
        (covered by two or more segments), ``total_s`` (sum of all durations) and ``share`` (covered share of the
        extent; NaN for an extent without length).

    Raises:
        SegmentError: As :func:`gaps`.

    Example:
        >>> coverage(frame([(0.0, 2.0), (1.0, 3.0)], file="a.wav"), 4.0)[
        ...     ["covered_s", "overlapped_s", "share"]
        ... ]
           covered_s  overlapped_s  share
        0        3.0           1.0   0.75
    """
    import pandas as pd

    spans, within, files = _laid(table, extent)
    count = len(files)
    layers = layers_of([spans, within], count)
    depth, inside = layers.depths[0], layers.depths[1] > 0
    recording = length_by_file(layers.spans[inside], count)
    covered = length_by_file(layers.spans[inside & (depth > 0)], count)
    pieces = layers.spans[inside]
    total = np.bincount(pieces.codes, weights=pieces.lengths * depth[inside], minlength=count) / 1e6
    return pd.DataFrame(
        {
            "file": pd.Series(files, dtype=text_dtype()),
            "segments": np.bincount(spans.codes, minlength=count),
            "extent_s": recording,
            "covered_s": covered,
            "overlapped_s": length_by_file(layers.spans[inside & (depth > 1)], count),
            "total_s": total,
            "share": np.divide(covered, recording, out=np.full(count, np.nan), where=recording > 0),
        }
    )


def _laid(table: pd.DataFrame, extent: Extent | None) -> tuple[Stretches, Stretches, list[str]]:
    checked = frame(table)
    if extent is not None:
        (spans, within), files = numbered([checked, extent_frame(extent, checked["file"])])
        return spans, within, files
    (spans,), files = numbered([checked])
    return spans, hull(spans, len(files)), files


def hull(spans: Stretches, count: int) -> Stretches:
    """Return one stretch for each file, from the first start to the last end."""
    first = np.full(count, np.iinfo(np.int64).max)
    last = np.zeros(count, dtype=np.int64)
    np.minimum.at(first, spans.codes, spans.starts)
    np.maximum.at(last, spans.codes, spans.ends)
    return Stretches(np.arange(count), first, last)


def as_frame(spans: Stretches, files: Sequence[str]) -> pd.DataFrame:
    """Return stretches as a segment frame without text."""
    import pandas as pd

    names = pd.Series(list(files), dtype=text_dtype())
    table = pd.DataFrame(
        {
            "file": names.iloc[spans.codes].reset_index(drop=True),
            "start": seconds_of(spans.starts),
            "end": seconds_of(spans.ends),
        }
    )
    return frame(table)
