"""The notebooks run from top to bottom on the real service, and are kept without outputs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
MOST_OUTPUT_BYTES = 1_500_000


def executed(notebook, folder, timeout):
    """Run a notebook, a file or its cells, in a folder; give it with its outputs."""
    import nbformat  # their import takes seconds, and every worker collects the tests
    from nbclient import NotebookClient

    if isinstance(notebook, Path):
        notebook = nbformat.read(notebook, as_version=4)
    else:
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in notebook])
    NotebookClient(notebook, timeout=timeout, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_kept_without_outputs(path):
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.engines
@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path, tmp_path, live_service, monkeypatch):
    monkeypatch.setenv("SPEECHLAB_BASE_URL", live_service.base_url)
    monkeypatch.setenv("SPEECHLAB_API_KEY", live_service.api_key)
    monkeypatch.setenv("SPEECHLAB_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("SPEECHLAB_MODE", "auto")
    notebook = executed(path, tmp_path, timeout=600)
    seen = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    html = "".join(output["data"].get("text/html", "") for output in seen if "data" in output)
    assert '<audio src="data:audio/mpeg;base64,' in html
    assert not [output for output in seen if output.output_type == "error"]
    import nbformat

    written = nbformat.writes(notebook)
    assert live_service.api_key not in written
    assert len(written) < MOST_OUTPUT_BYTES
    # published with its store, it runs again without a service and without a key, and always to the same
    monkeypatch.delenv("SPEECHLAB_BASE_URL")
    monkeypatch.delenv("SPEECHLAB_API_KEY")
    monkeypatch.setenv("SPEECHLAB_MODE", "replay")
    monkeypatch.setenv("SPEECHLAB_STATE_DIR", str(tmp_path / "state"))
    first, second = (_replayed(path, tmp_path / name) for name in ("first", "second"))
    assert first.count("text/html") > 5
    assert first == second
    assert not (tmp_path / "state").exists()
    files = [path for path in (tmp_path / "first").rglob("*") if path.is_file()]
    assert len(files) > 10
    for one in files:
        again = tmp_path / "second" / one.relative_to(tmp_path / "first")
        assert _without_its_time(one) == _without_its_time(again), one.name


def _without_its_time(path):
    """The bytes of a file; of a study's record, in a page too, but for when it was made and the names of its runs."""
    data = path.read_bytes()
    if path.name not in {"record.json", "report.html"}:
        return data
    text, found = re.subn(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|\d{8}-\d{6}-[0-9a-f]{8}", b"", data)
    assert found == 3
    return text


def _replayed(path, folder):
    """What the notebook shows, but for ids by chance: of widgets, and of the kernel's process in a warning."""
    folder.mkdir()
    notebook = executed(path, folder, timeout=600)
    shown = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    return re.sub(r'"model_id": "\w+"|lab-place-[0-9a-f]{32}|ipykernel_\d+', "", json.dumps(shown))


@pytest.mark.engines
@pytest.mark.timeout(300)
def test_how_a_batch_went_is_kept_without_widgets(tmp_path, live_service, monkeypatch):
    monkeypatch.setenv("SPEECHLAB_BASE_URL", live_service.base_url)
    monkeypatch.setenv("SPEECHLAB_API_KEY", live_service.api_key)
    cells = (
        "import pandas as pd, speechlab as sl\nlab = sl.connect()",
        "frame = pd.DataFrame({'text': ['One.', '', 'Two.'], 'voice': 'heart'})",
        "frame.speech.synthesize(lab, store='kept');",
        "preview = sl.widgets.BatchPreview()\npreview",
        "frame.speech.synthesize(lab, store='kept', repeat=1, progress=preview);",
        "frame.speech.synthesize(lab, store='kept', repeat=2, progress=preview);",
    )
    notebook = executed(cells, tmp_path, timeout=200)
    (bar,) = [output for output in notebook.cells[2].outputs if "data" in output]  # and a failed row is told
    assert "100%" in bar["data"]["text/plain"]
    assert "2/2" in bar["data"]["text/plain"]
    (left,) = notebook.cells[3].outputs
    assert left["data"]["text/html"].count("<tr>") == 3
    assert "2 of 2 calls · 0 errors · 0 cached · 1 invalid row · " in left["data"]["text/plain"]
    assert "widget" not in str([bar["data"], left["data"]])
