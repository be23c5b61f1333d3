"""The notebooks run from top to bottom on the real service, and are kept without outputs."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
MOST_OUTPUT_BYTES = 1_500_000


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
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    seen = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    html = "".join(output["data"].get("text/html", "") for output in seen if "data" in output)
    assert '<audio src="data:audio/mpeg;base64,' in html
    assert not [output for output in seen if output.output_type == "error"]
    assert live_service.api_key not in nbformat.writes(notebook)
    assert len(nbformat.writes(notebook)) < MOST_OUTPUT_BYTES
