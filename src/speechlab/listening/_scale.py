"""A scale of systems from answers to pairs of them, after Bradley and Terry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._pandas import pd

if TYPE_CHECKING:
    from numpy.typing import NDArray

_STEPS = 10_000
_EXACT = 1e-10
# Probability of the intervals.
_LEVEL = 0.95
# Answers each way that are added to each pair in the draws of the bootstrap, where a system may always win.
_PRIOR = 0.5


def estimate_strengths(wins: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the strengths of systems by maximum likelihood (Bradley and Terry, 1952; iteration of Hunter, 2004).

    Args:
        wins: How often the first system of a pair was preferred to the second, shape (..., systems, systems).

    Returns:
        Natural log-odds with a mean of 0, shape (..., systems): two systems differ by the log-odds that one
        is preferred to the other. NaN where the answers do not determine them: where some systems win, or lose, all
        comparisons with the others.
    """
    count = wins.shape[-1]
    compared = wins + np.swapaxes(wins, -1, -2)
    won = wins.sum(axis=-1)
    reached = np.eye(count) + (wins > 0)
    for _ in range(count.bit_length()):  # whether each system leads to each other one by wins
        reached = np.minimum(reached @ reached, 1.0)
    determined = np.asarray((reached > 0).all(axis=(-1, -2)))
    scale = np.ones(won.shape)
    for _ in range(_STEPS):
        with np.errstate(divide="ignore", invalid="ignore"):
            last, scale = scale, won / (compared / (scale[..., :, None] + scale[..., None, :])).sum(axis=-1)
            scale = scale / np.exp(np.log(scale).mean(axis=-1, keepdims=True))
        if not np.abs(np.log(scale[determined]) - np.log(last[determined])).max(initial=0.0) > _EXACT:
            break
    return np.where(determined[..., None], np.log(np.where(determined[..., None], scale, 1.0)), np.nan)


def estimate_pair_scale(answers: pd.DataFrame, *, draws: int, seed: int = 0) -> pd.DataFrame:
    """Return a scale of the systems of an A/B test, the strongest first, with intervals over listeners and items.

    The bootstrap draws listeners and items (Owen, 2007). An answer without a preference is half an answer for each.
    Columns: ``system``, ``strength`` (log-odds, mean 0; NaN if the answers do not determine it), ``low`` and ``high``
    (95%), ``preferred`` (probability to be preferred to a system of strength 0) and ``answers``.
    """
    names = list(dict.fromkeys(chain(answers["system"].astype(str), answers["other"].astype(str))))
    place = {name: number for number, name in enumerate(names)}
    first, second = (answers[side].astype(str).map(place).to_numpy() for side in ("system", "other"))
    share = (answers["score"].to_numpy(np.float64) + 1) / 2
    units = [pd.factorize(answers[name])[0] for name in ("listener", "item")]

    def count_wins(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """How often each system was preferred to each other one, shape (systems, systems)."""
        preferred = np.zeros((len(names), len(names)))
        np.add.at(preferred, (first, second), weights * share)
        np.add.at(preferred, (second, first), weights * (1 - share))
        return preferred

    sums = estimate_strengths(count_wins(np.ones(len(share)))[None])[0]
    low, high = np.full((2, len(names)), np.nan)
    if len(answers):
        drawn = np.concatenate(list(_sample_strengths(count_wins, units, draws, seed)))
        estimates = drawn[~np.isnan(drawn).any(axis=1)]
        if len(estimates):
            low, high = np.quantile(estimates, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], axis=0)
    rows = {
        "system": names,
        "strength": sums,
        "low": np.fmin(low, sums),
        "high": np.fmax(high, sums),
        "preferred": 1 / (1 + np.exp(-sums)),
        "answers": np.bincount(np.concatenate([first, second]), minlength=len(names)),
    }
    return pd.DataFrame(rows).sort_values("strength", ascending=False, kind="stable", ignore_index=True)


def _sample_strengths(
    wins: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    units: list[NDArray[Any]],
    draws: int,
    seed: int,
) -> Iterator[NDArray[np.float64]]:
    """Strengths of draws of listeners and items, which multiply their weights."""
    random = np.random.default_rng(seed)
    sizes = [int(unit.max()) + 1 for unit in units]
    unweighted = np.ones(len(units[0]))
    prior = _PRIOR * (wins(unweighted) > 0)
    prior = np.maximum(prior, prior.T)
    for start in range(0, draws, 250):
        tables = []
        for _ in range(start, min(start + 250, draws)):
            weights = unweighted.copy()
            for unit, size in zip(units, sizes, strict=True):
                weights *= random.multinomial(size, np.full(size, 1 / size))[unit]
            tables.append(wins(weights) + prior)
        yield estimate_strengths(np.stack(tables))
