"""The guide of the widgets runs, and its pictures show something."""

import re
from pathlib import Path

import pytest

from support.clients import KEY
from support.staged_voices import voices_service

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.slow
def test_the_guide_runs(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    names = {}
    with voices_service() as client:
        monkeypatch.setenv("SPEECHLAB_BASE_URL", client.base_url)
        monkeypatch.setenv("SPEECHLAB_API_KEY", KEY)
        for block in re.findall(r"```python\n(.*?)```", (DOCS / "widgets.md").read_text("utf-8"), re.DOTALL):
            exec(compile(block, "widgets.md", "exec"), names)
        names["lab"].close()
    assert len(names["recognized"]) == 2
    assert (tmp_path / "recordings.html").stat().st_size > 10_000
    assert names["noted"]["note"].notna().sum() == 1
    assert (tmp_path / "test.key.json").is_file()
