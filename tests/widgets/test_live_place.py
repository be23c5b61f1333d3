"""A live view stands in the place of its plain HTML, and gives it back when it ends."""

import sys
from base64 import b64decode
from types import SimpleNamespace

import numpy as np

from speechlab.audio import AudioClip
from speechlab.batch import Counts, Outcome
from speechlab.widgets import BatchPreview, Player

VIEW = "application/vnd.jupyter.widget-view+json"


def test_the_output_is_plain_html_and_a_view_if_needed(monkeypatch):
    clip = AudioClip(np.zeros(100), 24_000, "costs $5 <b>")
    player = Player(clip, [(0.0, 0.001, "<i>")])
    bundle = player._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain", "image/png"}
    assert "costs $5 &lt;b&gt;" in bundle["text/html"]
    assert "&lt;i&gt;" in bundle["text/html"]
    assert b64decode(bundle["image/png"]) == clip._repr_png_()
    # hosts that need it get a view too, unless a setting keeps the HTML still
    for host in ({"VSCODE_PID": "1"}, {"SPEECHLAB_WIDGETS": "live"}):
        with monkeypatch.context() as patch:
            patch.setenv(*next(iter(host.items())))
            bundle, metadata = BatchPreview()._repr_mimebundle_()
            assert (set(bundle), metadata) == ({"text/html", "text/plain", VIEW}, {})
    monkeypatch.setenv("VSCODE_PID", "1")
    monkeypatch.setenv("SPEECHLAB_WIDGETS", "still")
    bundle = player._repr_mimebundle_()
    assert VIEW not in bundle
    assert player._place not in bundle["text/html"]


def test_colab_is_told_which_widget_manager_it_has_to_load(monkeypatch):
    url = "https://widgets.test/manager.js"
    widgets = SimpleNamespace(_installed_url=url)
    output = SimpleNamespace(enable_custom_widget_manager=lambda: None, _widgets=widgets)
    monkeypatch.setitem(sys.modules, "google.colab", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "google.colab.output", output)
    player = Player(AudioClip(np.zeros(100), 24_000))
    bundle, metadata = player._repr_mimebundle_()
    assert VIEW in bundle
    assert metadata[VIEW]["colab"]["custom_widget_manager"]["url"] == url


def test_a_batch_whose_kernel_dies_is_in_the_notebook_as_it_was(monkeypatch):
    now = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0])  # of this module alone: event loops look at the other
    monkeypatch.setattr("speechlab.widgets._preview.preview.time", clock)
    preview = BatchPreview()
    put = []
    preview._shown = SimpleNamespace(update=lambda bundle, raw: put.append(bundle["text/html"]))
    preview.begin("synthesize")
    for done in range(1, 9):
        now[0] += 1.0
        preview.update([Outcome("ok", latency_s=0.1)], Counts(done, 10, 0, 0, now[0]))
    assert len(put) == 1
    assert "5 of 10 calls" in put[0]


def test_a_preview_ends_as_plain_html_where_hosts_need_a_view(monkeypatch):
    monkeypatch.setenv("VSCODE_PID", "1")
    preview = BatchPreview()
    put = []
    update = lambda bundle, raw, metadata=None: put.append(bundle)  # noqa: E731 - as in the display's handle
    preview._shown = SimpleNamespace(update=update)
    for operation in ("synthesize", "transcribe"):
        preview.begin(operation)
        preview.update([Outcome("ok", latency_s=0.1)], Counts(1, 1, 0, 0, 1.0))
        preview.end()
    assert [VIEW in bundle for bundle in put] == [False, True, False]
    assert [preview._place in bundle["text/html"] for bundle in put] == [False, True, False]
