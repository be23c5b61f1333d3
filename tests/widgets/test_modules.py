"""The JavaScript sources: text stays text, nothing is fetched, and the modules fit together."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from speechlab import widgets

SOURCES = sorted((Path(widgets.__file__).parent).rglob("*.js"))
# Ways by which text becomes markup or code, or by which something leaves the page.
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|document\.write|DOMParser|setHTML"
    r"|\beval\b|new Function|\bfetch\(|XMLHttpRequest|WebSocket|importScripts|https?://"
)
WIDGETS = [
    widgets.AudioTable,
    widgets.BatchPreview,
    widgets.ErrorBrowser,
    widgets.ListeningTest,
    widgets.Player,
    widgets.Recorder,
    widgets.SegmentEditor,
    widgets.StreamPlayer,
    widgets.VoiceExplorer,
]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_text_becomes_markup_and_nothing_is_fetched(path):
    text = path.read_text(encoding="utf-8").replace('"http://www.w3.org/2000/svg"', "a name, not an address")
    assert FORBIDDEN.findall(text) == []


@pytest.mark.parametrize("widget", WIDGETS, ids=lambda widget: widget.__name__)
def test_a_module_holds_all_that_it_needs_once(widget):
    source = widget._esm
    assert not re.search(r"^import ", source, re.MULTILINE)
    assert source.count("export default ") == 1


@pytest.mark.parametrize(
    "rooms",
    [["_listening"], ["_player", "_editor"], ["_preview"], ["_recorder"], ["_stream"], ["_table"]],
    ids=lambda rooms: rooms[-1],
)
def test_modules_that_meet_have_no_name_twice(rooms):
    text = "\n".join(
        path.read_text(encoding="utf-8")
        for path in SOURCES
        if {*rooms, "_shared"} & {part.name for part in path.parents}
    )
    names = re.findall(r"^(?:export )?(?:async )?(?:function|const|let|class) (\w+)", text, re.MULTILINE)
    assert len(names) == len(set(names)) > 5


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js: apt-get install nodejs")
@pytest.mark.parametrize("widget", WIDGETS, ids=lambda widget: widget.__name__)
def test_a_module_is_understood_by_another_engine_too(widget):
    program = (
        f"import('data:text/javascript,'+encodeURIComponent({json.dumps(widget._esm)}))"
        ".then(m => console.log(typeof m.default.render, typeof m.default.initialize))"
    )
    done = subprocess.run(["node", "-e", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["function", "function"], done.stderr


TSC = Path(__file__).parents[2] / "tools" / "javascript" / "node_modules" / ".bin" / "tsc"


@pytest.mark.slow
@pytest.mark.skipif(not TSC.exists(), reason="needs TypeScript: npm ci --prefix tools/javascript")
def test_the_types_of_the_modules_agree():
    done = subprocess.run(
        [str(TSC), "-p", str(TSC.parents[2])], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == ""
