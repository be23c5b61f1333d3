"""Scores against pyannote.metrics, a count of moments, and by hand."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speechlab import segments
from speechlab.errors import SegmentError
from support import segment_tables

tables, lines = segment_tables.tables, segment_tables.lines

LENGTHS = {"a.wav": 7.0, "b.wav": 6.5, "ü 3.wav": 9.0}
COLLARS = st.sampled_from([0.0, 0.05, 0.25, 0.5])


def clean(frame):
    """Speech as one speaker: merged, without instants."""
    return segments.merge(frame[frame["end"] > frame["start"]])


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(tables(), tables(), COLLARS)
def test_pyannote_agrees(reference, hypothesis, collar):
    pyannote_core = pytest.importorskip("pyannote.core")
    metrics = pytest.importorskip("pyannote.metrics.detection")
    reference = clean(reference)
    result = segments.score(reference, hypothesis, extent=LENGTHS, collar=collar)
    recordings = []
    for file, length in LENGTHS.items():
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
        missed = invented = said = 0.0
        for pair, uem in recordings:
            parts = rate(*pair, uem=uem, detailed=True)
            missed, invented = missed + parts["miss"], invented + parts["false alarm"]
            said += parts["total"]
            for other in (accuracy, fair):
                other(*pair, uem=uem)
        assert score.miss_s == pytest.approx(missed, abs=1e-9)
        assert score.false_alarm_s == pytest.approx(invented, abs=1e-9)
        assert score.reference_s == pytest.approx(said, abs=1e-9)
        if score.scored_s > 0:
            assert score.accuracy == pytest.approx(abs(accuracy), abs=1e-9)
        precision, recall, f1 = fair.compute_metrics()
        if score.reference_s > 0:
            assert score.detection_error_rate == pytest.approx(abs(rate), abs=1e-9)
            assert score.recall == pytest.approx(recall, abs=1e-9)
            if score.hypothesis_s > 0:
                assert score.precision == pytest.approx(precision, abs=1e-9)
                assert score.f1 == pytest.approx(f1, abs=1e-9)


def moments(rows, file):
    held = np.zeros(90, dtype=bool)
    for name, start, end in rows:
        if name == file:
            held[start:end] = True
    return held


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(tables(), tables(), st.booleans())
def test_detection_counts_moments(reference, hypothesis, whole):
    result = segments.score(reference, hypothesis, extent=LENGTHS if whole else None)
    files = set(LENGTHS) if whole else set(reference["file"]) | set(hypothesis["file"])
    correct = missed = invented = 0
    rows = lines(reference), lines(hypothesis)
    for file in files:
        inside = np.arange(90) < round(LENGTHS[file] * 10) if whole else True
        said, found = (moments(side, file) & inside for side in rows)
        correct += (said & found).sum()
        missed += (said & ~found).sum()
        invented += (~said & found).sum()
    score = result.detection
    assert [round(value * 10) for value in (score.correct_s, score.miss_s, score.false_alarm_s)] == [
        correct,
        missed,
        invented,
    ]
    assert math.isnan(score.scored_s) != whole
    assert set(result.files["file"]) == files
    assert result.files["miss_s"].sum() == pytest.approx(score.miss_s)


def most_matches(left, right, collar):
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
@settings(max_examples=65, deadline=None)
@given(tables(), tables(), st.sampled_from([0, 1, 3]))
def test_boundaries_match_as_many_as_can(reference, hypothesis, tenths):
    result = segments.score(reference, hypothesis, collar=tenths / 10)
    rows = lines(reference), lines(hypothesis)
    for place, score in ((1, result.starts), (2, result.ends)):
        wanted = 0
        for file in set(reference["file"]):
            edges = [[row[place] for row in side if row[0] == file] for side in rows]
            wanted += most_matches(*edges, tenths)
        assert (score.matched, score.reference, score.hypothesis) == (wanted, len(reference), len(hypothesis))


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(tables(instants=False), tables(instants=False))
def test_couples_are_each_other_s_best(reference, hypothesis):
    result = segments.score(reference, hypothesis)
    joined = segments.overlap_join(reference, hypothesis)
    best = {}
    for key, other in (("left", "right"), ("right", "left")):
        ordered = joined.assign(us=(joined["overlap_s"] * 1e6).round()).sort_values(
            ["us", other], ascending=[False, True]
        )
        best[key] = dict(reversed(list(zip(ordered[key], ordered[other], strict=True))))
    wanted = {(a, b) for a, b in best["left"].items() if best["right"][b] == a}
    found = set(zip(result.deviations["reference"], result.deviations["hypothesis"], strict=True))
    assert found == wanted
    found = result.deviations
    for name in ("start", "end"):
        said, heard = (
            reference[name].to_numpy()[found["reference"]],
            hypothesis[name].to_numpy()[found["hypothesis"]],
        )
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
    assert result.frame()["collar_s"].tolist() == [0.0, 0.25]
    page = result._repr_html_()
    assert "detection error rate" in page
    assert "0.25 s" in page
    assert f">{result.starts.matched}<" in page  # a count has no decimals


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
    with pytest.raises(SegmentError, match="the extent lacks 1 recordings: 'a'"):
        segments.score(said, found, extent={"b": 3.0})
    with pytest.raises(SegmentError, match="collar=-1"):
        segments.score(said, found, collar=-1)


def test_scores_show_their_rates():
    said = segments.frame([(0.5, 2.0), (3.0, 5.0)], file="a")
    result = segments.score(said, segments.frame([(0.4, 2.1), (3.0, 4.5)], file="a"), extent=6.0)
    assert repr(result) == (
        "<SegmentScore detection error rate 0.2000, 0.1000 with a collar of 0.25 s: 0.50 s missed and 0.20 s false "
        "alarms in 3.50 s of speech; F1 of starts 1.0000, of ends 0.5000>"
    )
    assert repr(result.detection).startswith("<DetectionScore error rate 0.2000: 0.50 s missed")
    assert "20.00%" in result._repr_html_()
