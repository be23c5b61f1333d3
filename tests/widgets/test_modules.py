"""The JavaScript sources: text stays text, nothing is fetched, and the modules fit together."""

import re
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
NAMES = "AudioTable BatchPreview ErrorBrowser ListeningTest Player Recorder SegmentEditor StreamPlayer VoiceExplorer"
WIDGETS = [getattr(widgets, name) for name in NAMES.split()]


def test_no_text_becomes_markup_and_nothing_is_fetched():
    for path in SOURCES:
        text = path.read_text("utf-8").replace('"http://www.w3.org/2000/svg"', "a name, not an address")
        assert FORBIDDEN.findall(text) == [], path.name
    for widget in WIDGETS:  # a module holds all that it needs, once
        assert not re.search(r"^import ", widget._esm, re.MULTILINE), widget
        assert widget._esm.count("export default ") == 1, widget


TSC = Path(__file__).parents[2] / "tools" / "javascript" / "node_modules" / ".bin" / "tsc"


@pytest.mark.slow
@pytest.mark.skipif(not TSC.exists(), reason="needs TypeScript: npm ci --prefix tools/javascript")
def test_the_types_of_the_modules_agree():
    done = subprocess.run(
        [str(TSC), "-p", str(TSC.parents[2])], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == ""
