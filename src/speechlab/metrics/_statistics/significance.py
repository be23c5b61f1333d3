"""Paired tests of two systems' errors: the exact sign-flip test, and NIST's matched-pair test.

The sign-flip test asks whether chance alone could have given one of two equal systems so many more errors. If two
systems are equal, their errors in a block could be swapped: the sign of each block's difference is random. The
p-value is the share of all combinations of signs whose sum is at least as far from zero as the observed sum. The
distribution of this sum is computed from its characteristic function, not drawn. So the p-value needs no seed, and
its precision does not depend on a number of draws. The test also holds for few blocks, where a normal distribution
or a bootstrap finds too many false differences. Source: R. A. Fisher, The Design of Experiments (1935), section 21;
E. S. Edgington, Randomization Tests (1995).

MAPSSWE compares segments, not words or utterances: errors near each other in an utterance are not independent;
errors that are far enough apart nearly are. A segment is a run of errors of either system. Between two segments,
both systems have at least two words right. The test asks whether the mean difference of the two systems' errors in
a segment is zero. Source: L. Gillick, S. J. Cox, Some statistical issues in the comparison of speech recognition
algorithms (ICASSP 1989); NIST sc_stats (SCTK 2.4.10), ``-t mapsswe``. Segments, mean, deviation and Z agree with
sc_stats.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from speechlab.errors import InvalidRequestError
from speechlab.metrics._alignment.sclite import sclite_blocks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

    from speechlab.metrics._alignment.units import Tokens

_MAX_STEPS = 400_000_000  # of points times distinct differences: some seconds


def sign_flip(differences: NDArray[np.int64]) -> float:
    """Two-sided p-value of the hypothesis that the sign of each difference is random."""
    sizes = np.abs(differences[differences != 0])
    if not len(sizes):
        return 1.0
    observed = abs(int(differences.sum()))
    values, counts = np.unique(sizes, return_counts=True)
    step = int(np.gcd.reduce(values))
    values, observed = values // step, observed // step
    length = 1 << int(2 * (values * counts).sum()).bit_length()
    if length * len(values) > _MAX_STEPS:  # enough for a normal distribution of their sum
        deviation = math.sqrt(float((values.astype(np.float64) ** 2 * counts).sum()))
        return math.erfc(observed / deviation / math.sqrt(2))
    angles = np.arange(length // 2 + 1) * (2 * math.pi / length)
    transform = np.ones(len(angles))
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        transform *= np.cos(angles * value) ** count
    chances = np.fft.irfft(transform, length)
    # Sums below zero are at the end.
    p = float(chances[observed : length - observed + 1].sum())
    least = math.ldexp(1.0, 1 - len(sizes))  # the least possible p-value, which rounding may lose
    return min(max(p, least), 1.0)


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Correct p-values for their number; NaN stays NaN and does not count.

    Source: S. Holm, A simple sequentially rejective multiple test procedure (1979).

    Args:
        p: P-values, shape (tests,), from 0 to 1 or NaN.

    Returns:
        The corrected p-values in the same order, shape (tests,), at most 1.

    Raises:
        InvalidRequestError: An entry is not a p-value or NaN.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        array([0.03, 0.06, 0.06])
    """
    try:
        values = np.asarray(p, np.float64)
    except (TypeError, ValueError):
        values = np.array(math.inf)
    if values.ndim != 1 or ((values < 0) | (values > 1)).any():
        message = "p has an entry that is not a p-value; give a list of numbers from 0 to 1, or NaN"
        raise InvalidRequestError(message, parameter="p")
    out = np.full(len(values), math.nan)
    tested = np.flatnonzero(~np.isnan(values))
    order = tested[np.argsort(values[tested], kind="stable")]
    steps = values[order] * np.arange(len(order), 0, -1)
    out[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return out


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
    return np.array(
        [first_errors - second_errors for pair in pairs for first_errors, second_errors in segments(*pair)],
        dtype=np.int64,
    )


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
