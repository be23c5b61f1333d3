"""Who spoke: against pyannote.metrics, a count of moments, and by hand."""

import math

import numpy as np
import pandas as pd
import pytest

from speechlab import segments
from speechlab.errors import SegmentError
from support.segment_tables import make_table

LENGTHS = {"a": 30.0, "b": 24.0}
TIMES = ["correct_s", "miss_s", "false_alarm_s", "confusion_s"]


def make_turns(generator, files, speakers):
    """Turns of some speakers in milliseconds; speakers overlap each other, and never themselves."""
    rows = []
    for file, length in files.items():
        for speaker in speakers:
            edges = np.sort(generator.choice(int(length * 1000), size=8, replace=False)) / 1000
            rows += [(file, start, end, speaker) for start, end in edges.reshape(-1, 2)]
    return segments.frame(pd.DataFrame(rows, columns=["file", "start", "end", "speaker"]))


def make_talks(seed):
    """Two recordings: who spoke, and who was found."""
    generator = np.random.default_rng(seed)
    names = ["ann", "bob", "cy"][: generator.integers(1, 4)], "1234"[: generator.integers(1, 5)]
    return [make_turns(generator, LENGTHS, side) for side in names]


@pytest.mark.slow
@pytest.mark.parametrize(("collar", "overlap"), [(0.0, True), (0.25, True), (0.25, False), (0.0, False)])
def test_pyannote_agrees(collar, overlap):
    core = pytest.importorskip("pyannote.core")
    metrics = pytest.importorskip("pyannote.metrics.diarization")
    talks = [
        [side.assign(file=side["file"] + str(seed)) for side in make_talks(seed)] for seed in (*range(3), 15)
    ]
    reference, hypothesis = (segments.frame(pd.concat(side)) for side in zip(*talks, strict=True))
    lengths = {file: LENGTHS[file[0]] for file in reference["file"].unique()}
    options = {"collar": collar, "by_speaker": True, "overlap": overlap}
    score = segments.score(reference, hypothesis, extent=lengths, **options).lenient_diarization
    der, jer = (
        measure(collar=2 * collar, skip_overlap=not overlap)
        for measure in (metrics.DiarizationErrorRate, metrics.JaccardErrorRate)
    )
    for file, length in lengths.items():
        pair = []
        for table in (reference, hypothesis):
            notes = core.Annotation(uri=file)
            for row in table[table["file"] == file].itertuples():
                notes[core.Segment(row.start, row.end), row.Index] = row.speaker
            pair.append(notes)
        uem = core.Timeline([core.Segment(0, length)], uri=file)
        parts = der(*pair, uem=uem, detailed=True)
        theirs_jer = jer(*pair, uem=uem)
        ours = score.files.set_index("file").loc[file]
        theirs = [parts[name] for name in ("correct", "missed detection", "false alarm", "confusion")]
        np.testing.assert_allclose(ours[TIMES], theirs, rtol=0, atol=1e-6, err_msg=file)
        assert ours[["correct_s", "miss_s", "confusion_s"]].sum() == pytest.approx(parts["total"], abs=1e-6)
        rates = score.speakers[score.speakers["file"] == file]["jaccard_error_rate"].mean()
        if (file, collar, overlap) == ("a15", 0.25, False):  # ours is the assignment of the lower rate
            assert rates < theirs_jer
        else:
            assert rates == pytest.approx(theirs_jer, abs=1e-9), file
    assert score.diarization_error_rate == pytest.approx(abs(der), abs=1e-9)
    assert score.jaccard_error_rate == pytest.approx(score.speakers["jaccard_error_rate"].mean())


def make_speech(seed, names, recordings=40):
    table = make_table(seed, recordings=recordings, latest=30, most=8, instants=False)
    speakers = np.random.default_rng(seed).choice(list(names), len(table))
    return segments.frame(table.assign(speaker=speakers))


