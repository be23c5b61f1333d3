"""Extents: the durations of recordings, or the stretches of them that count; and the time that stretches cover."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from speechlab._pandas import pd
from speechlab.errors import SegmentError
from speechlab.segments._frame.schema import frame
from speechlab.segments._frame.ticks import Line, Stretches, refuse_rows, to_ticks

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Duration of all recordings in seconds; durations by file; or a table of stretches, as in a UEM file.
Extent: TypeAlias = "float | Mapping[str, float] | pd.Series[float] | pd.DataFrame"


def to_extent_frame(extent: Extent, files: Iterable[str]) -> pd.DataFrame:
    """Return an extent as a segment frame."""
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
    durations = to_extent_frame(extent, table["file"]).groupby("file")["end"].max()
    latest = table["file"].map(durations)
    beyond = to_ticks(table["end"]) > to_ticks(latest)
    refuse_rows(
        beyond,
        "end",
        lambda row: (
            f"row {row} ends at {table['end'].iloc[row]:.10g} s, but {table['file'].iloc[row]!r} is only "
            f"{latest.iloc[row]:.10g} s long; crop the table first, or mend the extent"
        ),
    )


def to_stretches(tables: Sequence[pd.DataFrame]) -> tuple[list[Stretches], list[str]]:
    """Return several segment frames as stretches, with the files' names in order of first appearance."""
    lengths = [len(table) for table in tables]
    codes, files = pd.factorize(pd.concat([table["file"] for table in tables], ignore_index=True))
    codes_of = np.split(codes.astype(np.int64), np.cumsum(lengths)[:-1])
    spans = [
        Stretches(table_codes, to_ticks(table["start"]), to_ticks(table["end"]))
        for table_codes, table in zip(codes_of, tables, strict=True)
    ]
    return spans, [str(name) for name in files]


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of rows with little or no silence between them."""

    order: NDArray[np.int64]  # positions of the rows, by file, start and end
    heads: NDArray[np.int64]  # index of the first row of each run in that order
    spans: Stretches  # from the first start to the last end of each run, by file and start


def group_into_runs(spans: Stretches, count: int, gap: int = 0) -> Runs:
    """Find the runs of rows whose silences are at most ``gap``."""
    line = Line([spans], count, room=max(gap, 0) + 1)
    starts = line.place_starts(spans)
    order = np.lexsort((spans.ends, starts))
    sorted_spans = spans[order]
    if not len(spans):
        return Runs(order, order, spans)
    begin, end = starts[order], line.place_ends(sorted_spans)
    latest = np.maximum.accumulate(end)
    fresh = np.empty(len(order), dtype=bool)
    fresh[0] = True
    fresh[1:] = begin[1:] - latest[:-1] > gap
    heads = np.flatnonzero(fresh)
    ends = np.maximum.reduceat(sorted_spans.ends, heads)
    return Runs(order, heads, Stretches(sorted_spans.codes[heads], sorted_spans.starts[heads], ends))


def merge_stretches(spans: Stretches, count: int) -> Stretches:
    """Return the covered time as stretches that neither overlap nor touch, by file and start."""
    return group_into_runs(spans[spans.ends > spans.starts], count).spans


@dataclass(frozen=True, slots=True)
class Layers:
    """The pieces between all edges of several sets of stretches, with the cover of each piece by each set."""

    spans: Stretches  # by file and start
    depths: NDArray[np.int64]  # number of stretches that cover a piece, shape (sets, pieces)


def count_depths_between_edges(sets: Sequence[Stretches], count: int) -> Layers:
    """Cut the time at all edges of several sets of stretches. Stretches without length are ignored."""
    sets = [spans[spans.ends > spans.starts] for spans in sets]
    line = Line(sets, count)
    places = np.concatenate(
        [side for spans in sets for side in (line.place_starts(spans), line.place_ends(spans))]
    )
    codes = np.concatenate([np.concatenate([spans.codes, spans.codes]) for spans in sets])
    times = np.concatenate([np.concatenate([spans.starts, spans.ends]) for spans in sets])
    order = np.argsort(places, kind="stable")
    steps = np.zeros((len(sets), len(places)), dtype=np.int64)
    position = 0
    for number, spans in enumerate(sets):
        steps[number, position : position + len(spans)] = 1
        steps[number, position + len(spans) : position + 2 * len(spans)] = -1
        position += 2 * len(spans)
    depths = np.cumsum(steps[:, order], axis=1)[:, :-1]
    codes, times = codes[order], times[order]
    pieces = Stretches(codes[:-1], times[:-1], times[1:])
    # The line continues between the last edge of a file and the first edge of the next, but there is no piece.
    real = (codes[:-1] == codes[1:]) & (pieces.ends > pieces.starts)
    return Layers(pieces[real], depths[:, real])


def sum_seconds_by_file(spans: Stretches, count: int) -> NDArray[np.float64]:
    """Return the total duration of the stretches of each file in seconds; overlaps count several times."""
    # Sums of whole microseconds are exact in a float up to 285 years.
    return np.bincount(spans.codes, weights=spans.lengths, minlength=count) / 1e6
