"""The pages on how to add something run, each from its first block to its last."""

import re
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[1] / "docs" / "extend"


def run(page: str) -> dict:
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", (PAGES / page).read_text("utf-8"), re.DOTALL):
        exec(compile(block, page, "exec", dont_inherit=True), names)
    return names


@pytest.fixture
def at_work(live_service, monkeypatch, tmp_path):
    """In a folder of its own, with the live service for ``sl.connect()``."""
    monkeypatch.setenv("SPEECHLAB_BASE_URL", live_service.base_url)
    monkeypatch.setenv("SPEECHLAB_API_KEY", live_service.api_key)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_page_is_run_here():
    assert {path.stem for path in PAGES.glob("*.md")} == {
        "engine",
        "file-format",
        "metric",
        "study",
        "widget",
    }


@pytest.mark.slow
def test_an_engine():
    assert run("engine.md")["clip"].duration_s > 1


def test_a_metric():
    names = run("metric.md")
    assert names["numbers"]["number_errors"].tolist() == [1, 1, 0]
    assert names["numbers"]["numbers"].tolist() == [1, 2, 0]
    assert names["pooled"] == 2 / 3


@pytest.mark.engines
def test_a_study(at_work):
    names = run("study.md")
    assert names["report"].summary["count"].tolist() == [2, 2]
    assert names["report"].facts["rows that failed"] == "0"
    assert (at_work / "pace.html").read_text("utf-8").count("speaks fastest") == 1
    assert "Pace" in names["report"].to_markdown()
    names["lab"].close()


@pytest.mark.engines
def test_a_widget(at_work):
    names = run("widget.md")
    shown = names["counter"]._repr_mimebundle_()
    assert "&lt;heart&gt;" in shown["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in shown
    names["lab"].close()


def test_a_file_format(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert len(run("file-format.md")["labels"]) == 2
