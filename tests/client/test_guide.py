"""The guide runs, from its first block to its last, on the real service with its fast voices."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "client.md"


@pytest.mark.engines
def test_the_guide_runs(light_service, monkeypatch, tmp_path):
    monkeypatch.setenv("SPEECHLAB_BASE_URL", light_service.base_url)
    monkeypatch.setenv("SPEECHLAB_API_KEY", light_service.api_key)
    monkeypatch.chdir(tmp_path)
    names = {}
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), names)
    assert names["clip"].duration_s > 0.5
    assert names["whole"].duration_s > 1
    assert "おはよう" in names["transcript"].text
    assert names["timed"].segments["text"].str.contains("おはよう").any()
    assert names["result"].text
    assert names["stream"].translation.text
    names["lab"].close()
