"""From speech to speech: what is lost at each step."""

from __future__ import annotations

import math
from base64 import b64encode
from pathlib import Path

import pandas as pd
import pytest

from speechlab import evaluate
from speechlab.client import Client
from speechlab.errors import APIConnectionError, InvalidRequestError
from speechlab.evaluate._translation.spoken import build_stages_report
from speechlab.store import Store
from support.studies import serving

HOSTILE = "<img src=x onerror=alert(1)>"


def steps(ideal, translation, again, count=12, **columns):
    rows = pd.DataFrame(
        {
            "text": [f"文{row}" for row in range(count)],
            "language": "ja",
            "ideal": [ideal.format(row) for row in range(count)],
            "translation": [translation.format(row) for row in range(count)],
            "again": [again.format(row) for row in range(count)],
            "hypothesis": [f"文{row}" for row in range(count)],
        }
    ).assign(audio=None, spoken=None, error=None, failed_at=None, **columns)
    roles = {name: name for name in ("audio", "text", "language", "reference") if name in rows}
    report = build_stages_report("Steps", rows, roles, {"settings": {"target_lang": "en"}})
    return report.summary.set_index("step")


@pytest.mark.slow
def test_the_step_that_loses_is_named():
    right = "The station is near gate {}."
    heard = steps(right, "A stationer was nearly late {}.", "A stationer was nearly late {}.")
    assert heard["chrf"].iloc[0] == 100
    assert heard["verdict"].fillna("").tolist() == ["", "worse", "no difference shown"]
    assert heard.loc["recognized, then translated", "lost"] > 20
    spoken = steps(right, right, "the session ate {}", reference=[right.format(row) for row in range(12)])
    assert spoken["verdict"].fillna("").tolist() == ["", "no difference shown", "worse"]
    assert spoken["p"].isna().tolist() == [True, False, False]


def test_error_rates_are_of_all_rows_together():
    """A short row that went wrong counts by its length, as in other studies."""
    said = ["駅", "会議室は三階です"]
    rates = steps("No {}.", "No {}.", "No {}.", count=2, text=said, hypothesis=["", said[1]])
    assert rates["error_rate"].tolist()[1:] == pytest.approx([1 / 9, 0])
    assert rates["reading_cer"].tolist()[1] == pytest.approx(2 / 14)  # えき, かいぎしつわさんかいです


def test_signs_and_case_are_no_loss():
    assert steps("It is here, {}!", "It is here, {}!", "it is here {}")["lost"].tolist()[1:] == [0, 0]


@pytest.mark.slow
def test_what_a_step_loses_has_an_interval_from_twenty_texts_on():
    right, wrong = "The station is near gate {}.", "The session was {}."
    few, many = steps(right, wrong, wrong), steps(right, wrong, wrong, count=20)
    assert few["lost_low"].isna().all()
    row = many.loc["recognized, then translated"]
    assert 0 < row["lost_low"] < row["lost"] < row["lost_high"]


@pytest.fixture(scope="module")
def lab():
    with serving(languages=("ja", "en")) as staged:
        staged.ears.hears = lambda duration_s: "おはようございます。"
        yield staged.lab


@pytest.fixture(scope="module")
def way(lab, tmp_path_factory):
    """A report of one service, and one of two, which are the same and take what is in the store."""
    folder = tmp_path_factory.mktemp("way")
    spoken = lab.synthesize("おはようございます。", voice="low").save(folder / "said.wav")
    frame = pd.DataFrame(
        {
            "audio": [str(spoken), str(folder / "gone.wav")],
            "text": ["おはようございます。", HOSTILE],
            "language": "ja",
        },
        index=[7, 7],
    )
    with Store(folder / "store") as store:
        with pytest.warns(UserWarning, match="1 of 2 rows failed"):
            one = evaluate.speech_to_speech(lab, frame, "en", "high", store=store, progress=False)
        both, voices = {"ours": lab, "theirs": lab}, {"ours": "high", "theirs": "high"}
        with pytest.warns(UserWarning, match="2 of 4 rows failed"):
            two = evaluate.speech_to_speech(both, frame, "en", voices, store=store, progress=False)
        with Client("http://127.0.0.1:9", api_key="nobody-is-there-1", max_retries=0) as nobody:
            how = {"store": store, "progress": False, "give_up_after_s": 0.1}
            with pytest.warns(UserWarning, match="3 of 4 rows failed: 2 like .away could not be asked: "):
                away = evaluate.speech_to_speech({"away": nobody, "ours": lab}, frame, "en", "high", **how)
            with pytest.raises(APIConnectionError):
                evaluate.speech_to_speech({"away": nobody}, frame, "en", "high", **how)
        yield one, two, away


