"""What the root hangs on rooms far below it: functions called once pandas is loaded, and the display of a batch.

Both are registered by name, when the package is imported, and load nothing before they are called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

_waiting_for_pandas: list[Callable[[], object]] = []
_displays: list[Callable[[], Any]] = []  # the one that is registered


def call_once_pandas_loaded(function: Callable[[], object]) -> None:
    """Call a function when pandas is loaded: now, or as soon as a room has loaded it."""
    _waiting_for_pandas.append(function)
    call_pandas_hooks_if_loaded()


def call_pandas_hooks_if_loaded() -> None:
    """Call what waits for pandas, each function once, if pandas is loaded."""
    while _waiting_for_pandas and "pandas" in sys.modules:
        _waiting_for_pandas.pop()()


def set_batch_watcher_display(make: Callable[[], Any]) -> None:
    """Register the function that makes and shows the watcher of a batch in a notebook, in place of an earlier one."""
    _displays[:] = [make]


def make_notebook_display() -> Any:
    """Return a new watcher that a notebook shows, or None where none is registered."""
    return _displays[0]() if _displays else None
