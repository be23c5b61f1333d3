"""The sweep over the parameters of segments: what is asked, what is derived, what is refused."""

from __future__ import annotations

import pandas as pd
import pytest

from speechlab import evaluate, segments
from speechlab.audio import concatenate
from speechlab.errors import InvalidRequestError
from speechlab.store import Store

SAID = ("Good morning, everybody.", "The weather is fine.", "See you tomorrow.")


@pytest.mark.engines
def test_a_sweep_says_what_the_service_says(lab, tmp_path):
    parts = [lab.synthesize(text, voice="heart") for text in SAID]
    talk = concatenate(parts, gap_s=1.0)
    talk.save(tmp_path / "talk.wav")
    talk.crop(0, 3).save(tmp_path / "short.wav")
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
    for row in table.to_dict("records"):
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
    with pytest.raises(InvalidRequestError, match="stands twice"):
        evaluate.vad_sweep(None, twice, {})
    with pytest.raises(InvalidRequestError, match="belongs into the grid"):
        evaluate.vad_sweep(None, twice, {}, speech_pad_ms=3)
    with pytest.raises(InvalidRequestError, match="said"):
        evaluate.vad_sweep(None, twice.iloc[:1], {}, reference="said")
