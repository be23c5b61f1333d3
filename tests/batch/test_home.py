"""Paths that begin with ``~``, wherever a path is taken."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from speechlab import batch, evaluate, segments, widgets
from speechlab.audio import AudioClip, cut_at_silences, measure_length_s
from speechlab.store import Store
from support.batches import EN_JA


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    empty = tmp_path / "elsewhere"
    empty.mkdir()
    monkeypatch.chdir(empty)
    yield tmp_path
    assert not list(empty.iterdir())  # nothing in a folder of the name ~


@pytest.fixture
def recording(home):
    AudioClip(np.full(16_000, 0.1, np.float32), 16_000).save(home / "a.wav")
    return "~/a.wav"


def test_segments(home):
    table = segments.frame([(0.0, 1.0)], file="a")
    assert segments.write(table, "~/s.rttm").path == home / "s.rttm"
    assert segments.equal(segments.read("~/s.rttm"), segments.read(home / "s.rttm"))


def test_recordings(recording, home):
    assert measure_length_s(recording) == 1
    assert len(list(cut_at_silences(recording, 5))) == 1
    table = segments.frame([(0.0, 0.5)], file=recording)
    assert [clip.duration_s for clip in segments.clips(table)] == [0.5]
    looked_at = widgets.AudioTable(pd.DataFrame({"audio": [recording]}))
    assert looked_at.save("~/page.html") == home / "page.html"
    assert "the file is gone" not in (home / "page.html").read_text(encoding="utf-8")


def test_runs(home, reverser):
    plan = batch.plan_translation(pd.DataFrame({"text": ["one"]}), reverser, store="~/runs", **EN_JA)
    run = batch.run(plan, reverser, progress=False)
    assert run.export("~/out.csv") == home / "out.csv"
    assert batch.load("~/runs").id == run.id
    assert len(batch.runs("~/runs")) == 1
    with Store("~/runs") as store:
        assert store.path == home / "runs"


def test_reports(home, reverser):
    frame = pd.DataFrame({"text": ["one"], "reference": ["eno"], "source_lang": "en", "target_lang": "ja"})
    report = evaluate.translation(reverser, frame, store="~/runs", progress=False)
    assert report.save("~/report") == home / "report"
    assert (home / "report" / "report.html").is_file()
