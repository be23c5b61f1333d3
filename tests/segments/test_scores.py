"""Scores against pyannote.metrics, a count of moments, and by hand."""

import math

import numpy as np
import pandas as pd
import pytest

from speechlab import segments
from support.segment_tables import list_lines, make_table

LENGTHS = {f"ü {number}.wav": 6.0 + number % 5 / 2 for number in range(40)}


@pytest.mark.slow
@pytest.mark.parametrize("collar", [0.0, 0.05, 0.25, 0.5])
def test_pyannote_agrees(collar):
    pyannote_core = pytest.importorskip("pyannote.core")
    metrics = pytest.importorskip("pyannote.metrics.detection")
    lengths = dict(list(LENGTHS.items())[:12])
    reference, hypothesis = (make_table([seed, int(collar * 100)], recordings=12) for seed in (1, 2))
    reference = segments.merge(reference[reference["end"] > reference["start"]])  # speech as of one speaker
    result = segments.score(reference, hypothesis, extent=lengths, collar=collar)
    recordings = []
    for file, length in lengths.items():
        pair = []
        for frame in (reference, hypothesis):
            notes = pyannote_core.Annotation(uri=file)
            for row in frame[frame["file"] == file].itertuples():
                notes[pyannote_core.Segment(row.start, row.end), row.Index] = "speech"
            pair.append(notes)
        recordings.append((pair, pyannote_core.Timeline([pyannote_core.Segment(0, length)], uri=file)))
    for score, width in ((result.detection, 0.0), (result.lenient, collar)):
        rate = metrics.DetectionErrorRate(collar=2 * width)
        accuracy = metrics.DetectionAccuracy(collar=2 * width)
        fair = metrics.DetectionPrecisionRecallFMeasure(collar=2 * width)
        totals = {"miss": 0.0, "false alarm": 0.0, "total": 0.0}
        for pair, uem in recordings:
            parts = rate(*pair, uem=uem, detailed=True)
            totals = {name: total + parts[name] for name, total in totals.items()}
            for other in (accuracy, fair):
                other(*pair, uem=uem)
        ours = [score.miss_s, score.false_alarm_s, score.reference_s]
        assert ours == pytest.approx(list(totals.values()), abs=1e-9)
        ours = [score.accuracy, score.detection_error_rate, score.precision, score.recall, score.f1]
        theirs = [abs(accuracy), abs(rate), *fair.compute_metrics()]
        assert ours == pytest.approx(theirs, abs=1e-9)


def count_matches(left, right, collar):
    """The largest matching there is, by augmenting paths."""
    partner = {}

    def place(i, seen):
        for j, other in enumerate(right):
            if abs(left[i] - other) <= collar and j not in seen:
                seen.add(j)
                if j not in partner or place(partner[j], seen):
                    partner[j] = i
                    return True
        return False

    return sum(place(i, set()) for i in range(len(left)))


@pytest.mark.slow
@pytest.mark.parametrize("tenths", [0, 1, 3])
def test_boundaries_match_as_many_as_can(tenths):
    tables = [make_table([tenths, side], recordings=60) for side in (0, 1)]
    result = segments.score(*tables, collar=tenths / 10)
    rows = [list_lines(table) for table in tables]
    for place, score in ((1, result.starts), (2, result.ends)):
        wanted = 0
        for file in set(tables[0]["file"]):
            edges = [[row[place] for row in side if row[0] == file] for side in rows]
            wanted += count_matches(*edges, tenths)
        assert (score.matched, score.reference, score.hypothesis) == (wanted, *map(len, tables))


def test_couples_are_each_other_s_best():
    reference, hypothesis = (make_table([5, side], instants=False) for side in (0, 1))
    found = segments.score(reference, hypothesis).deviations
    joined = segments.overlap_join(reference, hypothesis)
    best = {}
    for key, other in (("left", "right"), ("right", "left")):
        ordered = joined.assign(us=(joined["overlap_s"] * 1e6).round()).sort_values(
            ["us", other], ascending=[False, True]
        )
        best[key] = dict(reversed(list(zip(ordered[key], ordered[other], strict=True))))
    wanted = {(a, b) for a, b in best["left"].items() if best["right"][b] == a}
    assert set(zip(found["reference"], found["hypothesis"], strict=True)) == wanted
    for name in ("start", "end"):
        said = reference[name].to_numpy()[found["reference"]]
        heard = hypothesis[name].to_numpy()[found["hypothesis"]]
        np.testing.assert_allclose(found[f"{name}_deviation_s"], heard - said, rtol=0, atol=1e-9)


def test_by_hand():
    said = segments.frame([(0.5, 2.0), (3.0, 5.0), (7.0, 8.0), (8.2, 9.0)], file="a")
    found = segments.frame([(0.4, 2.1), (3.0, 3.9), (3.9, 4.8), (7.1, 9.2)], file="a")
    result = segments.score(said, found, extent=10.0)
    assert result.detection.miss_s == pytest.approx(0.3)
    assert result.detection.false_alarm_s == pytest.approx(0.1 + 0.1 + 0.2 + 0.2)
    assert result.detection.iou == pytest.approx((1.5 + 1.8 + 1.7) / (1.7 + 2.0 + 2.2))
    assert (result.starts.matched, result.ends.matched) == (3, 3)
    assert (result.segmentation.splits, result.segmentation.joins) == (1, 1)
    assert result.deviations["start_deviation_s"].round(6).tolist() == [-0.1, 0.0, 0.1]
    assert result.segments.matched == 1
    edges = result.boundaries().set_index("edge")
    assert edges.loc["start", "mean_s"] == pytest.approx(0.0, abs=1e-12)
    assert edges.loc["start", "mean_abs_s"] == pytest.approx(0.2 / 3)
    assert edges.loc["end", "median_s"] == pytest.approx(0.1)
    page = result._repr_html_()
    assert "detection error rate" in page
    assert "16.98%" in page


def test_nothing_to_divide_by():
    empty, some = segments.frame([]), segments.frame([(0.0, 1.0)], file="a")
    result = segments.score(empty, empty)
    assert math.isnan(result.detection.detection_error_rate)
    assert math.isnan(result.detection.iou)
    assert math.isnan(result.starts.f1)
    assert not len(result.files)
    assert math.isnan(result.boundaries()["mean_s"][0])
    assert result._repr_html_()
    result = segments.score(some, empty)
    assert (result.detection.detection_error_rate, result.detection.recall) == (1.0, 0.0)
    assert math.isnan(result.detection.precision)
    result = segments.score(empty, some, extent=2.0)
    assert math.isnan(result.detection.detection_error_rate)
    assert result.detection.false_alarm_rate == 0.5


def test_the_extent_decides_what_counts():
    said = segments.frame([(1.0, 2.0), (20.0, 30.0)], file="a")
    found = segments.frame([(1.0, 2.5), (40.0, 50.0)], file="a")
    extent = pd.DataFrame({"file": ["a", "quiet"], "start": [0.0, 0.0], "end": [10.0, 5.0]})
    result = segments.score(said, found, extent=extent)
    assert (result.detection.reference_s, result.detection.false_alarm_s) == (1.0, 0.5)
    assert result.detection.scored_s == 15.0
    assert (result.starts.reference, result.starts.hypothesis) == (1, 1)
    assert result.files["file"].tolist() == ["a", "quiet"]
    both = segments.frame([(0.0, 2.0), (1.0, 3.0)], file="a")  # an edge within speech has no collar
    assert segments.score(both, both, collar=0.25).lenient.reference_s == 2.5
