"""Segments joined, numbered and cut by silences or by another table, and made of speech by the contract's rules.

``vad="segments"`` (section 2.3 of the contract) has these steps, in the service's order:

1. silences shorter than ``min_silence_gap`` do not split;
2. ``speech_pad_ms`` widens the detected speech;
3. segments shorter than ``min_segment_duration`` are merged with the neighbor that is nearer in time;
4. segments without text are dropped, if any segment has a text;
5. ``segment_padding`` widens the segments; the first one begins ``initial_segment_padding_ms`` before its speech;
6. everything is clamped to the recording, and neighbors that would overlap meet in the middle of their gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from speechlab._arguments import build_argument_error, to_column_names
from speechlab._pandas import pd
from speechlab._platform import get_text_dtype
from speechlab.audio import compute_merged_span_indices, compute_missing_pre_roll, widen_spans
from speechlab.errors import SegmentError
from speechlab.segments._frame.extent import (
    Extent,
    Runs,
    check_extent,
    group_into_runs,
    merge_stretches,
    to_extent_frame,
    to_stretches,
)
from speechlab.segments._frame.schema import COLUMNS, frame, to_index
from speechlab.segments._frame.ticks import (
    LATEST_S,
    Stretches,
    assign_group_codes,
    check_seconds,
    to_seconds,
    to_ticks,
)
from speechlab.segments._joins.align import align
from speechlab.segments._joins.overlap import find_intersections
from speechlab.text import join_texts

if TYPE_CHECKING:
    from numpy.typing import NDArray


def merge(table: pd.DataFrame, gap: float = 0.0, by: Sequence[str] = ()) -> pd.DataFrame:
    """Join segments with little silence between.

    >>> from speechlab import segments
    >>> table = segments.frame([(0.0, 1.0, "one"), (1.2, 2.0, "two"), (4.0, 5.0, "three")], file="a.wav")
    >>> segments.merge(table, gap=0.5)[["start", "end", "text"]].values.tolist()
    [[0.0, 2.0, 'one two'], [4.0, 5.0, 'three']]

    Args:
        table: A segment frame, in any order.
        gap: Maximum silence between joined segments, in seconds. 0 joins segments that touch or overlap.
        by: Columns, besides ``file``, in which joined segments have to agree, such as ``["speaker"]``.

    Returns:
        A segment frame, sorted by file (and ``by``), then start. Texts are joined in order. The confidence is the
        mean, weighted by duration (NaN if one is unknown). Other columns of :data:`COLUMNS` keep their value if all
        joined segments have the same, and are empty otherwise. The user's own columns are left out.

    Raises:
        SegmentError: The table is not a segment frame, or the gap is not a number of 0 or more.
    """
    checked, spans, count = _build_grouped_stretches(table, gap, by)
    runs = group_into_runs(spans, count, int(to_ticks(gap)))
    return merge_runs(checked, runs, runs.heads, runs.spans)


def split(table: pd.DataFrame, gap: float, by: Sequence[str] = ()) -> pd.Series[int]:
    """Number the parts of each recording between long silences.

    >>> from speechlab import segments
    >>> table = segments.frame([(0.0, 1.0), (1.2, 2.0), (4.0, 5.0)], file="a.wav")
    >>> segments.split(table, gap=1.5).tolist()
    [0, 0, 1]

    Args:
        table: A segment frame, in any order.
        gap: Minimum silence between two parts, in seconds.
        by: Columns, besides ``file``, whose values are numbered separately.

    Returns:
        The number of the part of each row, from 0 in each recording, with the order and the index of the table.

    Raises:
        SegmentError: As :func:`merge`.
    """
    checked, spans, count = _build_grouped_stretches(table, gap, by)
    runs = group_into_runs(spans, count, int(to_ticks(gap)) - 1)
    of_run = runs.spans.codes
    first = np.searchsorted(of_run, np.arange(count), "left")
    numbers = np.arange(len(of_run)) - first[of_run]
    part_numbers = np.empty(len(checked), dtype=np.int64)
    part_numbers[runs.order] = np.repeat(numbers, np.diff(np.append(runs.heads, len(checked))))
    return pd.Series(part_numbers, index=to_index(table, checked), name="part")


def subtract(table: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """Cut the time of another table out of segments.

    A segment that is cut in the middle becomes two rows with the same text. A segment that is covered completely is
    removed.

    Args:
        table: A segment frame.
        other: The segment frame to subtract; its segments may overlap.

    Returns:
        The remaining rows in their order, with all columns.

    Raises:
        SegmentError: One of the tables is not a segment frame.

    Example:
        >>> subtract(frame([(0.0, 3.0)]), frame([(1.0, 2.0)]))[["start", "end"]]
           start  end
        0    0.0  1.0
        1    2.0  3.0
    """
    checked, removed = frame(table), frame(other)
    (spans, cut), files = to_stretches([checked, removed])
    holes = merge_stretches(cut, len(files))
    # An instant shares no time with the other table, but is removed if one of its segments contains it.
    row, hole, _ = find_intersections(spans.widen_instants(), holes, len(files))
    # The rest of a row lies between its start, its holes in order, and its end.
    rows = np.concatenate([np.arange(len(checked)), row])
    begins = np.concatenate([spans.starts, holes.ends[hole]])
    order = np.lexsort((begins, rows))
    rows, begins = rows[order], begins[order]
    stops = np.concatenate([spans.ends, holes.starts[hole]])
    stops = stops[np.lexsort((stops, np.concatenate([np.arange(len(checked)), row])))]
    remains = (spans.lengths == 0) & (np.bincount(row, minlength=len(checked)) == 0)
    nonempty = (stops > begins) | remains[rows]
    result: pd.DataFrame = checked.iloc[rows[nonempty]].reset_index(drop=True)
    result["start"], result["end"] = to_seconds(begins[nonempty]), to_seconds(stops[nonempty])
    return result


def resegment(table: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Assign texts to the segments of a reference, so that they can be compared one by one.

    Each segment (best: each word) is assigned completely to the segment of the reference with which it shares most
    time, or to the nearest one in the recording if it shares none.

    Args:
        table: A segment frame with texts.
        reference: A segment frame with the new times.

    Returns:
        One row for each row of the reference, in its order: its ``file``, ``start`` and ``end``, the assigned texts
        joined in order of time, ``parts`` (number of assigned segments), and ``moved_s`` (seconds of these outside
        the row).

    Raises:
        SegmentError: One of the tables is not a segment frame, or a recording is not in the reference.

    Example:
        >>> words = frame([(0.0, 0.4, "good"), (0.5, 0.9, "morning"), (2.0, 2.5, "anna")], file="a.wav")
        >>> lines = frame([(0.0, 1.0), (2.0, 3.0)], file="a.wav")
        >>> resegment(words, lines)["text"].tolist()
        ['good morning', 'anna']
    """
    checked, targets = frame(table), frame(reference)
    absent = sorted(set(checked["file"]) - set(targets["file"]))
    if absent:
        message = (
            f"the reference has no segment of {len(absent)} recordings: {', '.join(map(repr, absent[:3]))}"
        )
        raise SegmentError(message, column="file")
    result = targets[["file", "start", "end"]].copy()
    numbered_reference = result.assign(row=np.arange(len(result)))
    owned = align(checked, numbered_reference, "nearest")
    owned["row"] = owned["row_b"].astype("int64")
    owned["moved_s"] = to_seconds(
        to_ticks(owned["end"]) - to_ticks(owned["start"]) - to_ticks(owned["overlap_s"])
    )
    owned = owned.iloc[np.lexsort((to_ticks(owned["end"]), to_ticks(owned["start"]), owned["row"]))]
    rows = owned["row"].to_numpy()
    heads = np.flatnonzero(np.diff(rows, prepend=-1))
    counts = np.bincount(rows, minlength=len(result))
    texts, joined = owned["text"].tolist(), [""] * len(result)
    for row, head in zip(rows[heads].tolist(), heads.tolist(), strict=True):
        joined[row] = join_texts(texts[head : head + counts[row]])
    result["text"] = pd.Series(joined, dtype=get_text_dtype(), index=result.index)
    result["parts"] = counts
    result["moved_s"] = np.bincount(rows, weights=owned["moved_s"], minlength=len(result))
    return result


