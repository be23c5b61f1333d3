"""Random samples of a table, stratified and reproducible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from speechlab._arguments import build_argument_error, is_whole_number, require_columns, to_column_names
from speechlab._require import import_lazily
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
else:
    np = import_lazily("numpy")


def sample(
    frame: pd.DataFrame, n: int, *, by: str | Sequence[str] = (), equal: bool = False, seed: int = 0
) -> pd.DataFrame:
    """Draw rows at random, without replacement.

    Args:
        frame: The table.
        n: Number of rows to draw.
        by: Column or columns whose values define strata, such as ``["language", "speaker"]``. The sample has a
            proportional number of rows of each stratum (largest remainders; among equal remainders, larger strata
            first).
        equal: Draw the same number of rows from each stratum instead. A smaller stratum is drawn completely, and the
            others fill the rest.
        seed: Seed of the draw. The same seed gives the same rows.

    Returns:
        The rows with their labels, in the order of the table.

    Raises:
        InvalidRequestError: The table has fewer rows, a column does not exist, or the seed is not a whole number from
            0.

    Example:
        >>> table = pd.DataFrame({"text": list("abcdef"), "speaker": ["anna"] * 4 + ["ben"] * 2})
        >>> sample(table, 3, by="speaker", seed=1)["speaker"].tolist()
        ['anna', 'anna', 'ben']
    """
    if not is_whole_number(n) or n < 0:
        raise build_argument_error("n", n, "a whole number of rows")
    if not is_whole_number(seed) or seed < 0:
        raise build_argument_error("seed", seed, "a whole number from 0")
    names = to_column_names(by, "by")
    frame = require_columns(frame, *names)
    if n > len(frame):
        message = f"{n:,} rows cannot be drawn of {len(frame):,}; draw {len(frame):,} or fewer"
        raise InvalidRequestError(message, parameter="n", example=len(frame))
    chance = np.random.default_rng(seed)
    if names:
        numbers = frame.groupby(names, dropna=False, observed=True, sort=True).ngroup().to_numpy()
        strata = [np.flatnonzero(numbers == number) for number in range(int(numbers.max(initial=-1)) + 1)]
    else:
        strata = [np.arange(len(frame))]
    sizes = np.array([len(stratum) for stratum in strata], dtype=np.int64)
    shares = _compute_equal_shares(sizes, int(n)) if equal else _compute_proportional_shares(sizes, int(n))
    # every stratum is shuffled, also without a draw, so that the draws of the others do not depend on it
    drawn = [chance.permutation(stratum)[:share] for stratum, share in zip(strata, shares, strict=True)]
    return frame.iloc[np.sort(np.concatenate(drawn))] if drawn else frame.iloc[:0]


def _compute_proportional_shares(sizes: np.ndarray, n: int) -> list[int]:
    total = int(sizes.sum())
    if not total:
        return [0] * len(sizes)
    exact = sizes * n
    shares = exact // total
    order = np.lexsort((-sizes, -(exact % total)))
    shares[order[: n - int(shares.sum())]] += 1
    return [int(share) for share in shares]


def _compute_equal_shares(sizes: np.ndarray, n: int) -> list[int]:
    shares = np.zeros(len(sizes), dtype=np.int64)
    while (remaining := n - int(shares.sum())) > 0:
        open_strata = np.flatnonzero(shares < sizes)
        each = max(1, remaining // len(open_strata))
        for stratum in open_strata:
            shares[stratum] += min(each, int(sizes[stratum] - shares[stratum]), n - int(shares.sum()))
    return [int(share) for share in shares]
