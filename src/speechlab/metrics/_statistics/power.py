"""The number of utterances with which a paired test finds a difference of the observed size.

The number is that of the paired test by the normal distribution,

    n = ((z(1 - alpha / 2) + z(power)) * sd / mean) ** 2,

of the differences between two systems in each utterance; but at least as many as hold enough utterances in which the
systems differ for the exact test to show anything, since *m* of them have no p-value below 2 ** (1 - m).

Source: J. M. Lachin, Introduction to sample size determination and power analysis for clinical trials, Controlled
Clinical Trials 2 (1981). The tests try it on the exact test.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def utterances_needed(differences: NDArray[np.int64], alpha: float, power: float) -> int | None:
    """Utterances in all that show such a difference, with some chance.

    Args:
        differences: Of each utterance, the errors of one system minus those of the other.
        alpha: Level of the test, such as 0.05 over the number of comparisons.
        power: How likely it is to be found, as a fraction.

    Returns:
        The number; None if there is no difference to find, or fewer than two utterances to go by.
    """
    if len(differences) < 2 or not differences.sum():
        return None
    normal = NormalDist()
    deviation = float(np.std(differences, ddof=1))
    effect = abs(float(differences.mean()))
    tested = ((normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)) * deviation / effect) ** 2
    share = float((differences != 0).mean())
    shown = (math.floor(1 - math.log2(alpha)) + 1) / share
    return math.ceil(max(tested, shown))