def merge_runs(table: pd.DataFrame, runs: Runs, heads: NDArray[np.int64], spans: Stretches) -> pd.DataFrame:
    """Return a row for each run of rows: the given times, the joined texts, and the values that the rows share."""
    rows = table.iloc[runs.order]
    result = rows.iloc[heads].reset_index(drop=True)
    result = result[[name for name in COLUMNS if name in result.columns]].copy()
    result["start"], result["end"] = to_seconds(spans.starts), to_seconds(spans.ends)
    sizes = np.diff(np.append(heads, len(rows)))
    if len(result) == len(rows):
        return result
    several = np.flatnonzero(sizes > 1)
    for name in result.columns:
        if name in {"file", "start", "end"}:
            continue
        if name == "confidence":
            # An instant has a small weight. Otherwise a run of instants would have no confidence.
            weights = np.maximum(to_ticks(rows["end"]) - to_ticks(rows["start"]), 1).astype(np.float64)
            weighted = rows[name].to_numpy(dtype="float64") * weights
            means = np.add.reduceat(weighted, heads) / np.add.reduceat(weights, heads)
            result[name] = np.clip(means, 0.0, 1.0)
            continue
        values, column = rows[name].tolist(), result[name].tolist()
        for run in several:
            cells = values[heads[run] : heads[run] + sizes[run]]
            shared = cells[0] if len(set(cells)) == 1 else ""
            column[run] = join_texts(cells) if name == "text" else shared
        result[name] = pd.Series(column, dtype=get_text_dtype())
    return result


