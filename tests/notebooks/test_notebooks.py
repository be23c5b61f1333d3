"""The notebooks as they are kept, and in replay from their records, without a network: always the same."""

import re

import pytest

from support.notebooks import AGAIN, NOTEBOOKS, kernel, told

MOST_BYTES = 300_000
MOST_LINES = 10
"""More in one cell is work that the toolkit should do."""
OF_A_MACHINE = re.compile(
    r"127\.0\.0\.1|localhost|ipykernel_|widget-view|\bsl:\w{8}|(?<![\w.+=/])/(?:tmp|home|root|work|Users|var|usr)/|"
    r"speechlab-place-[0-9a-f]{32}|\d{4}-\d\d-\d\dT\d\d:\d\d"
)


def read(path):
    """Read a notebook."""
    import nbformat  # its import takes seconds, and every worker collects the tests

    return nbformat.read(path, as_version=4)


def test_kept_notebooks_are_small_and_of_no_machine():
    index = (NOTEBOOKS[0].parents[1] / "docs" / "README.md").read_text("utf-8")
    for path in NOTEBOOKS:
        cells = read(path).cells
        assert re.match(r"# .+\n\n\*\*Question:\*\* .+\?", cells[0].source), path
        assert cells[-1].source.startswith("**Answer:** "), path
        assert f"(../notebooks/{path.name})" in index
        code = [cell for cell in cells if cell.cell_type == "code"]
        assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1)), path
        assert sum(bool(cell.outputs) for cell in code) > len(code) / 2, path
        assert path.stat().st_size < MOST_BYTES, path
        for cell in code:
            assert len(cell.source.splitlines()) < MOST_LINES, cell.source
            sounds_apart = re.sub(r";base64,[\w+/=]+", "", str(cell.outputs))
            assert not OF_A_MACHINE.findall(sounds_apart), cell.source


@pytest.fixture(scope="module")
def shared():
    with kernel() as started:
        yield started


BATCH = (
    "import pandas as pd, speechlab as sl\nlab = sl.Client({base_url!r}, api_key={api_key!r})",
    "frame = pd.DataFrame({{'text': ['One.', '', 'Two.'], 'voice': 'heart'}})",
    "frame.speech.synthesize(lab, store='kept');",
    "preview = sl.widgets.BatchPreview()\npreview",
    "frame.speech.synthesize(lab, store='kept', repeat=1, progress=preview);",
    "frame.speech.synthesize(lab, store='kept', repeat=2, progress=preview);",
)


@pytest.mark.engines
def test_how_a_batch_went_is_kept_without_widgets(tmp_path, live_service, shared):
    """It is the first to use the kernel: a replay lets no call through any more."""
    import nbformat

    cells = [cell.format(base_url=live_service.base_url, api_key=live_service.api_key) for cell in BATCH]
    written = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbformat.write(written, tmp_path / "batch.ipynb")
    notebook = shared.run(tmp_path / "batch.ipynb", tmp_path / "work")
    (bar,) = [output for output in notebook.cells[2].outputs if "data" in output]  # and a failed row is told
    assert "2 of 2 calls · 1 failed" in bar["data"]["text/plain"]
    (left,) = notebook.cells[3].outputs
    assert left["data"]["text/html"].count("<tr>") == 3
    assert "2 of 2 calls · 1 failed · 0 cached · " in left["data"]["text/plain"]
    assert "widget" not in str([bar["data"], left["data"]])


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_replay_shows_what_is_kept(path, tmp_path, shared):
    """What is kept was shown by the real service, as its record was: ``poe notebooks`` writes both."""
    now, kept = (told(one, replayed=True) for one in (shared.replay(path, tmp_path), read(path)))
    assert now == kept, f"{AGAIN} {path.stem[:2]}; where only words have changed, with --replayed"


@pytest.mark.slow
def test_replay_refuses_what_is_not_recorded(tmp_path, shared):
    import nbformat

    cells = ["import speechlab as sl\nlab = sl.connect()", "lab.synthesize('Never asked.', voice='heart')"]
    new = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbformat.write(new, tmp_path / "01-quickstart.ipynb")
    with pytest.raises(AssertionError, match=r"(?s)poe notebooks 01\n.*this synthesize call is not in"):
        shared.replay(tmp_path / "01-quickstart.ipynb", tmp_path / "again")
