"""A test of whether the newest of many runs over the same rows has changed, however often somebody looks.

If nothing changed, the values of a row in all runs so far are exchangeable. Each run therefore gets a p-value: the
share of tables with as high a sum, if each block's newest value changes places with one of its values so far. These
p-values are independent and uniform, so the products of bets against them are a martingale. It starts at 1 and
exceeds ``1 / alpha`` with a probability of at most ``alpha``, at any time (Ville's inequality).

Source: V. Vovk, A. Gammerman, G. Shafer, Algorithmic Learning in a Random World (2005), chapters 7 and 8 (conformal
test martingales); V. Vovk, R. Wang, E-values: calibration, combination and applications (2021), for the bet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._arguments import build_argument_error, is_whole_number
from speechlab._pandas import pd
from speechlab.errors import InvalidRequestError
from speechlab.metrics._inputs import check_number

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


_DRAWS = 1_999


def sequential_test(
    runs: ArrayLike, *, groups: Sequence[Any] | None = None, alpha: float = 0.05, seed: int = 0
) -> pd.DataFrame:
    """Test after each run whether values have risen, with one probability of a false alarm for all runs together.

    Args:
        runs: Values of each run in order, shape (runs, rows), such as errors or seconds; NaN where a row has none.
        groups: Name of the block of each row, shape (rows,), for rows that vary together, such as those of one
            speaker. None takes each row for itself. Where whole runs vary, as times do on a busy machine, give one
            number for each run: shape (runs, 1).
        alpha: Probability of an alarm in any number of runs if nothing changed, from 0.0001 to 0.5.
        seed: Seed of the draws. Earlier runs keep their results when runs are added.

    Returns:
        One row for each run: ``n`` (rows with a value), ``mean`` (their mean; NaN without any), ``p`` (NaN for the
        first run), ``evidence`` (1 means none; ``1 / alpha`` raises the alarm) and ``changed`` (True from the first
        alarm on).

    Raises:
        InvalidRequestError: ``runs`` is not a table of numbers, ``groups`` has another length, or ``alpha`` is out
            of range.

    Example:
        >>> runs = [[0, 1, 0, 2, 0, 0, 1, 0]] * 5 + [[1, 3, 2, 4, 2, 1, 3, 2]] * 3
        >>> sequential_test(runs)["changed"].tolist()
        [False, False, False, False, False, False, True, True]
    """
    values = _to_run_table(runs)
    check_number(alpha, "alpha", 0.0001, 0.5, "the probability of a false alarm")
    if not is_whole_number(seed) or seed < 0:
        raise build_argument_error("seed", seed, "a whole number of at least 0")
    blocks = _number_blocks(groups, values.shape[1])
    p = np.array([_compute_last_p_value(values[: run + 1], blocks, seed) for run in range(len(values))])
    present = ~np.isnan(values)
    counts = present.sum(1)
    sums = np.where(present, values, 0.0).sum(1)
    evidence = _compute_martingale(p)
    return pd.DataFrame(
        {
            "n": counts,
            "mean": np.divide(sums, counts, out=np.full(len(values), math.nan), where=counts > 0),
            "p": p,
            "evidence": evidence,
            "changed": np.logical_or.accumulate(evidence >= 1 / alpha),
        }
    )


def _to_run_table(runs: ArrayLike) -> NDArray[np.float64]:
    try:
        values = np.asarray(runs, np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 2 or np.isinf(values).any():
        message = "runs is not a table of numbers; give one row for each run, and one column for each item"
        raise InvalidRequestError(message, parameter="runs")
    return values


def _number_blocks(groups: Sequence[Any] | None, rows: int) -> NDArray[np.intp]:
    """Return the number of the block of each row."""
    if groups is None:
        return np.arange(rows)
    if len(groups) != rows:
        message = f"there are {len(groups)} names in groups and {rows} rows; give one name for each row"
        raise InvalidRequestError(message, parameter="groups")
    return np.asarray(pd.factorize(np.asarray(groups, dtype=object), use_na_sentinel=False)[0])


def _compute_last_p_value(values: NDArray[np.float64], blocks: NDArray[np.intp], seed: int) -> float:
    """Return the p-value of the last run against those before it, from 0 to 1; NaN without any to compare.

    Ties are broken at random, so that the p-value is uniform if nothing changed.
    """
    newest = len(values) - 1
    rows = ~np.isnan(values[newest])
    if not newest or not rows.any():
        return math.nan
    together = np.argsort(blocks[rows], kind="stable")
    _, starts = np.unique(blocks[rows][together], return_index=True)
    # NaN where a run lacks a row of the block
    sums = np.add.reduceat(values[:, rows][:, together], starts, axis=1)
    order = np.argsort(np.isnan(sums), axis=0, kind="stable")  # runs with the whole block first
    complete = (~np.isnan(sums)).sum(0)
    if (complete == 1).all():
        return math.nan
    random = np.random.default_rng([seed, newest])
    drawn = np.zeros(_DRAWS)
    for block, runs in enumerate(complete.tolist()):
        block_sums = sums[order[:runs, block], block]
        constant = bool((block_sums == block_sums[0]).all())
        drawn += block_sums[0] if constant else block_sums[random.integers(runs, size=_DRAWS)]
    observed = float(sums[newest].sum())
    slack = 1e-9 * max(1.0, abs(observed))
    higher = int((drawn > observed + slack).sum())
    equal = int((np.abs(drawn - observed) <= slack).sum()) + 1
    return (higher + random.random() * equal) / (_DRAWS + 1)


def _compute_martingale(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """The martingale after each run: stakes of 1 / (j (j + 1)) bet that a change came with run j, in two ways."""
    evidence = np.ones(len(p))
    capital, ranked = np.empty(0), np.empty(0)  # what stakes on each change so far have become
    for run, value in enumerate(p):
        if not math.isnan(value):
            begun = len(capital) + 1
            half = 0.5 / (begun * (begun + 1))
            capital = np.append(capital, half) * _compute_payment(float(value))
            share = np.arange(begun, 0, -1) / (begun + 1)  # of runs since each change, among all
            ranked = np.append(ranked, half) * _compute_rank_payment(float(value), share)
        evidence[run] = (
            capital.sum() + ranked.sum() + 1 / (len(capital) + 1)
        )  # the last: changes that may yet come
    return evidence


def _compute_payment(p: float) -> float:
    """Return the payment for a p-value: the mean of e * p ** (e - 1) over e from 0 to 1. Its mean over p is 1."""
    log = math.log(max(p, 1e-12))
    return 0.5 if log > -1e-4 else (1 - p + p * log) / (p * log * log)


def _compute_rank_payment(p: float, share: NDArray[np.float64]) -> NDArray[np.float64]:
    """The payment of a bet that a run is among the highest, of which there are as many as runs since the change."""
    wider = np.minimum(1, 2 * share)
    bets: NDArray[np.float64] = 0.6 * (p <= share) / share + 0.3 * (p <= wider) / wider + 0.1
    return bets
