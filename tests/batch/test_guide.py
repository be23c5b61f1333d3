"""The guides run, from their first block to their last, with a real voice; and paths that begin at home."""

import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from speechlab import batch, segments
from speechlab.audio import AudioClip, cut_at_silences, measure_length_s
from speechlab.store import Store
from support.batches import EN_JA
from support.clients import KEY

GUIDE = Path(__file__).parents[2] / "docs" / "batch.md"


@pytest.mark.engines
def test_the_guide_runs(quick_lab, monkeypatch, tmp_path):
    monkeypatch.setenv("SPEECHLAB_BASE_URL", quick_lab.base_url)
    monkeypatch.setenv("SPEECHLAB_API_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    names = {}
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for block in blocks:
            exec(compile(block, str(GUIDE), "exec"), names)
    assert names["spoken"]["status"].tolist() == ["ok", "ok", "ok", "error"]
    assert names["table"]["status"].tolist() == ["cached", "cached", "cached", "error"]
    assert names["timed"]["row"].tolist()[0] == 0
    assert "the budget of 1 calls is used up" in " ".join(str(one.message) for one in caught)
    assert names["some"]["status"].tolist() == ["ok", "cancelled"]
    assert names["rest"]["status"].tolist() == ["cached", "ok"]
    assert len(pd.read_parquet("rows-spoken.parquet")) == 4
    names["lab"].close()


@pytest.mark.engines
def test_the_page_on_shipping_runs(quick_lab, monkeypatch, tmp_path):
    monkeypatch.setenv("SPEECHLAB_BASE_URL", quick_lab.base_url)
    monkeypatch.setenv("SPEECHLAB_API_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    names = {}
    page = GUIDE.with_name("ship.md")
    for block in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
        exec(compile(block, str(page), "exec"), names)
    assert names["done"].answer.startswith("All 2 lines are ready.")
    assert (tmp_path / "lines" / "report.html").exists()
    assert sorted(path.name for path in tmp_path.glob("*.wav")) == ["001.wav", "002.wav"]
    names["lab"].close()


def test_a_path_may_begin_at_home(tmp_path, monkeypatch, reverser):
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    empty = tmp_path / "elsewhere"
    empty.mkdir()
    monkeypatch.chdir(empty)
    AudioClip(np.full(16_000, 0.1, np.float32), 16_000).save(tmp_path / "a.wav")
    assert measure_length_s("~/a.wav") == len(list(cut_at_silences("~/a.wav", 5))) == 1

    table = segments.frame([(0.0, 0.5)], file="~/a.wav")
    assert segments.write(table, "~/s.rttm").path == tmp_path / "s.rttm"
    assert segments.equal(segments.read("~/s.rttm"), segments.read(tmp_path / "s.rttm"))
    assert [clip.duration_s for clip in segments.clips(table)] == [0.5]

    plan = batch.plan_translation(["one"], reverser, store="~/runs", **EN_JA)
    run = batch.run(plan, reverser, progress=False)
    assert run.export("~/out.csv") == tmp_path / "out.csv"
    assert batch.load("~/runs").id == run.id
    with Store("~/runs") as store:
        assert store.path == tmp_path / "runs"
    assert not list(empty.iterdir())  # nothing in a folder of the name ~
