"""Segments cut out of a table and out of their recordings, the gaps between them, and the time that they cover."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias, get_args

import numpy as np

from speechlab._arguments import is_number
from speechlab._pandas import pd
from speechlab._platform import get_text_dtype
from speechlab.audio import AudioClip, to_clip, unify_recording
from speechlab.errors import SegmentError
from speechlab.segments._frame.extent import (
    Extent,
    count_depths_between_edges,
    merge_stretches,
    sum_seconds_by_file,
    to_extent_frame,
    to_stretches,
)
from speechlab.segments._frame.schema import frame
from speechlab.segments._frame.ticks import LATEST_S, Stretches, refuse_rows, to_seconds, to_ticks
from speechlab.segments._joins.overlap import find_intersections


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
    spans, within, files = _build_spans_and_extent(table, extent)
    layers = count_depths_between_edges([spans, within], len(files))
    silent = (layers.depths[0] == 0) & (layers.depths[1] > 0)
    # An edge of the extent may separate two pieces of one silence. Pieces that touch are joined.
    silences = merge_stretches(layers.spans[silent], len(files))
    names = np.array(files, dtype=object)[silences.codes]
    starts, ends = to_seconds(silences.starts), to_seconds(silences.ends)
    return frame(pd.DataFrame({"file": names, "start": starts, "end": ends}))


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
    spans, within, files = _build_spans_and_extent(table, extent)
    count = len(files)
    layers = count_depths_between_edges([spans, within], count)
    depth, inside = layers.depths[0], layers.depths[1] > 0
    recording = sum_seconds_by_file(layers.spans[inside], count)
    covered = sum_seconds_by_file(layers.spans[inside & (depth > 0)], count)
    pieces = layers.spans[inside]
    total = np.bincount(pieces.codes, weights=pieces.lengths * depth[inside], minlength=count) / 1e6
    return pd.DataFrame(
        {
            "file": pd.Series(files, dtype=get_text_dtype()),
            "segments": np.bincount(spans.codes, minlength=count),
            "extent_s": recording,
            "covered_s": covered,
            "overlapped_s": sum_seconds_by_file(layers.spans[inside & (depth > 1)], count),
            "total_s": total,
            "share": np.divide(covered, recording, out=np.full(count, np.nan), where=recording > 0),
        }
    )


def _build_spans_and_extent(
    table: pd.DataFrame, extent: Extent | None
) -> tuple[Stretches, Stretches, list[str]]:
    checked = frame(table)
    if extent is not None:
        (spans, within), files = to_stretches([checked, to_extent_frame(extent, checked["file"])])
        return spans, within, files
    (spans,), files = to_stretches([checked])
    # one stretch for each file, from the first start to the last end
    first = np.full(len(files), np.iinfo(np.int64).max)
    last = np.zeros(len(files), dtype=np.int64)
    np.minimum.at(first, spans.codes, spans.starts)
    np.maximum.at(last, spans.codes, spans.ends)
    return spans, Stretches(np.arange(len(files)), first, last), files


Edges: TypeAlias = Literal["cut", "keep", "drop"]


def crop(table: pd.DataFrame, extent: Extent, edges: Edges = "cut") -> pd.DataFrame:
    """Keep the segments within an extent.

    >>> from speechlab import segments
    >>> table = segments.frame([(0.0, 2.0), (3.0, 5.0)], file="a.wav")
    >>> segments.crop(table, 4.0)[["start", "end"]].to_numpy().tolist()
    [[0.0, 2.0], [3.0, 4.0]]

    Args:
        table: A segment frame.
        extent: The recordings' lengths in seconds, or a table of stretches.
        edges: Treatment of segments across an edge: ``"cut"`` them at the edge (a segment in several stretches
            becomes several rows with the same text), ``"keep"`` them whole, or ``"drop"`` them.

    Returns:
        The remaining rows in their order, with all columns. Instants remain if they are inside.

    Raises:
        SegmentError: The table is not a segment frame, or the extent lacks a recording.
    """
    if str(edges) not in get_args(Edges):
        raise SegmentError(f"edges={edges!r} is not known; choose one of: {', '.join(get_args(Edges))}")
    checked = frame(table)
    (spans, within), files = to_stretches([checked, to_extent_frame(extent, checked["file"])])
    # Half open, like segments: an instant at the end of a stretch is outside.
    rows, _, parts = find_intersections(
        spans.widen_instants(), merge_stretches(within, len(files)), len(files)
    )
    stops = np.minimum(parts.ends, spans.ends[rows])
    if edges == "keep":
        rows = np.unique(rows)
    elif edges == "drop":
        rows = rows[stops - parts.starts == spans.lengths[rows]]
    result: pd.DataFrame = checked.iloc[rows].reset_index(drop=True)
    if edges == "cut":
        result["start"], result["end"] = to_seconds(parts.starts), to_seconds(stops)
    return result


def shift(table: pd.DataFrame, by: float | Mapping[str, float] | pd.Series[float]) -> pd.DataFrame:
    """Move segments in time.

    Args:
        table: A segment frame.
        by: Seconds, later if positive; or the seconds of each recording, by file.

    Returns:
        A new frame with all columns.

    Raises:
        SegmentError: The table is not a segment frame, a recording has no shift in seconds, or a segment would start
            before 0 (crop first).

    Example:
        >>> shift(frame([(0.0, 2.0)]), by=1.5)["start"].tolist()
        [1.5]
    """
    checked = frame(table)
    files = checked["file"]
    shifts = dict(by.items()) if isinstance(by, (Mapping, pd.Series)) else dict.fromkeys(files.unique(), by)
    usable = {
        name: seconds for name, seconds in shifts.items() if is_number(seconds) and abs(seconds) <= LATEST_S
    }
    refuse_rows(
        ~files.isin(list(usable)),
        "file",
        lambda row: (
            f"the shift of {files.iloc[row]!r} is {shifts.get(files.iloc[row])!r:.60}; give its seconds"
        ),
    )
    ticks = to_ticks(files.map(usable).astype("float64"))
    start = to_ticks(checked["start"]) + ticks
    hint = "before its recording; crop the table first"
    refuse_rows(start < 0, "start", lambda row: f"row {row} would start at {start[row] / 1e6:.10g} s, {hint}")
    checked["start"], checked["end"] = to_seconds(start), to_seconds(to_ticks(checked["end"]) + ticks)
    return checked


Sound: TypeAlias = "AudioClip | bytes | str | os.PathLike[str]"


def clips(table: pd.DataFrame, audio: Sound | Mapping[str, Sound] | None = None) -> Iterator[AudioClip]:
    """Cut the segments out of their recordings.

    One recording at a time is in memory, so a table of many recordings should be sorted by file.

    Args:
        table: A segment frame.
        audio: The recording, as a clip, bytes or a file; or a mapping from the values of the column ``file`` to
            recordings. By default that column has the paths of files.

    Returns:
        An iterator: one clip for each row, in order, titled with its file and times. All channels are kept.

    Raises:
        SegmentError: The table is not a segment frame, a recording is missing, or a segment ends after its recording.
        AudioError: A recording cannot be decoded.
        OSError: A file cannot be read.

    Example:
        >>> recording = sl.AudioClip(np.zeros(16_000), 8_000)
        >>> [clip.duration_s for clip in clips(frame([(0.5, 1.0), (1.0, 2.0)]), recording)]
        [0.5, 1.0]
    """
    checked = frame(table)
    files = checked["file"].unique().tolist()
    if isinstance(audio, Mapping) and unify_recording(audio) is None:
        absent = [name for name in files if name not in audio]
        if absent:
            raise SegmentError(f"there is no recording for {absent[0]!r}; add it to audio=", column="file")
        sounds: dict[str, Sound] = {name: audio[name] for name in files}
    elif audio is None:
        if "" in files:
            raise SegmentError(
                "the column 'file' is empty; give the recording: clips(table, audio)", column="file"
            )
        sounds = {name: name for name in files}
    else:
        if len(files) > 1:
            message = (
                f"one recording is given, but the table has {len(files)}; give a mapping from file to sound"
            )
            raise SegmentError(message, column="file")
        sounds = dict.fromkeys(files, audio)  # type: ignore[arg-type]  # no mapping of names, as was seen above
    return _cut_clips(checked, sounds)


def _cut_clips(table: pd.DataFrame, sounds: Mapping[str, Sound]) -> Iterator[AudioClip]:
    name, clip = None, None
    rows = zip(table["file"].tolist(), table["start"].tolist(), table["end"].tolist(), strict=True)
    for row, (file, start, end) in enumerate(rows):
        if clip is None or file != name:
            clip, name = to_clip(sounds[file]), file
        # Half a sample of tolerance: a time rounded to the last sample is still inside.
        if end > clip.duration_s + 0.5 / clip.sample_rate + 1e-6:
            message = f"row {row} ends at {end:.10g} s, but {file!r} is only {clip.duration_s:.10g} s long"
            raise SegmentError(message, column="end", rows=(row,))
        yield clip.crop(start, end).with_title(
            f"{file or clip.title or 'recording'} {start:.2f} to {end:.2f} s"
        )
