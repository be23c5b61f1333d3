"""Notebooks: players of streamed speech, and an optional patch of the running event loop.

speechlab does not need the patch: synchronous calls run on a separate loop, and ``await`` works in a cell. It is for
scripts that are pasted into a cell and call ``asyncio.run``.
"""

from __future__ import annotations

from speechlab._door import set_module_to_room as _name_after
from speechlab.notebook._bars import open_bar as open_bar
from speechlab.notebook._loops import allow_nested_loops
from speechlab.notebook._playing import Playback
from speechlab.notebook._playing import show_stream_player as show_stream_player

__all__ = ["allow_nested_loops"]

_name_after(__name__, globals())
