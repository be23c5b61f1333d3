"""Widgets for live notebooks: interactive views whose values are available in the kernel.

Widgets are optional. Clips, transcripts and reports display as plain HTML, which needs no kernel. The output of a
widget in a saved notebook is plain HTML too; the live view replaces it while a kernel runs. Widgets load nothing from
a network, and outside text is always escaped. Notebooks, ``df.speech.show`` and reports use this room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab._door import set_module_to_room as _name_after
from speechlab.widgets._preview.preview import BatchPreview
from speechlab.widgets._preview.preview import display_preview as display_preview
from speechlab.widgets._table.shown import TableView as TableView
from speechlab.widgets._table.table import AudioTable, show

if TYPE_CHECKING:
    from speechlab.widgets._editor.editor import SegmentEditor
    from speechlab.widgets._errors.browser import ErrorBrowser, ReferenceBrowser
    from speechlab.widgets._errors.systems import to_error_table as to_error_table
    from speechlab.widgets._listening.test import ListeningTest
    from speechlab.widgets._player.player import Player
    from speechlab.widgets._recorder.recorder import Recorder
    from speechlab.widgets._stream.stream import StreamPlayer
    from speechlab.widgets._voices.explorer import VoiceExplorer

__all__ = [
    "AudioTable",
    "BatchPreview",
    "ErrorBrowser",
    "ListeningTest",
    "Player",
    "Recorder",
    "ReferenceBrowser",
    "SegmentEditor",
    "StreamPlayer",
    "VoiceExplorer",
    "show",
]


_name_after(__name__, globals(), __all__)


def __getattr__(name: str) -> Any:
    """The widgets that a table does without, loaded together on first use: they need texts, segments and tests."""
    if name not in __all__ and name != "to_error_table":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from speechlab.widgets._editor.editor import SegmentEditor
    from speechlab.widgets._errors.browser import ErrorBrowser, ReferenceBrowser
    from speechlab.widgets._errors.systems import to_error_table
    from speechlab.widgets._listening.test import ListeningTest
    from speechlab.widgets._player.player import Player
    from speechlab.widgets._recorder.recorder import Recorder
    from speechlab.widgets._stream.stream import StreamPlayer
    from speechlab.widgets._voices.explorer import VoiceExplorer

    classes: tuple[type, ...] = (SegmentEditor, ErrorBrowser, ListeningTest, Player, Recorder)
    classes += (ReferenceBrowser, StreamPlayer, VoiceExplorer)
    names = globals()
    names.update({widget.__name__: widget for widget in classes}, to_error_table=to_error_table)
    _name_after(__name__, names, __all__)
    return names[name]
