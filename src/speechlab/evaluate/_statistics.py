"""Ratios of paired times, and quantiles of times."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from speechlab.metrics import compute_student_p, compute_student_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Probability of all intervals of studies.
CONFIDENCE = 0.95
# Pairs, recordings, listeners or items below which nothing is shown: an exact test has 2 ** (1 - n) at best.
MIN_PAIRS = 6


def estimate_paired_ratio(now: NDArray[np.float64], earlier: NDArray[np.float64]) -> dict[str, float]:
    """Compare positive measures in pairs, by Student's t of the logarithms of their ratios.

    Returns:
        ``difference``, the ratio; ``low``, ``high`` and ``p``, which are NaN for fewer than six pairs.
    """
    logs = np.log(now / earlier)
    count, mean = len(logs), float(logs.mean())
    if count < MIN_PAIRS:
        return {"difference": math.exp(mean), "low": math.nan, "high": math.nan, "p": math.nan}
    deviation = float(logs.std(ddof=1)) / math.sqrt(count)
    t = mean / deviation if deviation else math.copysign(math.inf, mean) if mean else 0.0
    half = compute_student_quantile(1 - CONFIDENCE, count - 1) * deviation
    bounds = {"low": math.exp(mean - half), "high": math.exp(mean + half)}
    return {"difference": math.exp(mean), **bounds, "p": compute_student_p(t, count - 1)}


def compute_sign_p(more: int, fewer: int) -> float:
    """Return the exact two-sided p-value of a sign test: also that of McNemar (1947), of pairs that differ."""
    count = more + fewer
    tail = sum(math.comb(count, number) for number in range(min(more, fewer) + 1))
    return float(min(1.0, 2 * tail / 2**count))


# The quantiles of a summary, by their names.
QUANTILES = {50: 0.50, 95: 0.95, 99: 0.99}
_TAIL = 0.025


def estimate_quantile(
    values: NDArray[np.float64], share: float, independent: int | None = None
) -> tuple[float, float, float] | None:
    """Return a quantile and its 95% interval, or None of too few values.

    The interval goes from one value to another, so that it needs no assumption on the distribution. There are enough
    values if it has two ends: 6 for the median, 72 for 0.95, 368 for 0.99. Source: H. A. David, H. N. Nagaraja, Order
    Statistics (2003), section 7.1.
    """
    count = len(values) if independent is None else min(independent, len(values))
    ranks = _find_quantile_interval_ranks(count, share)
    if ranks is None:
        return None
    ordered, each = np.sort(values), len(values) / count
    low, high = ordered[math.floor(ranks[0] * each)], ordered[math.ceil((ranks[1] + 1) * each) - 1]
    return float(np.quantile(ordered, share)), float(low), float(high)


@lru_cache
def _find_quantile_interval_ranks(count: int, share: float) -> tuple[int, int] | None:
    """The positions of both ends in ``count`` ordered values: at most 2.5% of samples miss on either side."""
    below = np.arange(count + 1)
    logs_of_ways = [math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) for k in below]
    chances = np.cumsum(
        np.exp(np.array(logs_of_ways) + below * math.log(share) + (count - below) * math.log1p(-share))
    )
    low = int(np.searchsorted(chances, _TAIL, side="right")) - 1
    high = int(np.searchsorted(chances, 1 - _TAIL))
    return (low, high) if low >= 0 and high < count else None
