"""Notebooks: the one place where a running event loop is patched, for those who ask for it.

Nothing of speechlab needs it: synchronous calls run on a loop of their own, and ``await`` works in a cell. It is for
scripts that are pasted into a cell and call ``asyncio.run``. It is no display and no client. Used by people only.
"""

from __future__ import annotations

from speechlab._door import name_after as _name_after
from speechlab.notebook._loops import allow_nested_loops

__all__ = ["allow_nested_loops"]

_name_after(__name__, globals(), __all__)
