"""Who spoke: against pyannote.metrics, a count of moments, and by hand."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speechlab import segments
from speechlab.errors import SegmentError
from support import segment_tables

LENGTHS = {"a": 30.0, "b": 24.0}
TIMES = ["correct_s", "miss_s", "false_alarm_s", "confusion_s"]


def talk(generator, speakers):
    """Turns of some speakers in milliseconds; speakers overlap each other, and never themselves."""
    rows = []
    for file, length in LENGTHS.items():
        for speaker in speakers:
            edges = np.sort(generator.choice(int(length * 1000), size=8, replace=False)) / 1000
            rows += [
                {"file": file, "start": start, "end": end, "speaker": speaker}
                for start, end in edges.reshape(-1, 2)
            ]
    return segments.frame(rows)


def talks(seed):
    generator = np.random.default_rng(seed)
    names = [
        ["ann", "bob", "cy"][: generator.integers(1, 4)],
        ["1", "2", "3", "4"][: generator.integers(1, 5)],
    ]
    return [talk(generator, side) for side in names]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(11), 15])
@pytest.mark.parametrize(("collar", "overlap"), [(0.0, True), (0.25, True), (0.25, False), (0.0, False)])
def test_pyannote_agrees(seed, collar, overlap):
    core = pytest.importorskip("pyannote.core")
    metrics = pytest.importorskip("pyannote.metrics.diarization")
    reference, hypothesis = talks(seed)
    score = segments.score(
        reference, hypothesis, extent=LENGTHS, collar=collar, by_speaker=True, overlap=overlap
    ).lenient_diarization
    options = {"collar": 2 * collar, "skip_overlap": not overlap}
    der, jer = metrics.DiarizationErrorRate(**options), metrics.JaccardErrorRate(**options)
    for file, length in LENGTHS.items():
        pair = []
        for table in (reference, hypothesis):
            notes = core.Annotation(uri=file)
            for row in table[table["file"] == file].itertuples():
                notes[core.Segment(row.start, row.end), row.Index] = row.speaker
            pair.append(notes)
        uem = core.Timeline([core.Segment(0, length)], uri=file)
        parts = der(*pair, uem=uem, detailed=True)
        jer(*pair, uem=uem)
        ours = score.files.set_index("file").loc[file]
        theirs = [parts[name] for name in ("correct", "missed detection", "false alarm", "confusion")]
        np.testing.assert_allclose(ours[TIMES], theirs, rtol=0, atol=1e-6)
        assert ours[["correct_s", "miss_s", "confusion_s"]].sum() == pytest.approx(parts["total"], abs=1e-6)
    assert score.diarization_error_rate == pytest.approx(abs(der), abs=1e-9)
    if (
        seed == 15 and collar and not overlap
    ):  # two assignments share equally much; ours is that of the lower rate
        assert score.jaccard_error_rate < abs(jer)
    else:
        assert score.jaccard_error_rate == pytest.approx(abs(jer), abs=1e-9)


def spoken(names):
    row = st.tuples(st.sampled_from("ab"), st.integers(0, 30), st.integers(1, 12), st.sampled_from(names))
    return st.lists(row, max_size=8).map(made)


def made(rows):
    columns = list(zip(*rows, strict=True)) if rows else [[]] * 4
    starts, lengths = (np.array(column, dtype=float) / 10 for column in columns[1:3])
    table = pd.DataFrame(
        {"file": columns[0], "start": starts, "end": starts + lengths, "speaker": columns[3]}
    )
    return segments.frame(table)


def moments(table, file):
    """The speakers of each tenth of a second."""
    held = [set() for _ in range(60)]
    for row in table[table["file"] == file].itertuples():
        for moment in held[round(row.start * 10) : round(row.end * 10)]:
            moment.add(row.speaker)
    return held


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(spoken("xyz"), spoken("123"), st.booleans())
def test_moments_are_counted_under_the_best_of_all_assignments(reference, hypothesis, overlap):
    score = segments.score(reference, hypothesis, by_speaker=True, overlap=overlap).diarization
    wanted = np.zeros(4)
    for file in "ab":
        said, found = moments(reference, file), moments(hypothesis, file)
        kept = [(one, other) for one, other in zip(said, found, strict=True) if overlap or len(one) < 2]
        missed = sum(max(0, len(one) - len(other)) for one, other in kept)
        invented = sum(max(0, len(other) - len(one)) for one, other in kept)
        both = sum(min(len(one), len(other)) for one, other in kept)
        right = max(
            sum(len({names.get(who) for who in other} & one) for one, other in kept)
            for order in itertools.permutations("xyz")
            for names in [dict(zip("123", order, strict=True))]
        )
        wanted += [right, missed, invented, both - right]
    np.testing.assert_allclose([getattr(score, name) for name in TIMES], wanted / 10, rtol=0, atol=1e-9)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(spoken("xyz"), spoken("123"), st.sampled_from([0.0, 0.1, 0.25]), st.booleans(), st.randoms())
def test_names_and_order_do_not_matter_and_files_add_up(reference, hypothesis, collar, overlap, random):
    options = {"collar": collar, "by_speaker": True, "overlap": overlap}
    score = segments.score(reference, hypothesis, **options).lenient_diarization
    for value in (score.jaccard_error_rate, *score.speakers["jaccard_error_rate"]):
        assert math.isnan(value) or 0 <= value <= 1
    assert math.isnan(score.diarization_error_rate) or score.diarization_error_rate >= 0
    for name in TIMES:
        assert score.files[name].sum() == pytest.approx(getattr(score, name), abs=1e-9)
        assert (score.files[name] >= 0).all()

    other = dict(zip("123", random.sample(["p", "q", "r"], 3), strict=True))
    shuffled = hypothesis.assign(speaker=hypothesis["speaker"].map(other).astype("str"))
    rows = random.sample(range(len(shuffled)), len(shuffled))
    again = segments.score(reference, shuffled.iloc[rows], **options).lenient_diarization
    for name in (*TIMES, "jaccard_error_rate"):
        assert getattr(again, name) == pytest.approx(getattr(score, name), abs=1e-9, nan_ok=True)

    parts = [
        segments.score(
            reference[reference["file"] == file], hypothesis[hypothesis["file"] == file], **options
        )
        for file in "ab"
    ]
    for name in TIMES:
        total = sum(getattr(part.lenient_diarization, name) for part in parts)
        assert getattr(score, name) == pytest.approx(total, abs=1e-9)

    itself = segments.score(reference, reference, **options).lenient_diarization
    assert itself.miss_s == itself.false_alarm_s == itself.confusion_s == 0
    assert itself.reference_s == 0 or itself.diarization_error_rate == 0
    assert (itself.speakers["jaccard_error_rate"] == 0).all()


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(segment_tables.tables(instants=False), segment_tables.tables(instants=False))
def test_of_one_speaker_it_is_detection(reference, hypothesis):
    one, other = reference.assign(speaker="ann"), hypothesis.assign(speaker="1")
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
    assert "; DER 0.5556, " in repr(result)
    assert repr(score).startswith("<DiarizationScore DER 0.5556, JER 0.6500: 1.00 s missed")
    assert repr(alone).endswith("without overlaps>")
    assert "diarization error rate" in result._repr_html_()
    assert "diarization error rate" not in segments.score(said, found)._repr_html_()


def test_what_is_refused():
    some = segments.frame([(0, 1), (2, 3)], file="a")
    with pytest.raises(SegmentError, match="the hypothesis has no column 'speaker'"):
        segments.score(some.assign(speaker="x"), some, by_speaker=True)
    with pytest.raises(SegmentError, match="row 1 of the reference has no speaker"):
        segments.score(some.assign(speaker=["x", ""]), some, by_speaker=True)
    with pytest.raises(SegmentError, match="by_speaker='yes' is not True or False"):
        segments.score(some, some, by_speaker="yes")
