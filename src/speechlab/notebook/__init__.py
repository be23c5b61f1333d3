"""Notebooks: an optional patch of the running event loop.

speechlab does not need it: synchronous calls run on a separate loop, and ``await`` works in a cell. The patch is for
scripts that are pasted into a cell and call ``asyncio.run``. No other room uses this one.
"""

from __future__ import annotations

from speechlab._door import name_after as _name_after
from speechlab.notebook._loops import allow_nested_loops

__all__ = ["allow_nested_loops"]

_name_after(__name__, globals(), __all__)
