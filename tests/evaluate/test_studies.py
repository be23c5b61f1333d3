"""Studies on the real service: tables, summaries, pages, files."""

from __future__ import annotations

import json
import re

import pandas as pd
import pytest

from speechlab import evaluate, segments
from speechlab.audio import AudioClip
from speechlab.store import Store

pytestmark = pytest.mark.engines

HOSTILE = 'Tom & "Jerry" <img src=x onerror=alert(1)>'


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with Store(tmp_path_factory.mktemp("evaluate")) as opened:
        yield opened


@pytest.fixture(scope="module")
def report(lab, store):
    frame = pd.DataFrame(
        {
            "id": ["e1", "e2", "j1", "bad"],
            "language": ["en", "en", "ja", "en"],
            "text": ["The weather is fine today.", HOSTILE, "今日は三時に会いましょう。", "   "],
        }
    )
    voices = [lab.voices()["heart"], lab.voices()["mei"].id]
    return evaluate.round_trip(lab, frame, voices, store=store, progress=False)


def test_each_text_meets_the_voices_that_speak_its_language(report):
    rows = report.table.set_index("id")
    assert sorted(rows.index) == ["bad", "e1", "e2", "j1"]
    assert rows.loc["e1", "wer"] == 0
    assert rows.loc["e1", "unit"] == "word"
    assert rows.loc["j1", "unit"] == "char"
    assert rows.loc["j1", "reading_cer"] <= rows.loc["j1", "cer"]
    assert rows.loc["bad", "status"] == "error"
    assert "empty" in rows.loc["bad", "error"]
    assert pd.isna(rows.loc["bad", "wer"])
    assert rows.loc["e1", "voice_name"] == "hibari: heart"
    assert AudioClip.from_file(rows.loc["e1", "audio"]).duration_s == pytest.approx(
        rows.loc["e1", "duration_s"]
    )


def test_a_saved_study_has_its_sounds_and_no_key(report, tmp_path):
    folder = report.save(tmp_path / "out")
    table = pd.read_parquet(folder / "results.parquet")
    assert all((folder / path).is_file() for path in table["audio"].dropna())
    assert pd.read_csv(folder / "results.csv")["id"].tolist() == table["id"].tolist()
    tables = {f"{name}.{kind}" for name in ("results", "summary") for kind in ("csv", "parquet")}
    others = {"audio", "figures", "rates.parquet", "record.json", "report.html"}
    assert {path.name for path in folder.iterdir()} == tables | others
    again = evaluate.Report.load(folder)
    assert [run["operation"] for run in again.record["runs"]] == ["synthesize", "transcribe"]
    assert again.record["runs"][0]["statuses"] == report.record["runs"][0]["statuses"]
    assert "key" not in json.dumps(again.record).lower().replace("keywords", "")
    clip = AudioClip.from_file(again.table["audio"].dropna().iloc[0])
    assert clip.duration_s == pytest.approx(again.table["duration_s"].dropna().iloc[0])
    page = (folder / "report.html").read_text("utf-8")
    held = json.loads(re.search(r'<script type="application/json" id="sounds">(.*?)</script>', page)[1])
    assert [note for data, note in held if data] == ["preview"] * 3
    assert [note for data, note in held if not data] == ["no sound"]
    assert "<img src=x" not in page
    assert "1 failed" in page


def test_segments_of_a_study(lab, store, report, tmp_path):
    said = report.table[["audio", "text", "language"]].iloc[::-1].reset_index(drop=True)
    said.loc[0, "language"] = None
    heard = evaluate.recognition(lab, said, voice=None, store=store, progress=False, vad="segments")
    found = heard.tables["segments"]
    columns = ["file", "start", "end", "text", "position", "row", "segment"]
    assert list(found) == list(report.tables["segments"]) == columns
    assert segments.equal(found, segments.frame(found))
    assert len(found) >= 2
    for row in found.to_dict("records"):
        of = heard.table.iloc[row["position"]]
        assert of["audio"] == row["file"]
        assert row["text"] in of["hypothesis"]
    assert heard.headline()["counted in"].isna().tolist() == heard.summary["language"].isna().tolist()
    saved = heard.save(tmp_path / "study")
    again = segments.read(saved / "segments.parquet")
    assert all((saved / file).is_file() for file in again["file"])
    both = evaluate.Report.combine("both", [report, heard])
    assert both.table["audio"].iloc[both.tables["segments"]["position"]].tolist() == found["file"].tolist()
    assert len(report.tables["segments"]) == 0
