"""Detected speech in seconds, and boundaries and segments, of a hypothesis against a reference."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from speechlab._pandas import pd
from speechlab.segments._frame.extent import count_depths_between_edges, merge_stretches, sum_seconds_by_file
from speechlab.segments._frame.ticks import Line, Stretches, to_seconds

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, repr=False)
class DetectionScore:
    """Seconds of correct, missed and falsely detected speech, and the rates that follow.

    A rate whose denominator is 0 is NaN.

    Attributes:
        collar_s: Seconds on either side of each edge of the reference's speech that do not count.
        correct_s: Detected speech.
        miss_s: Missed speech.
        false_alarm_s: Detected time without speech.
        scored_s: Scored time: the extent without the collars; NaN without an extent.

    Example:
        >>> said, recognized = frame([(0.0, 2.0)], file="a.wav"), frame([(0.5, 2.5)], file="a.wav")
        >>> detection = score(said, recognized).detection
        >>> detection.miss_s, detection.false_alarm_s, detection.f1
        (0.5, 0.5, 0.75)
    """

    collar_s: float
    correct_s: float
    miss_s: float
    false_alarm_s: float
    scored_s: float

    @property
    def reference_s(self) -> float:
        """Scored speech of the reference in seconds."""
        return self.correct_s + self.miss_s

    @property
    def hypothesis_s(self) -> float:
        """Scored time that the hypothesis detects as speech, in seconds."""
        return self.correct_s + self.false_alarm_s

    @property
    def detection_error_rate(self) -> float:
        """Missed speech and false alarms over the speech of the reference; can exceed 1."""
        return compute_ratio(self.miss_s + self.false_alarm_s, self.reference_s)

    @property
    def miss_rate(self) -> float:
        """Missed speech over the speech of the reference."""
        return compute_ratio(self.miss_s, self.reference_s)

    @property
    def false_alarm_rate(self) -> float:
        """False alarms over the silence of the reference; NaN without an extent."""
        return compute_ratio(self.false_alarm_s, self.scored_s - self.reference_s)

    @property
    def accuracy(self) -> float:
        """Correct speech and correct silence over the scored time; NaN without an extent."""
        return compute_ratio(self.scored_s - self.miss_s - self.false_alarm_s, self.scored_s)

    @property
    def precision(self) -> float:
        """Correct speech over all detected time."""
        return compute_ratio(self.correct_s, self.hypothesis_s)

    @property
    def recall(self) -> float:
        """Correct speech over the speech of the reference."""
        return compute_ratio(self.correct_s, self.reference_s)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return compute_ratio(2 * self.correct_s, self.reference_s + self.hypothesis_s)

    @property
    def iou(self) -> float:
        """Intersection over union: correct speech over the time that is speech or is detected."""
        return compute_ratio(self.correct_s, self.correct_s + self.miss_s + self.false_alarm_s)

    def __repr__(self) -> str:
        return (
            f"<DetectionScore error rate {self.detection_error_rate:.4f}: {self.miss_s:.2f} s missed and "
            f"{self.false_alarm_s:.2f} s false alarms in {self.reference_s:.2f} s of speech, "
            f"collar {self.collar_s:g} s>"
        )


def compute_ratio(part: float, whole: float) -> float:
    """Return a part over the whole; NaN if there is no whole."""
    return part / whole if whole > 0 else math.nan


class DetectionTimes(NamedTuple):
    """Seconds, by file."""

    correct_s: NDArray[np.float64]
    miss_s: NDArray[np.float64]
    false_alarm_s: NDArray[np.float64]
    scored_s: NDArray[np.float64]

    def compute_total_score(self, collar_s: float) -> DetectionScore:
        """Return the score of all files together."""
        scored = float(self.scored_s.sum()) if len(self.scored_s) else math.nan
        correct, miss, false_alarm = (float(values.sum()) for values in self[:3])
        return DetectionScore(collar_s, correct, miss, false_alarm, scored)


def measure_detection(
    reference: Stretches, hypothesis: Stretches, extent: Stretches | None, count: int, collar: int
) -> DetectionTimes:
    """Measure correct, missed and falsely detected speech in each file."""
    speech = merge_stretches(reference, count)
    edges = np.concatenate([speech.starts, speech.ends])
    zones = Stretches(np.concatenate([speech.codes, speech.codes]), edges - collar, edges + collar)
    everything = hypothesis if extent is None else extent
    layers = count_depths_between_edges([speech, hypothesis, zones, everything], count)
    in_reference, in_hypothesis, near, counted = layers.depths > 0
    scored = ~near if extent is None else counted & ~near

    def sum_seconds(chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        return sum_seconds_by_file(layers.spans[chosen & scored], count)

    durations = np.full(count, np.nan) if extent is None else sum_seconds(counted)
    return DetectionTimes(
        sum_seconds(in_reference & in_hypothesis),
        sum_seconds(in_reference & ~in_hypothesis),
        sum_seconds(~in_reference & in_hypothesis),
        durations,
    )


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
        return compute_ratio(self.matched, self.hypothesis)

    @property
    def recall(self) -> float:
        """Matched over reference; NaN if the reference is empty."""
        return compute_ratio(self.matched, self.reference)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; NaN if both sides are empty."""
        return compute_ratio(2 * self.matched, self.reference + self.hypothesis)


def score_edge_matches(
    reference: Stretches, hypothesis: Stretches, count: int, collar: int
) -> tuple[MatchScore, MatchScore]:
    """Match as many starts and as many ends as possible within a collar."""
    line = Line([reference, hypothesis], count, room=collar + 1)
    starts = _count_matches(line.place_starts(reference), line.place_starts(hypothesis), collar)
    ends = _count_matches(line.place_ends(reference), line.place_ends(hypothesis), collar)
    sizes = len(reference), len(hypothesis)
    return MatchScore(starts, *sizes), MatchScore(ends, *sizes)


def _count_matches(one: NDArray[np.int64], other: NDArray[np.int64], collar: int) -> int:
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


def find_mutual_best_pairs(
    left: NDArray[np.int64], right: NDArray[np.int64], shared: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs in which each segment shares the most time with the other; the first among equals."""
    best_right = _mark_best_pair_of_each_key(left, right, shared)
    best_left = _mark_best_pair_of_each_key(right, left, shared)
    mutual = best_right & best_left
    return left[mutual], right[mutual]


def _mark_best_pair_of_each_key(
    key: NDArray[np.int64], other: NDArray[np.int64], shared: NDArray[np.int64]
) -> NDArray[np.bool_]:
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
        >>> Segmentation(reference=4, hypothesis=5, splits=1, joins=0).splits
        1
    """

    reference: int
    hypothesis: int
    splits: int
    joins: int


def count_splits_and_joins(
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


def measure_edge_deviations(
    reference: Stretches, hypothesis: Stretches, left: NDArray[np.int64], right: NDArray[np.int64]
) -> pd.DataFrame:
    """Return the deviation of the edges of each couple: positive if the edge of the hypothesis is later."""
    return pd.DataFrame(
        {
            "reference": left,
            "hypothesis": right,
            "start_deviation_s": to_seconds(hypothesis.starts[right] - reference.starts[left]),
            "end_deviation_s": to_seconds(hypothesis.ends[right] - reference.ends[left]),
        }
    )