@pytest.mark.slow
def test_the_whole_way(way, tmp_path):
    report = way[0]
    assert report.table["status"].tolist() == ["ok", "error"]
    assert report.table["failed_at"].tolist() == [None, "recognize"]
    row = report.table.iloc[0]
    assert row["error_rate"] == 0
    assert row["reading_cer"] == 0
    assert math.isnan(row["again_reading_cer"])  # English has none
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
    assert list(report.figures()) == ["Scores"]
    assert len(report.record["runs"]) == 5
    assert "Riezler" in str(report.methods())


@pytest.mark.slow
def test_each_stage_can_be_heard_in_the_folder_and_on_the_page(way, tmp_path):
    report = way[0]
    out = report.save(tmp_path / "out")
    again = evaluate.Report.load(out).table.iloc[0]
    for stage in ("audio", "spoken"):
        (copy,) = (out / stage).iterdir()
        assert again[stage] == str(copy)
        assert copy.read_bytes() == Path(report.table.iloc[0][stage]).read_bytes()
    assert (out / "report.html").read_text("utf-8").count(b64encode(b"OggS").decode().rstrip("=")[:5]) >= 2
    assert "".join(report.sections()).count("<audio") == 2
    rows = report.rows().frame
    assert rows["stage"].tolist() == ["said", "spoken"] * 2
    assert rows["text"].tolist()[:2] == ["おはようございます。", report.table["translation"].iloc[0]]
    assert rows["language"].tolist()[:2] == ["ja", "en"]


@pytest.mark.slow
def test_several_services_go_all_the_way(way):
    one, two, _ = way
    assert two.table["system"].tolist() == ["ours"] * 2 + ["theirs"] * 2
    assert two.table["again"].tolist() == [*one.table["again"].tolist()] * 2
    assert two.summary["system"].tolist() == ["ours"] * 3 + ["theirs"] * 3
    assert two.headline()["system"].tolist() == two.summary["system"].tolist()
    assert len(two.plot().axes[0].get_yticklabels()) == 6
    assert two.rows().frame["system"].tolist() == ["ours", "ours", "theirs", "theirs"] * 2


@pytest.mark.slow
def test_a_service_that_is_not_there_stops_none_of_the_others(way):
    one, _, away = way
    assert away.table["failed_at"].tolist() == ["recognize", "recognize", None, "recognize"]
    assert away.table["again"].tolist()[2:] == one.table["again"].tolist()
    assert away.summary["system"].tolist() == ["ours"] * 3
    assert away.rows().frame["error"].dropna().tolist()[0].startswith("away could not be asked: ")
    assert "away could not be asked" in away.to_html()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_row_without_a_recording_or_text_has_failed(tmp_path):
    with serving() as staged:
        sound = str(staged.lab.synthesize("Good morning.", voice="low").save(tmp_path / "one.wav"))
        frame = pd.DataFrame(
            {"audio": [sound, None, sound], "text": ["Hello.", "Hello.", None], "language": "ja"}
        )
        how = {"store": str(tmp_path / "store"), "progress": False}
        report = evaluate.speech_to_speech(staged.lab, frame, "en", "low", **how)
    assert report.table["status"].tolist() == ["ok", "error", "error"]
    assert report.table["error"].tolist()[1:] == [
        "column 'audio' is empty in this row",
        "column 'text' is empty in this row",
    ]
    assert report.table["failed_at"].tolist() == [None, "recognize", "translate what was said"]


def test_bad_input_is_said_before_anything_is_sent():
    frame = pd.DataFrame({"audio": ["a.wav"], "text": ["a"], "language": "ja"})
    with pytest.raises(InvalidRequestError, match="target_lang is no code"):
        evaluate.speech_to_speech(None, frame, " ", "heart")
    with pytest.raises(InvalidRequestError, match="give voice of each service under its name"):
        evaluate.speech_to_speech({"ours": None, "theirs": None}, frame, "en", {"ours": "heart"})
    with pytest.raises(InvalidRequestError, match="no column 'text'"):
        evaluate.speech_to_speech(None, frame.drop(columns="text"), "en", "heart")
    with pytest.raises(InvalidRequestError, match="'ideal'"):
        evaluate.speech_to_speech(None, frame.assign(ideal=1), "en", "heart")
