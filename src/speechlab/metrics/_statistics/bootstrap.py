"""Bootstrap intervals for ratios of sums, such as errors over reference length.

Utterances are drawn with replacement; the rate of each draw is the sum of its errors over the sum of its lengths.
Utterances with the same errors and length are interchangeable, so a draw of n utterances is one multinomial draw
over the distinct pairs. That is exact, and many times faster than drawing indices.

Source: M. Bisani, H. Ney, Bootstrap estimates for confidence intervals in ASR performance evaluation (ICASSP 2004);
blocks: Z. Liu, F. Peng, Statistical testing on ASR performance via blockwise bootstrap (Interspeech 2020); few
blocks: T. C. Hesterberg, What teachers should know about the bootstrap, The American Statistician 69 (2015); uneven
blocks: L. Kish, Survey sampling (1965), the effective size of a sample with weights; the upper end of a rate: D. B.
Rubin, The Bayesian bootstrap, The Annals of Statistics 9 (1981), with part of a wholly wrong utterance as the prior.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from speechlab._arguments import is_missing, is_number, is_pandas_frame, is_whole_number, require_columns
from speechlab.errors import InvalidRequestError
from speechlab.metrics._columns import COUNTS, RATE
from speechlab.metrics._inputs import check_same_index
from speechlab.metrics._statistics.student import compute_student_quantile

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

BLOCK = "speechlab block"
_MOST_DRAWS = 1_000_000
_CELLS_AT_ONCE = 4_000_000  # of draws x distinct pairs: 32 MB of 64-bit counts
# Weight of the wholly wrong utterance that a sample may lack (docs/statistics.md says how often it is too
# small).
_UNSEEN_WEIGHT = 1 / 3


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
    """Settings of bootstrap intervals, checked on creation.

    The same seed gives the same interval, whatever the order of the utterances.
    """

    level: float
    draws: int
    seed: int
    # Blocks (speakers, files) that are drawn as wholes: a name for each utterance, or the column of a table with the
    # names; None to draw utterances.
    groups: Any = None

    def __post_init__(self) -> None:
        if not is_number(self.level) or not 0 < float(self.level) < 1:
            message = f"a confidence level lies between 0 and 1, not at {self.level!r:.60}; use 0.95 for 95%"
            raise InvalidRequestError(message, parameter="level")
        if not is_whole_number(self.draws) or not 1 <= self.draws <= _MOST_DRAWS:
            message = (
                f"draws={self.draws!r:.60} is not a number of bootstrap draws; give a whole number from 1 to "
                f"{_MOST_DRAWS:,}, such as 1000"
            )
            raise InvalidRequestError(message, parameter="draws")
        if not is_whole_number(self.seed) or self.seed < 0:
            message = (
                f"seed={self.seed!r:.60} is not a seed; give a whole number of at least 0, so that the draws can "
                "be repeated"
            )
            raise InvalidRequestError(message, parameter="seed")

    def add_blocks(self, frame: pd.DataFrame, argument: str = "frame") -> tuple[pd.DataFrame, Bootstrap]:
        """The table with the block of each row in a separate column, and a bootstrap that uses this column."""
        if self.groups is None:
            return frame, self
        if isinstance(self.groups, Hashable) and not isinstance(self.groups, tuple):
            frame = require_columns(frame, self.groups, argument=argument)
            names = frame[self.groups].tolist()
        else:
            check_same_index(self.groups, frame.index, "groups")
            names = _check_block_names(self.groups, len(frame))
        # In a separate column, because the column of blocks may also be a key or a figure.
        return frame.assign(**{BLOCK: names}), replace(self, groups=BLOCK)

    def restrict_to(self, frame: pd.DataFrame) -> Bootstrap:
        """Return the same bootstrap for some rows of the table."""
        return self if self.groups is None else replace(self, groups=frame[self.groups].tolist())

    def bind_rows(self, rows: Any) -> Bootstrap:
        """The same bootstrap for the rows of a table with the blocks, or for lists with an index or None."""
        if self.groups is not None and is_pandas_frame(rows):
            table, of_table = self.add_blocks(rows, "the table")
            return of_table.restrict_to(table)
        check_same_index(self.groups, rows, "groups")
        return self

    def sum_blocks(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Sums by block, in order of first appearance, of the figures of utterances (one row each)."""
        if self.groups is None:
            return rows
        numbers: dict[Any, int] = {}
        index = []
        for position, name in enumerate(_check_block_names(self.groups, len(rows))):
            # Two missing names could be one block or two, and the interval would depend on this guess.
            if is_missing(name) or not isinstance(name, Hashable):
                message = (
                    f"groups[{position}] is {name!r:.60}, not the name of a block; name the block of each utterance, "
                    "or leave out utterances without a block"
                )
                raise InvalidRequestError(message, parameter="groups")
            index.append(numbers.setdefault(name, len(numbers)))
        sums = np.zeros((len(numbers), rows.shape[1]), dtype=rows.dtype)
        np.add.at(sums, np.array(index, dtype=np.int64), rows)
        return sums

    def resample_sums(self, blocks: NDArray[Any]) -> NDArray[Any]:
        """Sums of the columns in each draw (row). A draw has as many blocks as there are, drawn with replacement.

        With fewer than two blocks there are no draws, because a single block shows no variation.
        """
        if len(blocks) < 2:
            return blocks[:0]
        random = np.random.default_rng(self.seed)
        return self._resample_block_sums(
            blocks, lambda counts, size: random.multinomial(len(blocks), counts / len(blocks), size=size)
        )

    def _resample_block_sums(
        self, blocks: NDArray[Any], weights: Callable[[NDArray[np.int64], int], NDArray[Any]]
    ) -> NDArray[Any]:
        """Weighted sums of the distinct blocks in each draw."""
        distinct, counts = np.unique(blocks, axis=0, return_counts=True)
        step = max(1, _CELLS_AT_ONCE // len(distinct))
        starts = range(0, self.draws, step)
        return np.concatenate([weights(counts, min(step, self.draws - start)) @ distinct for start in starts])

    def compute_interval(self, draws: NDArray[np.float64], sizes: NDArray[Any]) -> Interval:
        """Return the interval that contains the middle ``level`` of a figure's draws; both ends NaN without draws.

        With few blocks, the interval is wider, as an interval by Student's distribution is wider than one by the
        normal distribution (Hesterberg, 2015): the middle 95% of the draws of 10 blocks cover the truth in only 89%
        of cases. Blocks of different sizes count as fewer blocks (Kish, 1965): 12 speakers, one of whom has half of
        the text, count as about four.
        """
        if not len(draws):
            return Interval(math.nan, math.nan)
        total = float(sizes.sum())
        squares = float((sizes.astype(np.float64) ** 2).sum())
        tail = _compute_tail_share(
            (1 - self.level) / 2, max(2, round(total**2 / squares)) if total else len(sizes)
        )
        low, high = np.quantile(draws, [tail, 1 - tail])
        return Interval(float(low), float(high))

    def compute_ratio_interval(self, errors: NDArray[np.int64], lengths: NDArray[np.int64]) -> Interval:
        """Interval of ``sum(errors) / sum(lengths)``, from the errors and reference lengths of utterances.

        The upper end is that of the draws, or of draws in which the sample has part of one more utterance, of mean
        length and wholly wrong, if that is higher: what seldom happens may be missing in a sample.
        """
        blocks = self.sum_blocks(np.column_stack([errors, lengths]))
        sums = self.resample_sums(blocks)
        low, high = self.compute_interval(sums[:, 0] / np.maximum(sums[:, 1], 1), blocks[:, 1])
        if not len(sums) or not lengths.any():
            return Interval(low, high)
        return Interval(low, max(high, self._compute_unseen_bound(blocks, lengths)))

    def compute_rate_figures(self, errors: NDArray[np.int64], lengths: NDArray[np.int64]) -> dict[str, Any]:
        """The sums of the errors and reference lengths of utterances, and their rate; missing without a length."""
        count, length = int(errors.sum()), int(lengths.sum())
        low, high = self.compute_ratio_interval(errors, lengths) if length else (None, None)
        rate = dict(zip(RATE, (count / length if length else None, low, high), strict=True))
        return {"errors": count, "reference_length": length} | rate

    def compute_figures_of_counts(self, counts: NDArray[np.int64]) -> dict[str, Any]:
        """The sums and the rate of hits, substitutions, deletions and insertions (columns) of utterances (rows)."""
        sums = dict(zip(COUNTS, map(int, counts.sum(axis=0)), strict=True))
        return sums | self.compute_rate_figures(counts[:, 1:].sum(axis=1), counts[:, :3].sum(axis=1))

    def compute_difference_interval(
        self, first: NDArray[np.int64], second: NDArray[np.int64], lengths: NDArray[np.int64]
    ) -> Interval:
        """Interval of the difference of two rates, ``second`` from ``first``, on the same utterances.

        If any utterance is wholly wrong, or if no block differs, each end is that of the draws, or of draws with part
        of one more utterance that is wholly wrong for one system alone, if that is further out.
        """
        blocks = self.sum_blocks(np.column_stack([first, second, lengths]))
        impossible = bool(((np.maximum(first, second) >= lengths) & (lengths > 0)).any())
        return _compute_mirrored_interval(
            blocks[:, [0, 2]],
            blocks[:, [1, 2]],
            lambda one, other: self._compute_rate_gain_interval(one, other[:, 0], lengths, impossible),
        )

    def _compute_rate_gain_interval(
        self, one: NDArray[np.int64], other: NDArray[np.int64], lengths: NDArray[np.int64], impossible: bool
    ) -> Interval:
        """Interval of the rate of ``other`` beyond that of ``one``, whose columns are blocks' errors and lengths."""
        blocks = np.column_stack([one[:, 0], other, one[:, 1]])
        sums = self.resample_sums(blocks)
        low, high = self.compute_interval((sums[:, 1] - sums[:, 0]) / np.maximum(sums[:, 2], 1), blocks[:, 2])
        differences = blocks[:, 1] - blocks[:, 0]
        if not len(sums) or not lengths.any() or (differences.any() and not impossible):
            return Interval(low, high)
        more, less = (
            self._compute_unseen_bound(np.column_stack([sign * differences, blocks[:, 2]]), lengths)
            for sign in (1, -1)
        )
        return Interval(min(low, -less), max(high, more))

    def compute_figure_interval(
        self, statistics: NDArray[Any], compute: Callable[[list[Any]], float]
    ) -> Interval:
        """Interval of what is computed of sums of statistics, of which each utterance has a row."""
        draws = [compute(row) for row in self.resample_sums(self.sum_blocks(statistics)).tolist()]
        return self.compute_interval(
            np.array(draws), self.sum_blocks(np.ones((len(statistics), 1), np.int64))[:, 0]
        )

    def compute_gain_interval(
        self,
        first: NDArray[Any],
        second: NDArray[Any],
        compute: Callable[[list[Any]], float],
        span: float = np.nan,
    ) -> Interval:
        """Interval of what is computed of the sums of ``second`` beyond that of ``first``; rows are utterances.

        If no block differs, the ends are those of draws with part of one more utterance, for which one system alone
        has the worst value and the other the best one, which lie ``span`` apart; NaN if that is not known.
        """
        lengths = np.ones(len(first), np.int64)
        sizes = self.sum_blocks(lengths[:, np.newaxis])[:, 0]
        if len(sizes) > 1 and (self.sum_blocks(first) == self.sum_blocks(second)).all():
            blocks = np.column_stack([np.zeros_like(sizes), sizes])
            end = span * self._compute_unseen_bound(blocks, lengths)
            return Interval(-end, end)

        def compute_interval(one: NDArray[Any], other: NDArray[Any]) -> Interval:
            width = one.shape[1]
            sums = self.resample_sums(np.hstack([one, other])).tolist()
            gains = [compute(row[width:]) - compute(row[:width]) for row in sums]
            return self.compute_interval(np.array(gains), sizes)

        return _compute_mirrored_interval(self.sum_blocks(first), self.sum_blocks(second), compute_interval)

    def _compute_unseen_bound(self, blocks: NDArray[np.int64], lengths: NDArray[np.int64]) -> float:
        """The upper end of a Bayesian bootstrap with part of one more utterance, of mean length and wholly wrong.

        Utterances without a length, such as those without a number to be written in digits, are no evidence.
        """
        random = np.random.default_rng(self.seed)
        unseen = random.standard_gamma(_UNSEEN_WEIGHT, self.draws) * lengths[lengths > 0].mean()
        # Weights of alike blocks are added up: a sum of n Gamma(1) is a Gamma(n).
        weighted = self._resample_block_sums(
            blocks, lambda counts, size: random.standard_gamma(counts, (size, len(counts)))
        )
        rates = (weighted[:, 0] + unseen) / np.maximum(weighted[:, 1] + unseen, np.finfo(np.float64).tiny)
        return float(np.quantile(rates, (1 + self.level) / 2))


def _compute_mirrored_interval(
    first: NDArray[Any], second: NDArray[Any], compute: Callable[[NDArray[Any], NDArray[Any]], Interval]
) -> Interval:
    """Interval of a difference, which swapping the two systems mirrors: draws have always the same one first."""
    pairs = np.hstack([first, second]), np.hstack([second, first])
    one, other = (rows[np.lexsort(rows.T[::-1])].ravel() for rows in pairs)
    unlike = np.flatnonzero(one != other)
    if len(unlike) and one[unlike[0]] > other[unlike[0]]:
        low, high = compute(second, first)
        return Interval(-high, -low)
    low, high = compute(first, second)
    if len(unlike):
        return Interval(low, high)
    end = max(-low, high)  # the systems are the same but for the names
    return Interval(-end, end)


def _compute_tail_share(tail: float, blocks: int) -> float:
    """Return the share of draws outside the interval on each side, for a nominal share and a number of blocks."""
    freedom = blocks - 1
    return NormalDist().cdf(-compute_student_quantile(2 * tail, freedom) * math.sqrt(blocks / freedom))


def _check_block_names(groups: object, count: int) -> list[Any]:
    if isinstance(groups, str) or not isinstance(groups, Iterable):
        message = f"groups is {groups!r:.60}; give a list with the name of a block for each utterance"
        raise InvalidRequestError(message, parameter="groups")
    names = list(groups)
    if len(names) != count:
        message = f"groups has {len(names)} entries for {count} utterances; give one for each"
        raise InvalidRequestError(message, parameter="groups")
    return names
