"""The matched-pair sentence-segment word error test, as NIST computes it.

Errors near each other in an utterance are not independent; errors that are far enough apart nearly are. So the test
compares segments, not words or utterances. A segment is a run of errors of either system. Between two segments, both
systems have at least two words right. The test asks whether the mean difference of the two systems' errors in a
segment is zero.

Source: L. Gillick, S. J. Cox, Some statistical issues in the comparison of speech recognition algorithms (ICASSP
1989); NIST sc_stats (SCTK 2.4.10), ``-t mapsswe``. Segments, mean, deviation and Z agree with sc_stats.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from speechlab.metrics._alignment.sclite import sclite_blocks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from speechlab.metrics._alignment.units import Tokens

Places: TypeAlias = tuple[int, ...]

_BOUNDARY = 2  # words between two segments that both systems have right


class SegmentTest(NamedTuple):
    """Outcome of the test."""

    segments: int  # number of segments
    mean: float  # mean over segments of the errors of the first system minus those of the second
    # standard deviation of these differences, with ``segments - 1``; NaN for fewer than two segments
    deviation: float
    z: float  # ``mean / (deviation / sqrt(segments))``; 0 if no segment differs, NaN if it cannot be computed
    p: float  # two-sided p-value under the normal distribution


def mapsswe(differences: NDArray[np.int64]) -> SegmentTest:
    """Test two systems by their segments."""
    n = len(differences)
    if not differences.any():
        return SegmentTest(n, 0.0, 0.0 if n > 1 else math.nan, 0.0, 1.0)
    mean = float(differences.mean())
    deviation = float(differences.std(ddof=1)) if n > 1 else math.nan
    z = mean / (deviation / math.sqrt(n)) if deviation > 0 else math.nan
    return SegmentTest(n, mean, deviation, z, math.erfc(abs(z) / math.sqrt(2)))


def segment_differences(utterances: Iterable[tuple[Places, Places]]) -> NDArray[np.int64]:
    """Errors of the first system minus those of the second, in each segment."""
    pairs = (pair for pair in utterances if any(pair))
    return np.array([one - other for pair in pairs for one, other in segments(*pair)], dtype=np.int64)


def errors_by_place(reference: Tokens, hypothesis: Tokens) -> Places:
    """Errors before word 0 (insertions), at word 0, before word 1, at word 1, and so on; empty without errors."""
    if reference == hypothesis:
        return ()
    errors = [0] * (2 * len(reference) + 1)
    for operation, i0, i1, j0, j1 in sclite_blocks(reference, hypothesis):
        if operation == "insert":
            errors[2 * i0] += j1 - j0
        elif operation != "equal":
            for i in range(i0, i1):
                errors[2 * i + 1] += 1
    return tuple(errors)


def segments(first: Places, second: Places) -> list[tuple[int, int]]:
    """Errors of both systems in each segment of one utterance."""
    spans: list[tuple[int, int]] = []
    right = _BOUNDARY
    none = (0,) * max(len(first), len(second))
    for place, (a, b) in enumerate(zip(first or none, second or none, strict=True)):
        if not a and not b:
            right += place % 2
        elif right >= _BOUNDARY:
            spans.append((a, b))
            right = 0
        else:
            spans[-1] = (spans[-1][0] + a, spans[-1][1] + b)
            right = 0
    return spans
