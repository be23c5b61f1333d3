"""The contract's rules for segments of speech (section 2.3): merging of short ones, and padding.

Segments are two arrays of times, starts and ends, in order and without overlap. Times are seconds as floats or whole
ticks of any length; the arithmetic is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab._require import import_lazily

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Times = NDArray[Any]
else:
    np = import_lazily("numpy")


def widen_spans(
    starts: Times, ends: Times, before: Any, after: Any, latest: Any, files: NDArray[np.int64] | None = None
) -> tuple[Times, Times]:
    """Pad segments. Neighbors that would overlap meet in the middle of their gap."""
    wide_starts, wide_ends = np.maximum(0, starts - before), np.minimum(latest, ends + after)
    silences = starts[1:] - ends[:-1]
    middles = ends[:-1] + (silences // 2 if silences.dtype.kind == "i" else silences / 2)
    near = np.ones(len(silences), dtype=bool) if files is None else files[1:] == files[:-1]
    wide_starts[1:] = np.where(near, np.maximum(wide_starts[1:], middles), wide_starts[1:])
    wide_ends[:-1] = np.where(near, np.minimum(wide_ends[:-1], middles), wide_ends[:-1])
    return wide_starts, wide_ends


def compute_missing_pre_roll(wanted: Any, onsets: Any, starts: Any) -> Any:
    """Return the padding that is still missing before a recording's first segment.

    The pre-roll counts from the speech itself, and the segment has some padding already.
    """
    return np.maximum(0, wanted - (onsets - starts))


def compute_merged_span_indices(
    starts: Times, ends: Times, minimum: float, files: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Merge segments shorter than a minimum with the neighbor that is nearer in time.

    Each remaining segment has at least the minimum length, or is alone in its recording. The time is linear in the
    number of segments.
    """
    count = len(starts)
    if not count or not (ends - starts < minimum).any():
        return np.arange(count), np.arange(count)
    begin, stop = starts.tolist(), ends.tolist()
    codes = [0] * count if files is None else files.tolist()
    merged: list[tuple[int, int]] = []
    first = last = 0
    while first < count:
        left = merged[-1] if merged and codes[merged[-1][0]] == codes[first] else None
        right = last + 1 if last + 1 < count and codes[last + 1] == codes[first] else None
        if stop[last] - begin[first] < minimum and (left or right):
            before = begin[first] - stop[left[1]] if left else None
            after = begin[right] - stop[last] if right else None
            # A tie goes to the neighbor before: a short last word belongs to the speech before it.
            if before is None or (after is not None and after < before):
                last += 1
                continue
            first = merged.pop()[0]
            continue
        merged.append((first, last))
        first = last = last + 1
    positions = np.array(merged, dtype=np.int64)
    return positions[:, 0], positions[:, 1]
