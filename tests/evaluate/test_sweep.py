"""The sweep over the parameters of segments: what is asked, what is derived, what is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from speechlab import batch, evaluate, segments
from speechlab.audio import AudioClip, concatenate
from speechlab.client import Client
from speechlab.errors import InvalidRequestError
from speechlab.store import Store
from support.ears import Ears, ears

__all__ = ["ears"]  # a fixture

SAID = ("Good morning, everybody.", "The weather is fine.", "See you tomorrow.")


@pytest.mark.engines
def test_a_sweep_says_what_the_service_says(lab, tmp_path):
    parts = [lab.synthesize(text, voice="heart") for text in SAID]
    talk = concatenate(parts, gap_s=1.0)
    talk.save(tmp_path / "talk.wav")
    parts[0].save(tmp_path / "short.wav")
    (tmp_path / "broken.wav").write_bytes(b"no sound")
    frame = pd.DataFrame({"audio": [str(tmp_path / f"{name}.wav") for name in ("talk", "short", "broken")]})
    right = [(0.0, parts[0].duration_s)]
    frame["said"] = [right, right, []]
    grid = {"min_silence_gap": [300, 2000], "speech_pad_ms": [0, 200], "min_segment_duration": [0, 1.5]}
    with Store(tmp_path / "store") as store:
        given = {"reference": "said", "language": "en", "store": store}
        calls = []
        table = evaluate.vad_sweep(
            lab, frame, grid, progress=lambda done, total: calls.append(total), **given
        )
        assert calls[-1] <= 3 * 2
        again = evaluate.vad_sweep(lab, frame.iloc[:2], grid, progress=False, **given)
    assert len(table) == 8
    assert set(table["recordings"]) == {2}
    assert set(table["failed"]) == {1}
    assert table.drop(columns="failed").equals(again.drop(columns="failed"))
    for row in table.iloc[[0, 3, 5, 6]].to_dict("records"):  # each value of a parameter with each of another
        rules = {name: row[name] for name in (*grid, "segment_padding", "initial_segment_padding_ms")}
        made = [
            lab.transcribe(path, language="en", vad="segments", **rules).segments.assign(file=path)
            for path in frame["audio"].iloc[:2]
        ]
        wanted = segments.frame(pd.concat(made))
        assert row["segments"] == len(wanted)
        assert row["covered_s"] == pytest.approx((wanted["end"] - wanted["start"]).sum(), abs=0.01)
        assert row["miss_s"] >= 0


@pytest.mark.parametrize(
    ("grid", "parameter"),
    [
        ({"padding": [1]}, "grid"),
        ({"segment_padding": []}, "grid"),
        ({"segment_padding": 5}, "grid['segment_padding']"),
        ({"segment_padding": [5001]}, "segment_padding"),
        ([1], "grid"),
    ],
)
def test_what_is_no_grid(grid, parameter):
    frame = pd.DataFrame({"audio": ["a.wav"]})
    with pytest.raises(InvalidRequestError) as caught:
        evaluate.vad_sweep(None, frame, grid)
    assert caught.value.parameter == parameter


def test_what_else_is_refused():
    twice = pd.DataFrame({"audio": ["a.wav", "a.wav"]})
    with pytest.raises(InvalidRequestError, match="belongs into the grid"):
        evaluate.vad_sweep(None, twice, {}, speech_pad_ms=3)
    with pytest.raises(InvalidRequestError, match="said"):
        evaluate.vad_sweep(None, twice.iloc[:1], {}, reference="said")


def test_rows_with_the_same_path_count_as_often_and_labels_do_not(ears, tmp_path):
    path = tmp_path / "a.wav"
    AudioClip(np.full(64_000, 0.1, np.float32), 16_000).save(path)
    given = {
        "progress": False,
        "store": tmp_path / "store",
        "reference": segments.frame([(1, 2)], file=str(path)),
    }
    with Client(base_url=ears) as lab:
        once = evaluate.vad_sweep(lab, pd.DataFrame({"audio": [path]}), {}, **given).iloc[0]
        twice = evaluate.vad_sweep(lab, pd.DataFrame({"audio": [path, str(path)]}), {}, **given).iloc[0]
        assert Ears.asked == 1
        clips = pd.DataFrame({"audio": [AudioClip.from_file(path)] * 2}, index=["a", "a"])
        with pytest.raises(InvalidRequestError, match="'a' occurs twice"):
            evaluate.vad_sweep(lab, clips, {}, **given)
    assert (twice["recordings"], twice["segments"]) == (2, 2 * once["segments"])
    assert twice["covered_s"] == 2 * once["covered_s"] > 0
    assert twice["false_alarm_s"] == pytest.approx(2 * once["false_alarm_s"])
    assert twice["iou"] == pytest.approx(once["iou"])


def test_a_reply_that_cannot_be_right_is_a_row_that_failed(ears, tmp_path):
    clips = [AudioClip(np.full(64_000, level, np.float32), 16_000) for level in (0.1, 0.2, 0.3)]
    Ears.backwards = {2}
    frame = pd.DataFrame({"audio": clips})
    with Client(base_url=ears) as lab, pytest.warns(UserWarning, match="no segments of 1 rows"):
        table = evaluate.vad_sweep(lab, frame, {}, progress=False, store=tmp_path / "store", concurrency=1)
    assert table[["recordings", "failed", "segments"]].iloc[0].tolist() == [2, 1, 2]


def test_a_study_keeps_the_row_whose_segments_cannot_be_right(ears, tmp_path):
    clips = [AudioClip(np.full(64_000, level, np.float32), 16_000) for level in (0.1, 0.2, 0.3)]
    frame = pd.DataFrame({"audio": clips, "text": "word", "language": "en"})
    Ears.backwards = {2}
    with Client(base_url=ears) as lab:
        given = {"voice": None, "store": tmp_path / "store", "progress": False, "concurrency": 1}
        report = evaluate.recognition(lab, frame, vad="segments", **given)
    assert report.tables["segments"]["position"].tolist() == [0, 2]
    assert report.table["hypothesis"].tolist() == ["word"] * 3
    assert report.table["status"].tolist() == ["ok"] * 3
    assert [error is not None and "cannot be right" in str(error) for error in report.table["error"]] == [
        False,
        True,
        False,
    ]


def test_a_study_tells_of_failed_rows_once_and_says_where_they_are(ears, tmp_path):
    clips = [AudioClip(np.full(64_000, level, np.float32), 16_000) for level in (0.1, 0.2, 0.3)]
    frame = pd.DataFrame({"audio": clips, "text": "word", "language": "en"})
    Ears.failing = {2}
    how = {"progress": False, "concurrency": 1, "store": tmp_path / "store"}
    with Client(base_url=ears, max_retries=0) as lab, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        report = evaluate.recognition(lab, frame, voice=None, vad="segments", **how)
        Ears.failing = {Ears.asked + 1}
        evaluate.vad_sweep(lab, frame, {}, **how)
    first, second = (str(one.message) for one in told)
    reason = "1 of 3 rows failed: 1 like 'HTTP 400: no'. "
    assert first == f"{reason}report.failed() has them"
    assert second.startswith(f"{reason}A recording counts once for each min_silence_gap; the column 'failed'")
    assert {one.filename for one in told} == {__file__}
    assert len(report.select_failures()) == 1


def test_rows_that_were_not_asked_have_failed(ears, tmp_path):
    clips = [AudioClip(np.full(64_000, level, np.float32), 16_000) for level in (0.1, 0.2, 0.3)]
    frame = pd.DataFrame({"audio": clips, "text": "word", "language": "en"})
    how = {"progress": False, "concurrency": 1, "store": tmp_path / "store", "voice": None}
    with Client(base_url=ears) as lab, pytest.warns(UserWarning, match="the batch stopped") as told:
        report = evaluate.recognition(lab, frame, budget=batch.Budget(calls=1), **how)
    assert report.table["status"].tolist() == ["ok", "error", "error"]
    assert "not asked: the budget of 1 calls is used up" in report.table["error"].tolist()[2]
    said = [str(one.message) for one in told]
    assert said[0] == "the batch stopped: the budget of 1 calls is used up"
    assert said[1].startswith("2 of 3 rows failed: 2 like 'not asked: ")
