"""Quantiles of times, with intervals of order statistics."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

QUANTILES = {50: 0.50, 95: 0.95, 99: 0.99}
"""The quantiles of a summary, by their names."""
_TAIL = 0.025


def quantile(
    values: NDArray[np.float64], share: float, turns: int | None = None
) -> tuple[float, float, float] | None:
    """Return a quantile and its 95 % interval, or None of too few values.

    The interval goes from one value to another, so that it needs no assumption on the distribution. There are enough
    values if it has two ends: 6 for the median, 72 for 0.95, 368 for 0.99. Source: H. A. David, H. N. Nagaraja, Order
    Statistics (2003), section 7.1.

    Args:
        values: The values, in any order.
        share: The part of all values that is below, in (0, 1).
        turns: How many of them are independent: values of calls that began together count as one. None for all.
    """
    many = len(values) if turns is None else min(turns, len(values))
    ranks = _ranks(many, share)
    if ranks is None:
        return None
    ordered, each = np.sort(values), len(values) / many
    low, high = ordered[math.floor(ranks[0] * each)], ordered[math.ceil((ranks[1] + 1) * each) - 1]
    return float(np.quantile(ordered, share)), float(low), float(high)


@lru_cache
def _ranks(count: int, share: float) -> tuple[int, int] | None:
    """The positions of both ends in ``count`` ordered values: at most 2.5 % of samples miss on either side."""
    below = np.arange(count + 1)
    ways = [math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) for k in below]
    chances = np.cumsum(
        np.exp(np.array(ways) + below * math.log(share) + (count - below) * math.log1p(-share))
    )
    low = int(np.searchsorted(chances, _TAIL, side="right")) - 1
    high = int(np.searchsorted(chances, 1 - _TAIL))
    return (low, high) if low >= 0 and high < count else None
