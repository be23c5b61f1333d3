"""The guide runs, from its first block to its last, with a real voice."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pandas as pd
import pytest

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
