"""Bootstrap intervals for ratios of sums, such as errors over reference length.

Utterances are drawn with replacement; the rate of each draw is the sum of its errors over the sum of its lengths.
Utterances with the same errors and length are interchangeable, so a draw of n utterances is one multinomial draw
over the distinct pairs. That is exact, and many times faster than drawing indices.

Source: M. Bisani, H. Ney, Bootstrap estimates for confidence intervals in ASR performance evaluation (ICASSP 2004);
blocks: Z. Liu, F. Peng, Statistical testing on ASR performance via blockwise bootstrap (Interspeech 2020).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from speechlab._arguments import is_missing
from speechlab.errors import InvalidRequestError
from speechlab.metrics._arguments import check_draws, check_level, check_seed

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CELLS_AT_ONCE = 4_000_000  # of draws x distinct pairs: 32 MB of 64-bit counts


class Interval(NamedTuple):
    """A confidence interval.

    Attributes:
        low: Lower end.
        high: Upper end.
    """

    low: float
    high: float


def ratio_interval(
    errors: NDArray[np.int64],
    lengths: NDArray[np.int64],
    *,
    level: float,
    n: int,
    seed: int,
) -> Interval:
    """Percentile bootstrap interval of ``sum(errors) / sum(lengths)``.

    Args:
        errors: Errors of each utterance or block.
        lengths: Reference length of each, in tokens.
        level: Confidence level, between 0 and 1.
        n: How many draws.
        seed: The same seed gives the same interval, whatever the order of the utterances.

    Returns:
        The interval; both ends NaN if there are fewer than two utterances, of which nothing can be said.
    """
    check_level(level)
    check_draws(n)
    check_seed(seed)
    if len(errors) < 2:
        return Interval(math.nan, math.nan)
    sums = draw_sums(np.column_stack([errors, lengths]), n=n, seed=seed)
    return percentiles(sums[:, 0] / np.maximum(sums[:, 1], 1), level)


def percentiles(values: NDArray[np.float64], level: float) -> Interval:
    """The middle part of a distribution that holds ``level`` of it."""
    tail = (1 - level) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return Interval(float(low), float(high))


def draw_sums(rows: NDArray[np.int64], *, n: int, seed: int) -> NDArray[np.int64]:
    """Sums of the columns over rows that are drawn with replacement, as many as there are, ``n`` times."""
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    total = int(counts.sum())
    random = np.random.default_rng(seed)
    step = max(1, _CELLS_AT_ONCE // len(distinct))
    sums = np.empty((n, rows.shape[1]), dtype=np.int64)
    for start in range(0, n, step):
        size = min(step, n - start)
        sums[start : start + size] = random.multinomial(total, counts / total, size=size) @ distinct
    return sums


def sum_blocks(groups: Iterable[Any], *columns: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Add up columns by block (speaker, file), in order of first appearance.

    Raises:
        InvalidRequestError: There is not one block name for each utterance, or one is missing.
    """
    if isinstance(groups, str) or not isinstance(groups, Iterable):
        message = f"groups is {groups!r:.60}; give a list with the name of a block for each utterance"
        raise InvalidRequestError(message, parameter="groups")
    names = list(groups)
    if columns and len(names) != len(columns[0]):
        message = f"groups has {len(names)} entries for {len(columns[0])} utterances; give one for each"
        raise InvalidRequestError(message, parameter="groups")
    numbers: dict[Any, int] = {}
    for position, name in enumerate(names):
        # Two missing names may be two blocks or one: that would be a guess, and the interval depends on it.
        if is_missing(name) or not isinstance(name, Hashable):
            message = (
                f"groups[{position}] is {name!r:.60}, which names no block; name the block of each utterance, or "
                "leave out those without"
            )
            raise InvalidRequestError(message, parameter="groups")
    index = np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)
    sums = []
    for column in columns:
        total = np.zeros(len(numbers), dtype=np.int64)
        np.add.at(total, index, column)
        sums.append(total)
    return sums
