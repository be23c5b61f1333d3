"""Statistics of listening tests, whose averages vary with listeners and with items.

A test that accounts for only one of them finds significant differences by chance far too often (H. H. Clark, The
language-as-fixed-effect fallacy, Journal of Verbal Learning and Verbal Behavior 12, 1973). Intervals of means come
from a bootstrap over both listeners and items (A. B. Owen, The pigeonhole bootstrap, Annals of Applied Statistics 1,
2007). Differences are tested by Student's t with the variance of both (A. C. Cameron, J. B. Gelbach, D. L. Miller,
Robust inference with multiway clustering, Journal of Business & Economic Statistics 29, 2011).
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from speechlab.evaluate._statistics import CONFIDENCE, MIN_PAIRS
from speechlab.metrics import compute_student_p, compute_student_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Standard errors of a one-sided test at the 5% level, and those for a power of 80%.
_ONE_SIDED, _POWER = NormalDist().inv_cdf(0.95), NormalDist().inv_cdf(0.8)
_MIN_POWER = 0.8
# Number of answers from which the normal distribution replaces the binomial distribution.
_MAX_EXACT_ANSWERS = 2_000


class TwoWayEstimate(NamedTuple):
    """A mean over listeners and items, with its interval, test and variance components.

    Numbers are NaN where fewer than two listeners or items allow none. ``by_listener``, ``by_item`` and ``by_answer``
    are variance components: for one listener and infinitely many items, the same of items, and the residual.
    """

    mean: float
    low: float
    high: float
    p: float
    deviation: float
    by_listener: float
    by_item: float
    by_answer: float
    listeners: int
    items: int


def estimate_two_way_mean(
    mean: float,
    shares: NDArray[np.float64],
    listeners: NDArray[np.int64],
    items: NDArray[np.int64],
) -> TwoWayEstimate:
    """Test a mean, or a difference of means, over random listeners and random items.

    The variance is the sum of those between listeners and between items, minus their common part, and at least each
    of the two. With n as the number of listeners or of items, whichever is lower, Student's t has n - 1 degrees of
    freedom. The p-value is at least 2^(1-n), the minimum of a sign test with n signs, so fewer than six listeners or
    items show no difference.

    ``shares`` has the contribution of each answer to the estimate, minus its expectation; their sum is 0. All arrays
    have the shape (answers,).
    """
    codes = [np.unique(numbers, return_inverse=True)[1] for numbers in (listeners, items)]
    counts = [int(numbers.max()) + 1 if len(numbers) else 0 for numbers in codes]
    fewest = min(counts)
    nan = math.nan
    if fewest < 2:
        return TwoWayEstimate(mean, nan, nan, nan, nan, nan, nan, nan, *counts)
    cells = codes[0] * counts[1] + codes[1]
    by_listener, by_item, by_cell = (
        _compute_clustered_variance(shares, numbers) for numbers in (*codes, cells)
    )
    variance = max(by_listener + by_item - by_cell, by_listener, by_item)
    components = _solve_variance_components(by_listener, by_item, by_cell, *counts)
    least = 2.0 ** (1 - fewest)
    if variance <= 1e-18:
        p = 1.0 if abs(mean) < 1e-12 else least
        return TwoWayEstimate(mean, nan, nan, p, 0.0, *components, *counts)
    deviation = math.sqrt(variance)
    p = max(compute_student_p(mean / deviation, fewest - 1), least)
    half = compute_student_quantile(1 - CONFIDENCE, fewest - 1) * deviation
    return TwoWayEstimate(mean, mean - half, mean + half, min(p, 1.0), deviation, *components, *counts)


def _compute_clustered_variance(shares: NDArray[np.float64], codes: NDArray[np.int64]) -> float:
    """Variance of a sum with dependent parts within each cluster."""
    sums = np.bincount(codes, shares)
    clusters = len(np.unique(codes))
    return float((sums**2).sum()) * clusters / max(clusters - 1, 1)


def _solve_variance_components(
    by_listener: float, by_item: float, by_cell: float, listeners: int, items: int
) -> tuple[float, float, float]:
    """Solve the three variances ``a/L + e/LI``, ``b/I + e/LI`` and ``(a + b + e)/LI`` for their components."""
    factor = 1 - 1 / listeners - 1 / items
    total = listeners * items * by_cell
    if factor <= 0:
        return 0.0, 0.0, total
    error = max((total - listeners * by_listener - items * by_item) / factor, 0.0)
    listener = max(listeners * by_listener - error / items, 0.0)
    return listener, max(items * by_item - error / listeners, 0.0), error


def bootstrap_two_way(
    scores: NDArray[np.float64],
    listeners: NDArray[np.int64],
    items: NDArray[np.int64],
    *,
    draws: int,
    seed: int,
) -> tuple[float, float]:
    """Return the interval of a mean. Listeners and items are drawn with replacement, independently of each other.

    The percentile interval is widened by the ratio of Student's distribution to the normal one, with n - 1 degrees of
    freedom, where n is the number of listeners or of items, whichever is lower (T. C. Hesterberg, What teachers
    should know about the bootstrap, The American Statistician 69, 2015). The residual variance is counted three times
    (Owen, 2007), so the interval is conservative.
    """
    _, rows = np.unique(listeners, return_inverse=True)
    _, columns = np.unique(items, return_inverse=True)
    shape = int(rows.max()) + 1, int(columns.max()) + 1
    if min(shape) < 2 or np.ptp(scores) == 0:
        return math.nan, math.nan
    sums, counts = np.zeros(shape), np.zeros(shape)
    np.add.at(sums, (rows, columns), scores)
    np.add.at(counts, (rows, columns), 1.0)
    random = np.random.default_rng(seed)
    drawn = [random.multinomial(n, np.full(n, 1 / n), size=draws).astype(np.float64) for n in shape]
    total = ((drawn[0] @ counts) * drawn[1]).sum(1)
    weighted = ((drawn[0] @ sums) * drawn[1]).sum(1)
    means = weighted[total > 0] / total[total > 0]
    fewest = min(shape)
    wider = compute_student_quantile(1 - CONFIDENCE, fewest - 1) * math.sqrt(fewest / (fewest - 1))
    tail = 0.5 * math.erfc(wider / math.sqrt(2))
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


def compute_detectable_difference(estimate: TwoWayEstimate) -> float:
    """Return the smallest difference that a test of this size finds with a power of 80% at 5%; NaN if none."""
    fewest = min(estimate.listeners, estimate.items)
    return (
        _compute_detectable_standard_errors(fewest) * estimate.deviation
        if fewest >= MIN_PAIRS and estimate.deviation
        else math.nan
    )


def _compute_detectable_standard_errors(fewest: int) -> float:
    """Return the difference, in standard errors, that a two-sided test at 5% finds with a power of 80%."""
    return compute_student_quantile(0.05, fewest - 1) + compute_student_quantile(
        2 * (1 - _MIN_POWER), fewest - 1
    )


def count_more_needed(estimate: TwoWayEstimate, smallest: float) -> tuple[float, float]:
    """Return the number of further listeners, or of further items, for a power of 80% at the 5% level."""
    if math.isnan(estimate.deviation):
        return math.nan, math.nan

    def count_more(variance: float, crossed: float, present: int, crossed_count: int) -> float:
        if crossed_count < MIN_PAIRS:
            return math.inf

        def compute_needed_count(count: int) -> float:
            room = (
                smallest / _compute_detectable_standard_errors(min(count, crossed_count))
            ) ** 2 - crossed / crossed_count
            return (variance + estimate.by_answer / crossed_count) / room if room > 0 else math.inf

        least = compute_needed_count(
            crossed_count
        )  # beyond the number of the others, further ones add no precision
        if math.isinf(least):
            return math.inf
        count = max(math.ceil(least), MIN_PAIRS)
        while count < crossed_count and count < compute_needed_count(count):
            count += 1
        return max(count - present, 0)

    listeners = count_more(estimate.by_listener, estimate.by_item, estimate.listeners, estimate.items)
    return listeners, count_more(estimate.by_item, estimate.by_listener, estimate.items, estimate.listeners)


def compute_binomial_p(right: int, n: int) -> float:
    """Return the exact one-sided p-value of at least this number of right answers if all are guessed."""
    return sum(math.comb(n, count) for count in range(right, n + 1)) / 2**n if n else math.nan


def compute_detectable_excess(answers: int) -> float:
    """Return about the share of right answers above one half that the exact test finds with a power of 80%."""
    return (_ONE_SIDED + _POWER) * 0.5 / math.sqrt(answers)


def count_answers_for_excess(above: float) -> int:
    """Return the number of answers for a power of 80% of the exact binomial test at 5%."""
    spread = _ONE_SIDED * 0.5 + _POWER * math.sqrt(0.25 - above**2)
    answers = max(math.ceil((spread / above) ** 2), 5)
    while answers < _MAX_EXACT_ANSWERS and _compute_binomial_power(answers, 0.5 + above) < _MIN_POWER:
        answers += 1
    return answers


def _compute_binomial_power(answers: int, share: float) -> float:
    """Return the power of the exact binomial test for a share of right answers."""
    right = next(
        count for count in range(answers // 2, answers + 2) if compute_binomial_p(count, answers) < 0.05
    )
    if share >= 1:
        return float(right <= answers)
    logs = math.log(share), math.log(1 - share)
    logs_of_ways = [
        math.lgamma(answers + 1) - math.lgamma(count + 1) - math.lgamma(answers - count + 1)
        for count in range(answers + 1)
    ]
    return sum(
        math.exp(logs_of_ways[count] + count * logs[0] + (answers - count) * logs[1])
        for count in range(right, answers + 1)
    )


def krippendorff_alpha(values: NDArray[np.float64], scale: str) -> float:
    """Return the agreement of raters: 1 for full agreement, 0 for chance level.

    Source: K. Krippendorff, Computing Krippendorff's alpha-reliability (2011). (The package krippendorff, which
    computes it, is under GPL-3.0-or-later.)

    Args:
        values: Ratings, shape (raters, units); NaN for missing ones.
        scale: ``"nominal"``, ``"ordinal"`` or ``"interval"``.
    """
    rated_cells = ~np.isnan(values)
    kinds, codes = np.unique(values[rated_cells], return_inverse=True)
    counts = np.zeros((values.shape[1], len(kinds)))
    np.add.at(counts, (np.nonzero(rated_cells)[1], codes), 1.0)
    counts = counts[counts.sum(1) > 1]
    if not len(counts):
        return math.nan
    rated = counts.sum(1)
    observed = (counts.T / (rated - 1)) @ counts - np.diag((counts / (rated - 1)[:, None]).sum(0))
    totals = observed.sum(1)
    if scale == "nominal":
        distance = 1.0 - np.eye(len(kinds))
    else:
        places = kinds if scale == "interval" else np.cumsum(totals) - totals / 2
        distance = (places[:, None] - places[None, :]) ** 2
    expected = (np.outer(totals, totals) * distance).sum() / (totals.sum() - 1)
    return float(1 - (observed * distance).sum() / expected) if expected > 0 else math.nan
