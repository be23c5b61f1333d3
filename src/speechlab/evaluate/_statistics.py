"""Statistics of studies: ratios of paired times, quantiles of times, and listening tests.

An average over listeners and items varies with both. A test that accounts for only one of them finds significant
differences by chance far too often (H. H. Clark, The language-as-fixed-effect fallacy, Journal of Verbal Learning and
Verbal Behavior 12, 1973). Intervals of means come from a bootstrap over both listeners and items (A. B. Owen, The
pigeonhole bootstrap, Annals of Applied Statistics 1, 2007). Differences are tested by Student's t with the variance
of both (A. C. Cameron, J. B. Gelbach, D. L. Miller, Robust inference with multiway clustering, Journal of Business &
Economic Statistics 29, 2011).
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_STEPS = 4_000
FEWEST = 6
"""Pairs, recordings, listeners or items below which nothing is shown: an exact test has 2 ** (1 - n) at best."""


class PairedRatio(NamedTuple):
    """The ratio of paired measures.

    All but the ratio are NaN for fewer than six pairs.
    """

    ratio: float
    low: float
    high: float
    p: float


def paired_ratio(now: NDArray[np.float64], earlier: NDArray[np.float64], level: float) -> PairedRatio:
    """Compare positive measures in pairs, by Student's t of the logarithms of their ratios."""
    logs = np.log(now / earlier)
    count, mean = len(logs), float(logs.mean()) if len(logs) else math.nan
    if count < FEWEST:
        return PairedRatio(math.exp(mean), math.nan, math.nan, math.nan)
    deviation = float(logs.std(ddof=1)) / math.sqrt(count)
    t = mean / deviation if deviation else math.copysign(math.inf, mean) if mean else 0.0
    half = student_quantile(1 - level, count - 1) * deviation
    bounds = math.exp(mean - half), math.exp(mean + half)
    return PairedRatio(math.exp(mean), *bounds, student_p(t, count - 1))


def student_p(t: float, freedom: float) -> float:
    """Return the two-sided p-value of Student's t: the integral of both tails of its density from ``abs(t)`` on.

    With t = sqrt(freedom) tan(angle) the density becomes cos(angle) ** (freedom - 1), up to a factor (Abramowitz and
    Stegun 1964, 26.7). The midpoint rule integrates it to eight digits.
    """
    place = math.atan(abs(t) / math.sqrt(freedom))
    return _tail(place, freedom) / _tail(0.0, freedom)


@lru_cache
def _tail(start: float, freedom: float) -> float:
    """The integral of the density from an angle on."""
    steps = (np.arange(_STEPS) + 0.5) / _STEPS
    width = math.pi / 2 - start
    return float((np.cos(start + width * steps) ** (freedom - 1)).mean()) * width


@cache
def student_quantile(p: float, freedom: float) -> float:
    """Return the t with the two-sided p-value ``p``."""
    low, high = 0.0, 1.0
    while student_p(high, freedom) > p:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if student_p(middle, freedom) > p else (low, middle)
    return (low + high) / 2


QUANTILES = {50: 0.50, 95: 0.95, 99: 0.99}
"""The quantiles of a summary, by their names."""
_TAIL = 0.025


def quantile(
    values: NDArray[np.float64], share: float, independent: int | None = None
) -> tuple[float, float, float] | None:
    """Return a quantile and its 95 % interval, or None of too few values.

    The interval goes from one value to another, so that it needs no assumption on the distribution. There are enough
    values if it has two ends: 6 for the median, 72 for 0.95, 368 for 0.99. Source: H. A. David, H. N. Nagaraja, Order
    Statistics (2003), section 7.1.
    """
    count = len(values) if independent is None else min(independent, len(values))
    ranks = _ranks(count, share)
    if ranks is None:
        return None
    ordered, each = np.sort(values), len(values) / count
    low, high = ordered[math.floor(ranks[0] * each)], ordered[math.ceil((ranks[1] + 1) * each) - 1]
    return float(np.quantile(ordered, share)), float(low), float(high)


@lru_cache
def _ranks(count: int, share: float) -> tuple[int, int] | None:
    """The positions of both ends in ``count`` ordered values: at most 2.5 % of samples miss on either side."""
    below = np.arange(count + 1)
    logs_of_ways = [math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) for k in below]
    chances = np.cumsum(
        np.exp(np.array(logs_of_ways) + below * math.log(share) + (count - below) * math.log1p(-share))
    )
    low = int(np.searchsorted(chances, _TAIL, side="right")) - 1
    high = int(np.searchsorted(chances, 1 - _TAIL))
    return (low, high) if low >= 0 and high < count else None


_ONE_SIDED, _POWER = NormalDist().inv_cdf(0.95), NormalDist().inv_cdf(0.8)
"""Standard errors of a one-sided test at the 5 % level, and those for a power of 80 %."""
_FOUND = 0.8
_EXACT = 2_000
"""Number of answers from which the normal distribution replaces the binomial distribution."""


class TwoWay(NamedTuple):
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


