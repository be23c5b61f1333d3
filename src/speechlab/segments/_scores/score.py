"""The score of found segments, with its parts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from speechlab._arguments import is_bool
from speechlab._pandas import pd
from speechlab._platform import get_text_dtype
from speechlab.display import table as html_table
from speechlab.errors import SegmentError
from speechlab.segments._frame.extent import Extent, merge_stretches, to_extent_frame, to_stretches
from speechlab.segments._frame.schema import frame
from speechlab.segments._frame.ticks import Stretches, check_seconds, to_ticks
from speechlab.segments._joins.overlap import find_intersections
from speechlab.segments._scores.detection import (
    DetectionScore,
    DetectionTimes,
    MatchScore,
    Segmentation,
    count_splits_and_joins,
    find_mutual_best_pairs,
    measure_detection,
    measure_edge_deviations,
    score_edge_matches,
)
from speechlab.segments._scores.diarization import DiarizationScore, collect_turns, score_diarization

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PERCENTILES = (5, 25, 75, 95)
_SECONDS = ("collar_s", "reference_s", "hypothesis_s", "correct_s", "miss_s", "false_alarm_s", "scored_s")
_RATES = (
    "detection_error_rate",
    "miss_rate",
    "false_alarm_rate",
    "accuracy",
    "precision",
    "recall",
    "f1",
    "iou",
)
_SPEAKERS = ("confusion_s", "diarization_error_rate", "jaccard_error_rate")


@dataclass(frozen=True, repr=False)
class SegmentScore:
    """Score of detected segments against a reference, by time.

    Attributes:
        detection: Seconds of correct, missed and falsely detected speech; all time counts.
        lenient: The same without the collars around the edges of the reference's speech.
        starts: Starts matched within the collar.
        ends: Ends matched within the collar.
        segments: Couples with both edges within the collar.
        segmentation: Counts of split and joined segments.
        deviations: One row for each couple, that is two segments that share more time with each other than with any
            other segment: their positions ``reference`` and ``hypothesis`` in the tables, and ``start_deviation_s``
            and ``end_deviation_s``, positive if the edge of the hypothesis is later.
        files: A row for each recording, with the seconds of both detections (``…_lenient_s``).
        diarization: With ``by_speaker=True``, who spoke; all time counts. Else None.
        lenient_diarization: The same without the collars around the edges of each speaker of the reference.

    Example:
        >>> said, recognized = frame([(0.0, 2.0)], file="a.wav"), frame([(0.5, 2.5)], file="a.wav")
        >>> score(said, recognized, collar=0.2).starts.matched
        0
    """

    detection: DetectionScore
    lenient: DetectionScore
    starts: MatchScore
    ends: MatchScore
    segments: MatchScore
    segmentation: Segmentation
    deviations: pd.DataFrame = field(compare=False)
    files: pd.DataFrame = field(compare=False)
    diarization: DiarizationScore | None = None
    lenient_diarization: DiarizationScore | None = None

    @property
    def collar_s(self) -> float:
        """Collar on either side of an edge, in seconds."""
        return self.lenient.collar_s

    def frame(self) -> pd.DataFrame:
        """Return the detection scores as a table with two rows: without and with the collar.

        With ``by_speaker=True``, with the columns ``confusion_s``, ``diarization_error_rate`` and
        ``jaccard_error_rate``.
        """
        rows = []
        scores = ((self.detection, self.diarization), (self.lenient, self.lenient_diarization))
        for detection, speakers in scores:
            row = {name: getattr(detection, name) for name in (*_SECONDS, *_RATES)}
            rows.append(row | ({name: getattr(speakers, name) for name in _SPEAKERS} if speakers else {}))
        return pd.DataFrame(rows)

    def boundaries(self) -> pd.DataFrame:
        """Return a table with a row for starts and one for ends.

        Columns: ``matched``, ``precision``, ``recall`` and ``f1`` within the collar; and the deviation of all
        couples: ``mean_s``, ``median_s``, percentiles ``p5_s`` to ``p95_s``, and the mean absolute deviation
        ``mean_abs_s``.
        """
        rows = []
        for edge, score in (("start", self.starts), ("end", self.ends)):
            values = self.deviations[f"{edge}_deviation_s"]
            row: dict[str, object] = {"edge": edge, "collar_s": self.collar_s, "matched": score.matched}
            row |= {name: getattr(score, name) for name in ("precision", "recall", "f1")}
            row |= {"couples": len(values), "mean_s": values.mean(), "median_s": values.median()}
            row |= {f"p{share}_s": values.quantile(share / 100) for share in _PERCENTILES}
            row["mean_abs_s"] = values.abs().mean()
            rows.append(row)
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        strict, lenient = self.detection, self.lenient
        speakers = ""
        if self.diarization and self.lenient_diarization:
            rates = (
                f"{score.diarization_error_rate:.4f}"
                for score in (self.diarization, self.lenient_diarization)
            )
            speakers = f"; DER {', '.join(rates)}, JER {self.diarization.jaccard_error_rate:.4f}"
        return (
            f"<SegmentScore detection error rate {strict.detection_error_rate:.4f}, "
            f"{lenient.detection_error_rate:.4f} with a collar of {self.collar_s:g} s: {strict.miss_s:.2f} s missed "
            f"and {strict.false_alarm_s:.2f} s false alarms in {strict.reference_s:.2f} s of speech; F1 of starts "
            f"{self.starts.f1:.4f}, of ends {self.ends.f1:.4f}{speakers}>"
        )

    def _repr_html_(self) -> str:
        def format_percent(value: float) -> str:
            return "" if math.isnan(value) else f"{100 * value:.2f}%"

        names = [name for name in _RATES if name != "accuracy"]
        names += _SPEAKERS[1:] if self.diarization else []
        rows = [
            (f"{row.collar_s:g} s", *(format_percent(getattr(row, name)) for name in names))
            for row in self.frame().itertuples()
        ]
        edges = [
            (
                row["edge"],
                f"{row['matched']}",
                format_percent(row["f1"]),
                f"{row['median_s']:+.3f} s",
                f"{row['mean_abs_s']:.3f} s",
            )
            for row in self.boundaries().to_dict("records")
        ]
        heads = ["edge", f"matched within {self.collar_s:g} s", "f1", "median deviation", "mean distance"]
        head = ["collar", *(name.replace("_", " ") for name in names)]
        return str(html_table(head, rows) + html_table(heads, edges))


def score(
    reference: pd.DataFrame,
    hypothesis: pd.DataFrame,
    *,
    extent: Extent | None = None,
    collar: float = 0.25,
    by_speaker: bool = False,
    overlap: bool = True,
) -> SegmentScore:
    """Score detected segments against a reference, by their times and, if asked, their speakers.

    >>> from speechlab import segments
    >>> said = segments.frame([(0.5, 2.0), (3.0, 5.0)], file="a.wav")
    >>> found = segments.frame([(0.4, 2.1), (3.0, 4.5)], file="a.wav")
    >>> result = segments.score(said, found, extent=6.0)
    >>> round(result.detection.detection_error_rate, 3), round(result.lenient.detection_error_rate, 3)
    (0.2, 0.1)
    >>> round(result.detection.iou, 4)
    0.8108

    Detection compares speech and silence over time; overlapping segments count once. Boundaries and segmentation
    compare the segments themselves. Detection is given without and with the collar, because a collar can remove short
    segments from the score.

    Args:
        reference: The segment frame of the reference.
        hypothesis: The segment frame to score. Recordings that only one of the two has count in full.
        extent: Scored time: durations in seconds (one for all, or by file), or a table of stretches, as in a UEM
            file. Segments completely outside are ignored. Without an extent all segments count, and the rates that
            need the silence (``false_alarm_rate``, ``accuracy``) are NaN.
        collar: Seconds on either side of an edge, as ``-c`` of md-eval. The collar of pyannote.metrics is twice that.
        by_speaker: Also compare who spoke (column ``speaker`` of both tables): diarization and Jaccard error rate.
        overlap: Whether these rates count the time in which several speakers of the reference speak at once.

    Raises:
        SegmentError: A table is not a segment frame, a recording has no extent, the collar is not usable, or
            ``by_speaker`` is set and a segment has no speaker.
    """
    check_seconds(collar, "collar")
    for name, value in (("by_speaker", by_speaker), ("overlap", overlap)):
        if not is_bool(value):
            raise SegmentError(f"{name}={value!r:.60} is not True or False")
    tables = [frame(reference), frame(hypothesis)]
    within: Stretches | None = None
    if extent is None:
        (reference_spans, hypothesis_spans), files = to_stretches(tables)
    else:
        recordings = [name for table in tables for name in table["file"].unique()]
        (reference_spans, hypothesis_spans, stretches), files = to_stretches(
            [*tables, to_extent_frame(extent, recordings)]
        )
        within = merge_stretches(stretches, len(files))
    count, zone = len(files), int(to_ticks([collar])[0])
    strict = measure_detection(reference_spans, hypothesis_spans, within, count, 0)
    lenient = measure_detection(reference_spans, hypothesis_spans, within, count, zone)
    speakers: list[DiarizationScore | None] = [None, None]
    if by_speaker:
        ours, theirs = (
            collect_turns(tables[0], reference_spans, "reference"),
            collect_turns(tables[1], hypothesis_spans, "hypothesis"),
        )
        speakers = [
            score_diarization(ours, theirs, within, files, size, overlap=overlap) for size in (0, zone)
        ]

    rows = [_find_inside_positions(spans, within, count) for spans in (reference_spans, hypothesis_spans)]
    reference_spans, hypothesis_spans = reference_spans[rows[0]], hypothesis_spans[rows[1]]
    starts, ends = score_edge_matches(reference_spans, hypothesis_spans, count, zone)
    left, right, parts = find_intersections(reference_spans, hypothesis_spans, count)
    pair = find_mutual_best_pairs(left, right, parts.lengths)
    apart = measure_edge_deviations(reference_spans, hypothesis_spans, *pair)
    close = apart[["start_deviation_s", "end_deviation_s"]].abs().max(axis=1) <= collar + 5e-7
    apart["reference"], apart["hypothesis"] = rows[0][pair[0]], rows[1][pair[1]]
    return SegmentScore(
        detection=strict.compute_total_score(0.0),
        lenient=lenient.compute_total_score(float(collar)),
        starts=starts,
        ends=ends,
        segments=MatchScore(int(close.sum()), len(reference_spans), len(hypothesis_spans)),
        segmentation=count_splits_and_joins(reference_spans, hypothesis_spans, left, right, parts.lengths),
        deviations=apart,
        files=_build_file_table(files, strict, lenient),
        diarization=speakers[0],
        lenient_diarization=speakers[1],
    )


def _find_inside_positions(spans: Stretches, within: Stretches | None, count: int) -> NDArray[np.int64]:
    """Positions of the stretches that are at least partly within the extent."""
    if within is None:
        return np.arange(len(spans))
    return np.unique(find_intersections(spans.widen_instants(), within, count)[0])


def _build_file_table(files: list[str], strict: DetectionTimes, lenient: DetectionTimes) -> pd.DataFrame:
    columns: dict[str, object] = {"file": pd.Series(files, dtype=get_text_dtype())}
    columns |= strict._asdict()
    columns |= {name.replace("_s", "_lenient_s"): values for name, values in lenient._asdict().items()}
    return pd.DataFrame(columns)
