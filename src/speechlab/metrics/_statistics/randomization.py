"""The exact sign-flip test: could chance alone have given one of two equal systems so many more errors?

Were the two systems equal, the errors of a block could as well have been the other's: the sign of each block's
difference is a toss. Of all ways in which the coins can fall, the p-value is the share with a sum at least as far
from zero as the one seen. The distribution of that sum is computed, not drawn, by its characteristic function, so
that the value needs no seed and has no smallest step. It holds for few blocks, where a normal distribution or a
bootstrap calls chance significant too often.

Source: R. A. Fisher, The Design of Experiments (1935), section 21; E. S. Edgington, Randomization Tests (1995).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_MAX_STEPS = 400_000_000  # of points times distinct differences: some seconds


def sign_flip(differences: NDArray[np.int64]) -> float:
    """Two-sided p-value of the hypothesis that the sign of each difference is a toss.

    Args:
        differences: Of each block, the errors of one system minus those of the other.
    """
    sizes = np.abs(differences[differences != 0])
    if not len(sizes):
        return 1.0
    observed = abs(int(differences.sum()))
    values, counts = np.unique(sizes, return_counts=True)
    step = int(np.gcd.reduce(values))
    values, observed = values // step, observed // step
    length = 1 << int(2 * (values * counts).sum()).bit_length()
    if length * len(values) > _MAX_STEPS:  # so many that their sum is normally distributed
        deviation = math.sqrt(float((values.astype(np.float64) ** 2 * counts).sum()))
        return math.erfc(observed / deviation / math.sqrt(2))
    angles = np.arange(length // 2 + 1) * (2 * math.pi / length)
    transform = np.ones(len(angles))
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        transform *= np.cos(angles * value) ** count
    chances = np.fft.irfft(transform, length)
    # Sums below zero stand at the end.
    p = float(chances[observed : length - observed + 1].sum())
    least = math.ldexp(1.0, 1 - len(sizes))  # what rounding cannot show
    return min(max(p, least), 1.0)


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Correct p-values for their number; NaN stay NaN and do not count.

    Source: S. Holm, A simple sequentially rejective multiple test procedure (1979).

    Args:
        p: P-values, shape (tests,), from 0 to 1 or NaN.

    Returns:
        The corrected ones in the same order, shape (tests,), at most 1.

    Raises:
        InvalidRequestError: They are none.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        array([0.03, 0.06, 0.06])
    """
    try:
        given = np.asarray(p, np.float64)
    except (TypeError, ValueError):
        given = np.array(math.inf)
    if given.ndim != 1 or ((given < 0) | (given > 1)).any():
        message = "p has something that is no p-value; give a list of numbers from 0 to 1, or NaN"
        raise InvalidRequestError(message, parameter="p")
    out = np.full(len(given), math.nan)
    known = np.flatnonzero(~np.isnan(given))
    order = known[np.argsort(given[known], kind="stable")]
    steps = given[order] * np.arange(len(order), 0, -1)
    out[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return out
