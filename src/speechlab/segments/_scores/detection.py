"""Detection: seconds of correct, missed and falsely detected speech."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from speechlab.segments._frame.extent import layers_of, length_by_file, union
from speechlab.segments._frame.ticks import Stretches

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
        """Scored speech of the reference in seconds."""
        return self.correct_s + self.miss_s

    @property
    def hypothesis_s(self) -> float:
        """Scored time that the hypothesis detects as speech, in seconds."""
        return self.correct_s + self.false_alarm_s

    @property
    def detection_error_rate(self) -> float:
        """Missed speech and false alarms over the speech of the reference; can exceed 1."""
        return _ratio(self.miss_s + self.false_alarm_s, self.reference_s)

    @property
    def miss_rate(self) -> float:
        """Missed speech over the speech of the reference."""
        return _ratio(self.miss_s, self.reference_s)

    @property
    def false_alarm_rate(self) -> float:
        """False alarms over the silence of the reference; NaN without an extent."""
        return _ratio(self.false_alarm_s, self.scored_s - self.reference_s)

    @property
    def accuracy(self) -> float:
        """Correct speech and correct silence over the scored time; NaN without an extent."""
        return _ratio(self.scored_s - self.miss_s - self.false_alarm_s, self.scored_s)

    @property
    def precision(self) -> float:
        """Correct speech over all detected time."""
        return _ratio(self.correct_s, self.hypothesis_s)

    @property
    def recall(self) -> float:
        """Correct speech over the speech of the reference."""
        return _ratio(self.correct_s, self.reference_s)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return _ratio(2 * self.correct_s, self.reference_s + self.hypothesis_s)

    @property
    def iou(self) -> float:
        """Intersection over union: correct speech over the time that is speech or is detected."""
        return _ratio(self.correct_s, self.correct_s + self.miss_s + self.false_alarm_s)

    def __repr__(self) -> str:
        return (
            f"<DetectionScore error rate {self.detection_error_rate:.4f}: {self.miss_s:.2f} s missed and "
            f"{self.false_alarm_s:.2f} s false alarms in {self.reference_s:.2f} s of speech, "
            f"collar {self.collar_s:g} s>"
        )


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
    """Measure correct, missed and falsely detected speech in each file."""
    speech = union(reference, count)
    edges = np.concatenate([speech.starts, speech.ends])
    zones = Stretches(np.concatenate([speech.codes, speech.codes]), edges - collar, edges + collar)
    everything = hypothesis if extent is None else extent
    layers = layers_of([speech, hypothesis, zones, everything], count)
    in_reference, in_hypothesis, near, counted = layers.depths > 0
    scored = ~near if extent is None else counted & ~near

    def seconds(chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        return length_by_file(layers.spans[chosen & scored], count)

    durations = np.full(count, np.nan) if extent is None else seconds(counted)
    return Detected(
        seconds(in_reference & in_hypothesis),
        seconds(in_reference & ~in_hypothesis),
        seconds(~in_reference & in_hypothesis),
        durations,
    )
