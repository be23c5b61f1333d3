"""The exact sign-flip test: could chance alone have given one of two equal systems so many more errors?

If two systems are equal, their errors in a block could be swapped: the sign of each block's difference is random. The
p-value is the share of all combinations of signs whose sum is at least as far from zero as the observed sum. The
distribution of this sum is computed from its characteristic function, not drawn. So the p-value needs no seed, and
its precision does not depend on a number of draws. The test also holds for few blocks, where a normal distribution or
a bootstrap finds too many false differences.

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