def _build_grouped_stretches(
    table: pd.DataFrame, gap: float, by: Sequence[str]
) -> tuple[pd.DataFrame, Stretches, int]:
    """The checked table, its stretches numbered by their values in ``by``, and how many of these there are."""
    check_seconds(gap, "gap")
    checked = frame(table)
    names = to_column_names(by, "by")
    for name in names:
        if name not in checked.columns:
            raise SegmentError(f"by= names the column {name!r}, which the table does not have", column=name)
    (codes,), count = assign_group_codes([checked], ["file", *names])
    return checked, Stretches(codes, to_ticks(checked["start"]), to_ticks(checked["end"])), count


# Ticks in a millisecond.
_MS = 1_000


def from_speech(
    speech: pd.DataFrame,
    *,
    extent: Extent | None = None,
    min_silence_gap: int = 400,
    segment_padding: int = 100,
    initial_segment_padding_ms: int = 1500,
    speech_pad_ms: int = 200,
    min_segment_duration: float = 1.5,
) -> pd.DataFrame:
    """Make segments of detected speech by the contract's rules, without another call.

    Make one call with ``vad="segments"``, the ``min_silence_gap`` of interest, and 0 for the other four parameters,
    whose effects can be derived here. ``min_silence_gap`` cannot: the detector keeps or drops short bursts of speech
    by it, and the recognizer gives words to other segments. A larger one than that of the call only joins what the
    call found.

    >>> from speechlab import segments
    >>> speech = segments.frame([(2.0, 2.5, "Well,"), (3.0, 6.0, "yes.")], file="a.wav")
    >>> segments.from_speech(speech, extent=8.0)[["start", "end", "text"]].values.tolist()
    [[0.5, 6.3, 'Well, yes.']]

    Args:
        speech: A segment frame of the detected speech, without padding.
        extent: Durations of the recordings; without it, the padding at the end has no limit.
        min_silence_gap: Milliseconds.
        segment_padding: Milliseconds, 0 to 5,000.
        initial_segment_padding_ms: Milliseconds, 0 to 5,000.
        speech_pad_ms: Milliseconds.
        min_segment_duration: Seconds.

    Returns:
        A segment frame, by file and start, without overlap.

    Raises:
        SegmentError: The table is not a segment frame, or a segment ends after its recording.
        InvalidRequestError: A parameter breaks its rule.
    """
    parameters = {
        "min_silence_gap": min_silence_gap,
        "segment_padding": segment_padding,
        "initial_segment_padding_ms": initial_segment_padding_ms,
        "speech_pad_ms": speech_pad_ms,
        "min_segment_duration": min_segment_duration,
    }
    for name, value in parameters.items():
        if value is None:
            raise build_argument_error(name, value, "a number")
    from speechlab.contract import RecognitionRequest  # pydantic, which nothing else here needs

    RecognitionRequest.parse({"audio": "AAAA", "vad": "segments", **parameters})
    checked = frame(speech)
    (spans,), files = to_stretches([checked])
    latest = np.full(len(files), int(LATEST_S * 1e6))
    if extent is not None:
        check_extent(checked, extent)
        lengths = to_extent_frame(extent, files).groupby("file")["end"].max()
        latest = to_ticks(lengths.reindex(files))

    runs = group_into_runs(spans, len(files), min_silence_gap * _MS - 1)
    onsets = runs.spans.starts
    pad = speech_pad_ms * _MS
    codes = runs.spans.codes
    starts, ends = widen_spans(onsets, runs.spans.ends, pad, pad, latest[codes], codes)
    first, last = compute_merged_span_indices(starts, ends, int(to_ticks(min_segment_duration)), codes)
    merged = Stretches(codes[first], starts[first], ends[last])
    result = merge_runs(checked, runs, runs.heads[first], merged)
    if result["text"].ne("").any():
        has_text = result["text"].ne("").to_numpy()
        result, merged, first = result[has_text].reset_index(drop=True), merged[has_text], first[has_text]
    margin = segment_padding * _MS
    before = compute_missing_pre_roll(initial_segment_padding_ms * _MS, onsets[first], merged.starts)
    codes = merged.codes
    leading = np.where(np.diff(codes, prepend=-1) != 0, before, margin)
    starts, ends = widen_spans(merged.starts, merged.ends, leading, margin, latest[codes], codes)
    result["start"], result["end"] = to_seconds(starts), to_seconds(ends)
    return result