def two_way(
    mean: float,
    shares: NDArray[np.float64],
    listeners: NDArray[np.int64],
    items: NDArray[np.int64],
    level: float,
) -> TwoWay:
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
        return TwoWay(mean, nan, nan, nan, nan, nan, nan, nan, *counts)
    cells = codes[0] * counts[1] + codes[1]
    by_listener, by_item, by_cell = (_clustered(shares, numbers) for numbers in (*codes, cells))
    variance = max(by_listener + by_item - by_cell, by_listener, by_item)
    components = _components(by_listener, by_item, by_cell, *counts)
    least = 2.0 ** (1 - fewest)
    if variance <= 1e-18:
        p = 1.0 if abs(mean) < 1e-12 else least
        return TwoWay(mean, nan, nan, p, 0.0, *components, *counts)
    deviation = math.sqrt(variance)
    p = max(student_p(mean / deviation, fewest - 1), least)
    half = student_quantile(1 - level, fewest - 1) * deviation
    return TwoWay(mean, mean - half, mean + half, min(p, 1.0), deviation, *components, *counts)


def _clustered(shares: NDArray[np.float64], codes: NDArray[np.int64]) -> float:
    """Variance of a sum with dependent parts within each cluster."""
    sums = np.bincount(codes, shares)
    clusters = len(np.unique(codes))
    return float((sums**2).sum()) * clusters / max(clusters - 1, 1)


def _components(
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


def two_way_bootstrap(
    scores: NDArray[np.float64],
    listeners: NDArray[np.int64],
    items: NDArray[np.int64],
    *,
    level: float,
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
    wider = student_quantile(1 - level, fewest - 1) * math.sqrt(fewest / (fewest - 1))
    tail = 0.5 * math.erfc(wider / math.sqrt(2))
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


def detectable(estimate: TwoWay) -> float:
    """Return the smallest difference that a test of this size finds with a power of 80 % at 5 %; NaN if none."""
    fewest = min(estimate.listeners, estimate.items)
    return _width(fewest) * estimate.deviation if fewest >= FEWEST and estimate.deviation else math.nan


def _width(fewest: int) -> float:
    """Return the difference, in standard errors, that a two-sided test at 5 % finds with a power of 80 %."""
    return student_quantile(0.05, fewest - 1) + student_quantile(2 * (1 - _FOUND), fewest - 1)


def more_needed(estimate: TwoWay, smallest: float) -> tuple[float, float]:
    """Return the number of further listeners, or of further items, for a power of 80 % at the 5 % level."""
    if math.isnan(estimate.deviation):
        return math.nan, math.nan

    def more(variance: float, crossed: float, present: int, crossed_count: int) -> float:
        if crossed_count < FEWEST:
            return math.inf

        def needed(count: int) -> float:
            room = (smallest / _width(min(count, crossed_count))) ** 2 - crossed / crossed_count
            return (variance + estimate.by_answer / crossed_count) / room if room > 0 else math.inf

        least = needed(crossed_count)  # beyond the number of the others, further ones add no precision
        if math.isinf(least):
            return math.inf
        count = max(math.ceil(least), FEWEST)
        while count < crossed_count and count < needed(count):
            count += 1
        return max(count - present, 0)

    listeners = more(estimate.by_listener, estimate.by_item, estimate.listeners, estimate.items)
    return listeners, more(estimate.by_item, estimate.by_listener, estimate.items, estimate.listeners)


def binomial_p(right: int, n: int) -> float:
    """Return the exact one-sided p-value of at least this number of right answers if all are guessed."""
    return sum(math.comb(n, count) for count in range(right, n + 1)) / 2**n if n else math.nan


def guesses_told_apart(answers: int) -> float:
    """Return about the share of right answers above one half that the exact test finds with a power of 80 %."""
    return (_ONE_SIDED + _POWER) * 0.5 / math.sqrt(answers)


def answers_needed(above: float) -> int:
    """Return the number of answers for a power of 80 % of the exact binomial test at 5 %."""
    spread = _ONE_SIDED * 0.5 + _POWER * math.sqrt(0.25 - above**2)
    answers = max(math.ceil((spread / above) ** 2), 5)
    while answers < _EXACT and _power(answers, 0.5 + above) < _FOUND:
        answers += 1
    return answers


def _power(answers: int, share: float) -> float:
    """The power of the exact binomial test for a share of right answers."""
    right = next(count for count in range(answers // 2, answers + 2) if binomial_p(count, answers) < 0.05)
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
    distance = _distances(kinds, totals, scale)
    expected = (np.outer(totals, totals) * distance).sum() / (totals.sum() - 1)
    return float(1 - (observed * distance).sum() / expected) if expected > 0 else math.nan


def _distances(kinds: NDArray[np.float64], totals: NDArray[np.float64], scale: str) -> NDArray[np.float64]:
    if scale == "nominal":
        return 1.0 - np.eye(len(kinds))
    places = kinds if scale == "interval" else np.cumsum(totals) - totals / 2
    return np.asarray((places[:, None] - places[None, :]) ** 2, dtype=np.float64)
