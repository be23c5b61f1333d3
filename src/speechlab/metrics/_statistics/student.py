"""Student's t: its p-values and quantiles, to twelve digits.

The two-sided p-value is a regularized incomplete beta function (Abramowitz and Stegun 1964, 26.7.1), computed as a
continued fraction (26.5.8) by the method of W. J. Lentz, Applied Optics 15 (1976).
"""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist

_PRECISION = 1e-15
_LEAST = 1e-300
# Terms of the fraction; some tens are enough, and more than 10,000 degrees of freedom take a hundred.
_MOST_TERMS = 10_000
_MOST_STEPS = 2_000


def compute_student_p(t: float, freedom: float) -> float:
    """Return the two-sided p-value of Student's t."""
    if math.isinf(t):
        return 0.0
    square = t * t
    share = freedom / (
        freedom + square
    )  # of the beta function; the other one is its complement, without rounding
    if share < (freedom / 2 + 1) / (freedom / 2 + 2.5):
        return _compute_beta_share(share, square / (freedom + square), freedom / 2, 0.5)
    return 1.0 - _compute_beta_share(square / (freedom + square), share, 0.5, freedom / 2)


@cache
def compute_student_quantile(p: float, freedom: float) -> float:
    """Return the t with the two-sided p-value ``p``."""
    # From the normal quantile, which is below, Newton's steps rise to the root, because the p-value is convex.
    t = max(-NormalDist().inv_cdf(p / 2), 0.0)
    for _ in range(_MOST_STEPS):
        step = (compute_student_p(t, freedom) - p) / (2 * _compute_density(t, freedom))
        t += step
        if step <= 1e-13 * t:
            break
    return t


def _compute_density(t: float, freedom: float) -> float:
    """Return the density of Student's t."""
    logs = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    return math.exp(logs - (freedom + 1) / 2 * math.log1p(t * t / freedom))


def _compute_beta_share(x: float, rest: float, a: float, b: float) -> float:
    """Return the regularized incomplete beta function of ``x``; ``rest`` is ``1 - x``."""
    if x <= 0.0:
        return 0.0
    logs = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    above, below = 1.0, 1.0 / _keep_from_zero(1.0 - (a + b) * x / (a + 1.0))
    fraction = below
    for m in range(1, _MOST_TERMS):
        before = fraction
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            below = 1.0 / _keep_from_zero(1.0 + term * below)
            above = _keep_from_zero(1.0 + term / above)
            fraction *= below * above
        if abs(fraction - before) <= _PRECISION * abs(fraction):
            break
    return math.exp(logs) * fraction / a


def _keep_from_zero(value: float) -> float:
    """Return a denominator that can be divided by."""
    return value if abs(value) > _LEAST else _LEAST
