"""What the root hangs on rooms far below it: functions called once a library of tables is loaded, and a display.

Both are registered by name, when the package is imported, and load nothing before they are called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

_waiting: dict[str, list[Callable[[], object]]] = {}
_displays: list[Callable[[], Any]] = []  # the one that is registered


def call_once_loaded(library: str, function: Callable[[], object]) -> None:
    """Call a function when a library is loaded: now, or as soon as a room has loaded it or a name is used."""
    _waiting.setdefault(library, []).append(function)
    call_hooks_if_loaded()


def call_hooks_if_loaded() -> None:
    """Call what waits for libraries that are loaded, each function once."""
    for library, functions in _waiting.items():
        while functions and library in sys.modules:
            functions.pop()()


def set_batch_watcher_display(make: Callable[[], Any]) -> None:
    """Register the function that makes and shows the watcher of a batch in a notebook, in place of an earlier one."""
    _displays[:] = [make]


def make_notebook_display() -> Any:
    """Return a new watcher that a notebook shows, or None where none is registered."""
    return _displays[0]() if _displays else None
