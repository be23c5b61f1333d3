"""Scores of boundaries and segments of a hypothesis against a reference."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from speechlab.segments._frame.ticks import Line, Stretches, seconds_of
from speechlab.segments._joins.pairs import pairs

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


@dataclass(frozen=True)
class MatchScore:
    """Counts of matched boundaries or segments of one kind.

    Attributes:
        matched: Number in the reference with a partner within the collar; each partner is used once.
        reference: Number in the reference.
        hypothesis: Number in the hypothesis.

    Example:
        >>> MatchScore(matched=8, reference=10, hypothesis=16).precision
        0.5
    """

    matched: int
    reference: int
    hypothesis: int

    @property
    def precision(self) -> float:
        """Matched over hypothesis; NaN if the hypothesis is empty."""
        return self.matched / self.hypothesis if self.hypothesis else math.nan

    @property
    def recall(self) -> float:
        """Matched over reference; NaN if the reference is empty."""
        return self.matched / self.reference if self.reference else math.nan

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; NaN if both sides are empty."""
        edges = self.reference + self.hypothesis
        return 2 * self.matched / edges if edges else math.nan


def match_times(
    reference: Stretches, hypothesis: Stretches, count: int, collar: int
) -> tuple[MatchScore, MatchScore]:
    """Match as many starts and as many ends as possible within a collar."""
    line = Line([reference, hypothesis], count, room=collar + 1)
    starts = _matched(line.starts(reference), line.starts(hypothesis), collar)
    ends = _matched(line.ends(reference), line.ends(hypothesis), collar)
    sizes = len(reference), len(hypothesis)
    return MatchScore(starts, *sizes), MatchScore(ends, *sizes)


def _matched(one: NDArray[np.int64], other: NDArray[np.int64], collar: int) -> int:
    # In order of time, the first match is optimal, because a later boundary has no earlier candidates.
    ours, theirs = np.sort(one).tolist(), np.sort(other).tolist()
    i = j = count = 0
    while i < len(ours) and j < len(theirs):
        distance = ours[i] - theirs[j]
        if -collar <= distance <= collar:
            count += 1
            i += 1
            j += 1
        elif distance < 0:
            i += 1
        else:
            j += 1
    return count


def partners(
    reference: Stretches, hypothesis: Stretches, count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return all pairs that share time, and their shared time in microseconds."""
    line = Line([reference, hypothesis], count)
    left, right = pairs(
        line.starts(reference), line.ends(reference), line.starts(hypothesis), line.ends(hypothesis)
    )
    ends = np.minimum(reference.ends[left], hypothesis.ends[right])
    return left, right, ends - np.maximum(reference.starts[left], hypothesis.starts[right])


def couples(
    left: NDArray[np.int64], right: NDArray[np.int64], shared: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The pairs in which each segment shares the most time with the other; the first among equals."""
    best_right = _best(left, right, shared)
    best_left = _best(right, left, shared)
    mutual = best_right & best_left
    return left[mutual], right[mutual]


def _best(key: NDArray[np.int64], other: NDArray[np.int64], shared: NDArray[np.int64]) -> NDArray[np.bool_]:
    order = np.lexsort((other, -shared, key))
    first = order[np.diff(key[order], prepend=-1) != 0]
    best = np.zeros(len(key), dtype=bool)
    best[first] = True
    return best


@dataclass(frozen=True)
class Segmentation:
    """Counts of split and joined segments of the reference.

    A segment of the hypothesis is part of the reference segment that contains more than half of its duration, and the
    other way round.

    Attributes:
        reference: Number of segments in the reference.
        hypothesis: Number of segments in the hypothesis.
        splits: Extra parts of reference segments: two parts of one segment count 1.
        joins: Extra segments in hypothesis segments: two reference segments in one count 1.

    Example:
        >>> Segmentation(reference=4, hypothesis=5, splits=1, joins=0).over_segmentation
        0.25
    """

    reference: int
    hypothesis: int
    splits: int
    joins: int

    @property
    def over_segmentation(self) -> float:
        """Extra parts for each segment of the reference; NaN if the reference is empty."""
        return self.splits / self.reference if self.reference else math.nan

    @property
    def under_segmentation(self) -> float:
        """Joined segments as a share of the reference's segments; NaN if the reference is empty."""
        return self.joins / self.reference if self.reference else math.nan


def segmentation(
    reference: Stretches,
    hypothesis: Stretches,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    shared: NDArray[np.int64],
) -> Segmentation:
    """Count split and joined segments, from all pairs that share time."""
    inside_reference = left[2 * shared > hypothesis.lengths[right]]
    inside_hypothesis = right[2 * shared > reference.lengths[left]]
    splits = np.maximum(np.bincount(inside_reference) - 1, 0).sum()
    joins = np.maximum(np.bincount(inside_hypothesis) - 1, 0).sum()
    return Segmentation(len(reference), len(hypothesis), int(splits), int(joins))


def deviations(
    reference: Stretches, hypothesis: Stretches, left: NDArray[np.int64], right: NDArray[np.int64]
) -> pd.DataFrame:
    """Return the deviation of the edges of each couple: positive if the edge of the hypothesis is later."""
    import pandas as pd

    return pd.DataFrame(
        {
            "reference": left,
            "hypothesis": right,
            "start_deviation_s": seconds_of(hypothesis.starts[right] - reference.starts[left]),
            "end_deviation_s": seconds_of(hypothesis.ends[right] - reference.ends[left]),
        }
    )
