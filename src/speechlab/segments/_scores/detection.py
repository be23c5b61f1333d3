"""Detection: seconds of correct, missed and falsely detected speech."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from speechlab.segments._frame.cover import layers_of, length_by_file, union
from speechlab.segments._frame.ticks import Stretches

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class DetectionScore:
    """Seconds of speech found, missed and invented, and the rates that follow.

    A rate without anything to divide by is NaN.

    Attributes:
        collar_s: Seconds on either side of each edge of the reference's speech that do not count.
        correct_s: Speech that was found.
        miss_s: Speech that was not found.
        false_alarm_s: Detected time without speech.
        scored_s: Scored time: the extent without the collars; NaN without an extent.

    Example:
        >>> said, heard = frame([(0.0, 2.0)], file="a.wav"), frame([(0.5, 2.5)], file="a.wav")
        >>> detection = score(said, heard).detection
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
        """Speech of the reference that counts."""
        return self.correct_s + self.miss_s

    @property
    def hypothesis_s(self) -> float:
        """Found speech that counts."""
        return self.correct_s + self.false_alarm_s

    @property
    def detection_error_rate(self) -> float:
        """Missed and invented speech over the reference's; it can exceed 1."""
        return _ratio(self.miss_s + self.false_alarm_s, self.reference_s)

    @property
    def miss_rate(self) -> float:
        """Missed speech over the reference's."""
        return _ratio(self.miss_s, self.reference_s)

    @property
    def false_alarm_rate(self) -> float:
        """Invented speech over the reference's silence, for which the extent has to be known."""
        return _ratio(self.false_alarm_s, self.scored_s - self.reference_s)

    @property
    def accuracy(self) -> float:
        """Time that is right, speech or silence, over all that counts, for which the extent has to be known."""
        return _ratio(self.scored_s - self.miss_s - self.false_alarm_s, self.scored_s)

    @property
    def precision(self) -> float:
        """Found speech over all that was found."""
        return _ratio(self.correct_s, self.hypothesis_s)

    @property
    def recall(self) -> float:
        """Found speech over the reference's."""
        return _ratio(self.correct_s, self.reference_s)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return _ratio(2 * self.correct_s, self.reference_s + self.hypothesis_s)

    @property
    def iou(self) -> float:
        """Intersection over union: found speech over all that is speech or was found."""
        return _ratio(self.correct_s, self.correct_s + self.miss_s + self.false_alarm_s)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else math.nan


class Detected(NamedTuple):
    """Seconds, by file."""

    correct_s: NDArray[np.float64]
    miss_s: NDArray[np.float64]
    false_alarm_s: NDArray[np.float64]
    scored_s: NDArray[np.float64]

    def total(self, collar_s: float) -> DetectionScore:
        """Return the score of all files together."""
        scored = float(self.scored_s.sum()) if len(self.scored_s) else math.nan
        correct, miss, false_alarm = (float(values.sum()) for values in self[:3])
        return DetectionScore(collar_s, correct, miss, false_alarm, scored)


def detected(
    reference: Stretches, hypothesis: Stretches, extent: Stretches | None, count: int, collar: int
) -> Detected:
    """Measure what was found, missed and invented in each file.

    Args:
        reference: Speech, which may overlap.
        hypothesis: What was found.
        extent: What counts; None for all.
        count: How many files there are.
        collar: Ticks on either side of each edge of the reference's speech.
    """
    speech = union(reference, count)
    edges = np.concatenate([speech.starts, speech.ends])
    zones = Stretches(np.concatenate([speech.codes, speech.codes]), edges - collar, edges + collar)
    everything = hypothesis if extent is None else extent
    layers = layers_of([speech, hypothesis, zones, everything], count)
    said, found, near, counted = layers.depths > 0
    scored = ~near if extent is None else counted & ~near

    def seconds(chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        return length_by_file(layers.spans[chosen & scored], count)

    whole = np.full(count, np.nan) if extent is None else seconds(counted)
    return Detected(seconds(said & found), seconds(said & ~found), seconds(~said & found), whole)
