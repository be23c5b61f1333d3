"""Points at which long work may be interrupted: between two windows of a recording, or two sentences of a text.

An engine does not know about other requests. It marks the points at which no work is half done. Its caller may then
run another request first, or end the work by raising.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_here = threading.local()


def checkpoint() -> None:
    """Mark a point at which the engine may be interrupted. Raises the errors of the caller's function.

    Example:
        >>> with checkpoints(lambda: print("reached")):
        ...     checkpoint()
        reached
    """
    reached: Callable[[], None] | None = getattr(_here, "reached", None)
    if reached is not None:
        reached()


@contextlib.contextmanager
def checkpoints(reached: Callable[[], None]) -> Iterator[None]:
    """Call a function at each checkpoint of this thread, within a ``with`` block."""
    before = getattr(_here, "reached", None)
    _here.reached = reached
    try:
        yield
    finally:
        _here.reached = before
