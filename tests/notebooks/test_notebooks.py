"""The notebooks as they are kept, on the real service, and in replay without a network: always the same."""

from __future__ import annotations

import re

import pytest

import speechlab as sl
from support.clients import KEY
from support.notebooks import ASKED, NOTEBOOKS, VARIES, kernel, scrubbed, told

MOST_BYTES = 300_000
MOST_LINES = 10
"""More in one cell is work that the toolkit should do."""
OF_A_MACHINE = re.compile(
    r"127\.0\.0\.1|localhost|ipykernel_|widget-view|\bsl:\w{8}|(?<![\w.+=/])/(?:tmp|home|root|work|Users|var|usr)/|"
    r"speechlab-place-[0-9a-f]{32}|\d{4}-\d\d-\d\dT\d\d:\d\d"
)
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path):
    """Read a notebook."""
    import nbformat  # its import takes seconds, and every worker collects the tests

    return nbformat.read(path, as_version=4)


@each
def test_a_notebook_is_kept_with_outputs_that_are_small_and_of_no_machine(path):
    notebook = read(path)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert sum(bool(cell.outputs) for cell in code) > len(code) / 2
    assert path.stat().st_size < MOST_BYTES
    for cell in code:
        assert len(cell.source.splitlines()) < MOST_LINES, cell.source
        sounds_apart = re.sub(r";base64,[\w+/=]+", "", str(cell.outputs))
        assert not OF_A_MACHINE.findall(sounds_apart), cell.source


@each
def test_a_notebook_asks_and_answers(path):
    cells = read(path).cells
    assert re.match(r"# .+\n\n\*\*Question:\*\* .+\?", cells[0].source)
    assert cells[-1].source.startswith("**Answer:** ")
    assert f"(../notebooks/{path.name})" in (path.parents[1] / "docs" / "README.md").read_text("utf-8")


@pytest.fixture(scope="module")
def on_the_service():
    with kernel() as shared:
        yield shared


@pytest.fixture(scope="module")
def without_a_network():
    with kernel() as shared:
        yield shared


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """One for all notebooks: what an earlier one has asked is not asked again."""
    return tmp_path_factory.mktemp("notebooks") / "store"


@pytest.fixture(scope="module")
def sounds_as_recorded(live_service):
    """Whether the engines make and read the very sound here that the first notebook was kept with.

    Processors, and numbers of threads, round differently: one makes 76,250 frames of a text, another 76,626, and a
    recognizer then returns another word. Elsewhere the kinds of all outputs are compared, and the words with those of the replay.
    """
    kept = read(NOTEBOOKS[0])
    frames = next(int(m[1]) for m in re.finditer(r"\(\((\d+),\), 24000", str(kept.cells)))
    text = next(m[1] for m in re.finditer(r"Transcript\(text='([^']+)'", str(kept.cells).replace("\\'", "'")))
    with sl.Client(base_url=live_service.base_url, api_key=KEY) as lab:
        clip = lab.synthesize("今日は良い天気ですね。散歩に行きましょう。", voice="jf_tebukuro")
        return (clip.frames, lab.transcribe(clip).text) == (frames, text)


def _kinds(notebook):
    """Return the source of each cell with the kinds of its outputs."""
    return [
        (cell.source, [sorted(output.get("data", ())) for output in cell.outputs])
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


@pytest.mark.engines
@pytest.mark.timeout(900)
@each
def test_a_notebook_shows_what_is_kept_on_the_service_and_in_replay(
    path, tmp_path, store, live_service, on_the_service, without_a_network, sounds_as_recorded
):
    where = {"SPEECHLAB_BASE_URL": live_service.base_url, "SPEECHLAB_API_KEY": KEY}
    live = on_the_service.run(
        path, tmp_path / "live", SPEECHLAB_STORE=str(store), SPEECHLAB_MODE="auto", **where
    )
    if sounds_as_recorded:
        assert told(scrubbed(live)) == told(read(path))
    else:
        assert _kinds(scrubbed(live)) == _kinds(read(path))
    # published with its store, it runs again without a service, a key or a network: the sounds are the same, too
    nothing = {
        "SPEECHLAB_BASE_URL": "",
        "SPEECHLAB_API_KEY": "",
        "SPEECHLAB_STATE_DIR": str(tmp_path / "state"),
    }
    again = without_a_network.run(
        path, tmp_path / "again", SPEECHLAB_STORE=str(store), SPEECHLAB_MODE="replay", **nothing
    )
    assert _outputs(live) == _outputs(again)
    assert not (tmp_path / "state").exists()
    assert _tables(tmp_path / "live") == _tables(tmp_path / "again")


def _outputs(notebook):
    """What cells have shown, but for measured times, and for what was asked of the service."""
    return [
        cell.outputs
        for cell in scrubbed(notebook).cells
        if cell.cell_type == "code" and not {VARIES, ASKED} & set(cell.metadata.get("tags", ()))
    ]


def _tables(folder):
    """The files that a notebook has written, but for pages and records, which have dates.

    Where a result came from, the service or the store, stands in the column ``status``.
    """
    return {
        str(path.relative_to(folder)): re.sub(rb",ok,", b",cached,", path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file() and path.name not in {"record.json", "report.html"} and path.suffix != ".parquet"
    }


@pytest.mark.engines
@pytest.mark.timeout(300)
def test_how_a_batch_went_is_kept_without_widgets(tmp_path, live_service, monkeypatch):
    import nbformat
    from nbclient import NotebookClient

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
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=200, resources={"metadata": {"path": str(tmp_path)}}).execute()
    (bar,) = [output for output in notebook.cells[2].outputs if "data" in output]  # and a failed row is told
    assert "2 of 2 calls · 1 failed" in bar["data"]["text/plain"]
    (left,) = notebook.cells[3].outputs
    assert left["data"]["text/html"].count("<tr>") == 3
    assert "2 of 2 calls · 1 failed · 0 cached · " in left["data"]["text/plain"]
    assert "widget" not in str([bar["data"], left["data"]])
