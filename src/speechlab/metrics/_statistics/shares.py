"""The interval of a share whose cases come in blocks, and the bound of a share in a finite number of cases.

Sources: E. B. Wilson, Probable inference, the law of succession, and statistical inference (1927), with the number of
cases that blocks count as (L. Kish, Survey sampling, 1965): cases of one block are alike, and say less than others;
the bound inverts the hypergeometric test (T. Wright, Exact confidence bounds when sampling from small finite
universes, 1991).
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

from speechlab.metrics._statistics.bootstrap import Interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def compute_share_interval(hits: NDArray[np.int64], cases: NDArray[np.int64], level: float) -> Interval:
    """Return the interval of a share, from the hits and cases of each block; NaN without cases."""
    count = int(cases.sum())
    if not count:
        return Interval(math.nan, math.nan)
    share = float(hits.sum()) / count
    alone = count * share * (1 - share)  # the variance of the hits if each case were a block
    excess = float(((hits - share * cases) ** 2).sum()) / alone if alone else 1.0
    effective = count / max(excess, 1.0)
    z = NormalDist().inv_cdf((1 + level) / 2)
    spread = z * z / effective
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / effective + spread / (4 * effective)) / (1 + spread)
    return Interval(max(middle - half, 0.0), min(middle + half, 1.0))


def compute_count_bound(cases: int, sample: int, hits: int, level: float = 0.95) -> int:
    """Return the most hits among all cases that a sample without replacement leaves possible, by an exact test."""
    draws = math.comb(cases, sample)

    def is_possible(total: int) -> bool:
        ways = (math.comb(total, hit) * math.comb(cases - total, sample - hit) for hit in range(hits + 1))
        return sum(ways) / draws > 1 - level

    low, high = hits, cases - (sample - hits)  # the first is possible, and what lies above the last is not
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if is_possible(middle) else (low, middle - 1)
    return low