@pytest.mark.slow
@pytest.mark.parametrize(("collar", "overlap"), [(0.1, False), (0.25, True)])
def test_names_and_order_do_not_matter_and_files_add_up(collar, overlap):
    reference, hypothesis = make_speech(3, "xyz"), make_speech(4, "123")
    options = {"collar": collar, "by_speaker": True, "overlap": overlap}

    def score(one, other):
        return segments.score(one, other, **options).lenient_diarization

    whole = score(reference, hypothesis)
    assert whole.speakers["jaccard_error_rate"].dropna().between(0, 1).all()
    assert whole.diarization_error_rate > 0
    assert (whole.files[TIMES] >= 0).all(axis=None)

    other = hypothesis.assign(speaker=hypothesis["speaker"].map({"1": "q", "2": "p", "3": "r"}).astype("str"))
    again = score(reference, other.sample(frac=1, random_state=1))
    for name in (*TIMES, "jaccard_error_rate"):
        assert getattr(again, name) == pytest.approx(getattr(whole, name), abs=1e-9)

    for file in reference["file"].unique()[:8]:
        alone = score(reference[reference["file"] == file], hypothesis[hypothesis["file"] == file])
        together = whole.files[whole.files["file"] == file].iloc[0]
        assert [getattr(alone, name) for name in TIMES] == pytest.approx(together[TIMES].tolist(), abs=1e-9)

    itself = score(reference, reference)
    assert itself.miss_s == itself.false_alarm_s == itself.confusion_s == itself.diarization_error_rate == 0
    assert (itself.speakers["jaccard_error_rate"].dropna() == 0).all()
    empty = score(reference[:0], hypothesis[:0])
    assert math.isnan(empty.diarization_error_rate)
    assert empty.reference_s == 0


def test_of_one_speaker_it_is_detection():
    one, other = make_speech(5, ["ann"]), make_speech(6, ["1"])
    result = segments.score(one, other, by_speaker=True)
    for name in ("correct_s", "miss_s", "false_alarm_s"):
        assert getattr(result.diarization, name) == pytest.approx(getattr(result.detection, name), abs=1e-9)
    assert result.diarization.confusion_s == 0


def test_by_hand():
    said = segments.frame([(0, 4), (4, 6), (5, 8)], file="a").assign(speaker=["ann", "bob", "ann"])
    found = segments.frame([(0, 5), (5, 9)], file="a").assign(speaker=["1", "2"])
    result = segments.score(said, found, extent=10.0, by_speaker=True, collar=0.5)
    score = result.diarization
    # ann is 1 (4 s), bob is 2 (1 s): 2 for ann from 6 to 8 and 1 for bob from 4 to 5 are wrong.
    assert score.speakers["assigned"].tolist() == ["1", "2"]
    assert [getattr(score, name) for name in TIMES] == [5, 1, 1, 3]
    assert score.diarization_error_rate == pytest.approx(5 / 9)
    assert score.speakers["jaccard_error_rate"].tolist() == pytest.approx([1 - 4 / 8, 1 - 1 / 5])
    assert score.jaccard_error_rate == pytest.approx(0.65)
    alone = segments.score(said, found, by_speaker=True, overlap=False).diarization
    assert [getattr(alone, name) for name in TIMES] == [4, 0, 1, 3]
    assert result.frame()["diarization_error_rate"].tolist()[0] == score.diarization_error_rate
    assert repr(score).startswith("<DiarizationScore DER 0.5556, JER 0.6500: 1.00 s missed")
    assert "diarization error rate" in result._repr_html_()


def test_what_is_refused():
    some = segments.frame([(0, 1), (2, 3)], file="a")
    with pytest.raises(SegmentError, match="the hypothesis has no column 'speaker'"):
        segments.score(some.assign(speaker="x"), some, by_speaker=True)
    with pytest.raises(SegmentError, match="row 1 of the reference has no speaker"):
        segments.score(some.assign(speaker=["x", ""]), some, by_speaker=True)
