"""The rules of ``vad="segments"`` (section 2.3 of the contract), applied offline to detected speech.

The steps, in the service's order:

1. silences shorter than ``min_silence_gap`` do not split;
2. ``speech_pad_ms`` widens the detected speech;
3. segments shorter than ``min_segment_duration`` are merged with the neighbour that is nearer in time;
4. segments without text are dropped, if any segment has a text;
5. ``segment_padding`` widens the segments; the first one begins ``initial_segment_padding_ms`` before its speech;
6. everything is clamped to the recording, and neighbours that would overlap meet in the middle of their gap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from speechlab.audio import merge_short_spans, pre_roll, widen_spans
from speechlab.contract import RecognitionRequest
from speechlab.segments._changes.merge import gathered
from speechlab.segments._frame.extent import Extent, check_extent, extent_frame, numbered, runs_of
from speechlab.segments._frame.schema import frame
from speechlab.segments._frame.ticks import LATEST_S, Stretches, seconds_of, ticks_of

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

_MS = 1_000
"""Ticks in a millisecond."""


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
    by it, and the recogniser gives words to other segments. A larger one than that of the call only joins what the
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
    RecognitionRequest.parse({"audio": "AAAA", "vad": "segments", **parameters})
    checked = frame(speech)
    (spans,), files = numbered([checked])
    latest = np.full(len(files), int(LATEST_S * 1e6))
    if extent is not None:
        check_extent(checked, extent)
        lengths = extent_frame(extent, files).groupby("file")["end"].max()
        latest = ticks_of(lengths.reindex(files))

    runs = runs_of(spans, len(files), min_silence_gap * _MS - 1)
    onsets = runs.spans.starts
    pad = speech_pad_ms * _MS
    codes = runs.spans.codes
    starts, ends = widen_spans(onsets, runs.spans.ends, pad, pad, latest[codes], codes)
    first, last = merge_short_spans(starts, ends, int(ticks_of([min_segment_duration])[0]), codes)
    merged = Stretches(codes[first], starts[first], ends[last])
    result = gathered(
        checked, runs.order, runs.heads[first], seconds_of(merged.starts), seconds_of(merged.ends)
    )
    if result["text"].ne("").any():
        has_text = result["text"].ne("").to_numpy()
        result, merged, first = result[has_text].reset_index(drop=True), merged[has_text], first[has_text]
    margin = segment_padding * _MS
    before = pre_roll(initial_segment_padding_ms * _MS, onsets[first], merged.starts)
    leading = np.where(_new_file(merged.codes), before, margin)
    codes = merged.codes
    starts, ends = widen_spans(merged.starts, merged.ends, leading, margin, latest[codes], codes)
    result["start"], result["end"] = seconds_of(starts), seconds_of(ends)
    return result


def _new_file(codes: NDArray[np.int64]) -> NDArray[np.bool_]:
    fresh: NDArray[np.bool_] = np.diff(codes, prepend=-1) != 0
    return fresh
