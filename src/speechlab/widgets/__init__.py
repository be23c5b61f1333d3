"""Widgets for live notebooks: things to click, drag and play, with values back in the kernel.

They are opt-in: what clips, transcripts and reports show by themselves is plain HTML that survives without a kernel.
A widget too stands in the notebook as plain HTML, which it replaces as long as it runs.
They load nothing from a network, and text from outside reaches the page as text only.
Used by people in notebooks; nothing else of speechlab depends on it.
"""

from __future__ import annotations

from speechlab._door import name_after as _name_after
from speechlab.widgets._editor.editor import SegmentEditor
from speechlab.widgets._errors.browser import ErrorBrowser
from speechlab.widgets._listening.test import ListeningTest
from speechlab.widgets._player.player import Player
from speechlab.widgets._preview.preview import BatchPreview
from speechlab.widgets._recorder.recorder import Recorder
from speechlab.widgets._report import ReportRows
from speechlab.widgets._table.table import AudioTable, show
from speechlab.widgets._voices.explorer import VoiceExplorer

__all__ = [
    "AudioTable",
    "BatchPreview",
    "ErrorBrowser",
    "ListeningTest",
    "Player",
    "Recorder",
    "ReportRows",
    "SegmentEditor",
    "VoiceExplorer",
    "show",
]


_name_after(__name__, globals(), __all__)
