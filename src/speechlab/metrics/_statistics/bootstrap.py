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
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from speechlab._arguments import is_missing, is_number, is_whole_number
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    import pandas as pd
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


@dataclass(frozen=True)
class Bootstrap:
    """A way of drawing intervals; what makes no sense is refused when it is made.

    Attributes:
        level: Confidence level, between 0 and 1.
        n: How many draws.
        seed: The same seed gives the same interval, whatever the order of the utterances.
        groups: Names of blocks (speakers, files) that are drawn as wholes, one for each utterance, or the column of a
            table that has them; None to draw utterances.
    """

    level: float
    n: int
    seed: int
    groups: Any = None

    def __post_init__(self) -> None:
        if not is_number(self.level) or not 0 < float(self.level) < 1:
            message = f"a confidence level lies between 0 and 1, not at {self.level!r:.60}; use 0.95 for 95 %"
            raise InvalidRequestError(message, parameter="level")
        if not is_whole_number(self.n) or self.n < 1:
            message = (
                f"a bootstrap needs draws, a whole number of them, not n={self.n!r:.60}; use 1000 or more"
            )
            raise InvalidRequestError(message, parameter="n")
        if not is_whole_number(self.seed) or self.seed < 0:
            message = (
                f"seed={self.seed!r:.60} is no seed; give a whole number from 0 on, so that the same draws come "
                "again"
            )
            raise InvalidRequestError(message, parameter="seed")

    @property
    def columns(self) -> list[Any]:
        """Columns that a table must have for its blocks."""
        return [] if self.groups is None else [self.groups]

    def within(self, frame: pd.DataFrame, column: str | None = None) -> Bootstrap:
        """The same for the rows of a table, whose column (None: the one that was given) names their blocks."""
        if self.groups is None:
            return self
        return replace(self, groups=frame[self.groups if column is None else column].tolist())

    def blocks(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Figures of utterances, one row each, added up by block.

        Raises:
            InvalidRequestError: There is not one block name for each utterance, or one is missing.
        """
        return rows if self.groups is None else _sum_blocks(self.groups, rows)

    def sums(self, blocks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sums of the columns over blocks that are drawn with replacement, as many as there are, one row a draw.

        There are no draws of fewer than two blocks, of which nothing can be said.
        """
        if len(blocks) < 2:
            return blocks[:0]
        distinct, counts = np.unique(blocks, axis=0, return_counts=True)
        total = int(counts.sum())
        random = np.random.default_rng(self.seed)
        step = max(1, _CELLS_AT_ONCE // len(distinct))
        sums = np.empty((self.n, blocks.shape[1]), dtype=np.int64)
        for start in range(0, self.n, step):
            size = min(step, self.n - start)
            sums[start : start + size] = random.multinomial(total, counts / total, size=size) @ distinct
        return sums

    def interval(self, draws: NDArray[np.float64]) -> Interval:
        """The middle part of a figure's draws that holds ``level`` of them; both ends NaN if there are none."""
        if not len(draws):
            return Interval(math.nan, math.nan)
        tail = (1 - self.level) / 2
        low, high = np.quantile(draws, [tail, 1 - tail])
        return Interval(float(low), float(high))

    def ratio(self, errors: NDArray[np.int64], lengths: NDArray[np.int64]) -> Interval:
        """Interval of ``sum(errors) / sum(lengths)``, from the errors and reference lengths of utterances."""
        sums = self.sums(self.blocks(np.column_stack([errors, lengths])))
        return self.interval(sums[:, 0] / np.maximum(sums[:, 1], 1))


def _sum_blocks(groups: object, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums by block, in order of first appearance."""
    if isinstance(groups, str) or not isinstance(groups, Iterable):
        message = f"groups is {groups!r:.60}; give a list with the name of a block for each utterance"
        raise InvalidRequestError(message, parameter="groups")
    names = list(groups)
    if len(names) != len(rows):
        message = f"groups has {len(names)} entries for {len(rows)} utterances; give one for each"
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
    sums = np.zeros((len(numbers), rows.shape[1]), dtype=np.int64)
    np.add.at(sums, index, rows)
    return sums
