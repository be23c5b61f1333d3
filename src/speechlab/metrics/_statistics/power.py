"""The number of utterances with which a paired test finds a difference of the observed size.

The number comes from the normal approximation of the paired test,

    n = ((z(1 - alpha / 2) + z(power)) * sd / mean) ** 2,

with the mean and the standard deviation of the differences between two systems in each utterance. It is raised if
necessary, so that the systems differ in enough utterances for the exact test to find a difference: with *m* such
utterances, its p-value is at least 2 ** (1 - m).

Source: J. M. Lachin, Introduction to sample size determination and power analysis for clinical trials, Controlled
Clinical Trials 2 (1981). A test checks the number with the exact test.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def utterances_needed(differences: NDArray[np.int64], alpha: float, power: float) -> int | None:
    """The number of utterances with which the test finds a difference of the observed size, at this power."""
    if len(differences) < 2 or not differences.sum():
        return None
    normal = NormalDist()
    deviation = float(np.std(differences, ddof=1))
    effect = abs(float(differences.mean()))
    tested = ((normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)) * deviation / effect) ** 2
    share = float((differences != 0).mean())
    least = (math.floor(1 - math.log2(alpha)) + 1) / share
    return math.ceil(max(tested, least))
