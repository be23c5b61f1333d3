"""From speech to speech on the real service: what is lost at each step."""

from __future__ import annotations

import pandas as pd
import pytest

from speechlab import evaluate
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._translation.spoken import _summarized
from speechlab.store import Store

HOSTILE = "<img src=x onerror=alert(1)>"


def steps(ideal, translation, again, count=12, **columns):
    rows = pd.DataFrame(
        {
            "text": [f"文{row}" for row in range(count)],
            "language": "ja",
            "ideal": [ideal.format(row) for row in range(count)],
            "translation": [translation.format(row) for row in range(count)],
            "again": [again.format(row) for row in range(count)],
            "error_rate": 0.1,
            "again_error_rate": 0.2,
        }
    ).assign(**columns)
    reference = "reference" if "reference" in rows else None
    return _summarized(rows, "text", "language", reference, "en").set_index("step")


def test_the_step_that_loses_is_named():
    right = "The station is near gate {}."
    heard = steps(right, "A stationer was nearly late {}.", "A stationer was nearly late {}.")
    assert heard["chrf"].iloc[0] == 100
    assert heard["verdict"].fillna("").tolist() == ["", "worse", "no difference shown"]
    assert heard.loc["recognised, then translated", "lost"] < -20
    spoken = steps(right, right, "the session ate {}", reference=[right.format(row) for row in range(12)])
    assert spoken["verdict"].fillna("").tolist() == ["", "no difference shown", "worse"]
    assert spoken["error_rate"].tolist()[1:] == pytest.approx([0.1, 0.2])
    assert spoken["p"].isna().tolist() == [True, False, False]


def test_signs_and_case_are_no_loss():
    assert steps("It is here, {}!", "It is here, {}!", "it is here {}")["lost"].tolist()[1:] == [0, 0]


@pytest.mark.engines
def test_the_whole_way(lab, tmp_path):
    spoken = lab.synthesize("おはようございます。", voice="mei").save(tmp_path / "said.wav")
    frame = pd.DataFrame(
        {
            "audio": [str(spoken), str(tmp_path / "gone.wav")],
            "text": ["おはようございます。", HOSTILE],
            "language": "ja",
        },
        index=[7, 7],
    )
    with Store(tmp_path / "store") as store:
        with pytest.warns(UserWarning, match="1 of 2 rows failed"):
            report = evaluate.speech_to_speech(lab, frame, "en", "heart", store=store, progress=False)
        assert report.table["status"].tolist() == ["ok", "error"]
        assert report.table["failed_at"].tolist() == [None, "recognise"]
        row = report.table.iloc[0]
        assert row["error_rate"] == 0
        assert row["ideal"] == row["translation"]
        assert isinstance(row["again"], str)
        assert report.summary["utterances"].tolist() == [1, 1, 1]
        assert report.summary["verdict"].fillna("").tolist() == [
            "",
            "no difference shown",
            "no difference shown",
        ]
        again = evaluate.Report.load(report.save(tmp_path / "out"))
    pd.testing.assert_frame_equal(again.summary, report.summary)
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert HOSTILE not in page
    assert HOSTILE not in "".join(report.sections())
    assert list(report.figures()) == ["Summary"]
    assert len(report.record["runs"]) == 5
    assert "Riezler" in str(report.methods())


def test_bad_input_is_said_before_anything_is_sent():
    frame = pd.DataFrame({"audio": ["a.wav"], "text": ["a"], "language": "ja"})
    with pytest.raises(InvalidRequestError, match="target_lang is no code"):
        evaluate.speech_to_speech(None, frame, " ", "heart")
    with pytest.raises(InvalidRequestError, match="no column 'text'"):
        evaluate.speech_to_speech(None, frame.drop(columns="text"), "en", "heart")
    with pytest.raises(InvalidRequestError, match="'ideal'"):
        evaluate.speech_to_speech(None, frame.assign(ideal=1), "en", "heart")
